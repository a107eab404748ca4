"""Traces: spans of calls and turns, their files, and export by OTLP."""

from __future__ import annotations

import os
import threading
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING

from hermes import __version__
from hermes.core.errors import ConfigError, HermesError
from hermes.core.json_text import to_json
from hermes.core.log import Log
from hermes.core.paths import home_path
from hermes.runtime.json_lines import FULL, LineBuffer, append_lines, json_line, read_json_lines
from hermes.safety.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Any, Literal

    from hermes.core.entry import ToolOutcome
    from hermes.runtime.stages import CallState


if TYPE_CHECKING:
    Kind = Literal["session", "turn", "chat", "tool", "agent", "approval"]
    Status = Literal["open", "ok", "error", "refused", "cancelled"]

log = Log("hermes.tracing")

_CUT = 1_000
# As much of a text as is looked at for secrets: none begins in what is shown and ends behind this.
_LOOKED_AT = 20_000

current: ContextVar[Span | None] = ContextVar("hermes.span", default=None)


# Random ids that no span has yet: one system call for many. A forked process makes its own.
_ids: list[str] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ids.clear)


def _random_id() -> str:
    while not _ids:
        digits = os.urandom(2048).hex()
        _ids.extend(digits[start : start + 16] for start in range(0, len(digits), 16))
    try:
        return _ids.pop()
    except IndexError:
        # Another thread has taken the last one.
        return _random_id()


class Span:
    """One piece of work. Times are nanoseconds since 1970; `ended` is 0 until it has ended."""

    __slots__ = (
        "attributes",
        "ended",
        "error",
        "id",
        "kind",
        "name",
        "noted",
        "parent",
        "started",
        "status",
        "ticks",
        "trace",
    )

    def __init__(
        self, kind: Kind, name: str, attributes: dict[str, Any], parent: Span | None
    ) -> None:
        self.kind: Kind = kind
        self.name = name
        self.attributes = attributes
        self.id = _random_id()
        self.parent = parent.id if parent is not None else ""
        self.trace: str = parent.trace if parent is not None else _random_id() + _random_id()
        self.started = time.time_ns()
        self.ticks = time.perf_counter_ns()
        self.ended = 0
        self.status: Status = "open"
        self.error = ""
        self.noted = False


class Tracer:
    """Makes spans and has them written."""

    def __init__(
        self,
        files: SpanFiles | None = None,
        *,
        export: Callable[[Sequence[dict[str, Any]]], None] | None = None,
    ) -> None:
        """A tracer; nothing is opened before the first span has ended.

        Args:
            files: Where spans are kept; the usual place if None.
            export: Given the lines of ended spans after they were written, secrets masked.
        """
        if files is None:
            files = SpanFiles()
        self.files = files
        self.export = export
        # How texts are masked; a runtime puts its own here, which knows more secrets.
        self.redact: Callable[[str], str] = redact
        # The span of each session under way: what begins outside of any other belongs to it.
        self._sessions: dict[str, Span] = {}
        self._open: dict[str, Span] = {}
        self._buffer = LineBuffer("traces", self.flush)
        self._waiting: list[Span] = self._buffer.waiting
        self._awake = self._buffer.awake

    # -- spans ----------------------------------------------------------------------------------

    def begin(
        self, kind: Kind, name: str, attributes: dict[str, Any], parent: Span | None = None
    ) -> Span:
        """A span from now on; inside of the current one where no parent is given."""
        span = Span(kind, name, attributes, parent if parent is not None else current.get())
        self._open[span.id] = span
        if not self._awake.is_set():
            self._buffer.wake()
        return span

    def end(self, span: Span, status: Status = "ok", error: str = "") -> None:
        """The end of a span; a second one is ignored."""
        if self._open.pop(span.id, None) is None:
            return
        span.ended = span.started + time.perf_counter_ns() - span.ticks
        span.status, span.error = status, error
        self._waiting.append(span)
        if len(self._waiting) >= FULL:
            self._buffer.full()

    def inside(
        self, kind: Kind, name: str, attributes: dict[str, Any], parent: Span | None = None
    ) -> Inside:
        """A span for a `with` block, current within it."""
        return Inside(self, self.begin(kind, name, attributes, parent))

    # -- sessions -------------------------------------------------------------------------------

    def session_begins(self, session_id: str) -> None:
        """A conversation is under way from now on."""
        attributes = {"gen_ai.conversation.id": session_id}
        self._sessions[session_id] = self.begin("session", f"session {session_id}", attributes)

    def session_ends(self, session_id: str) -> None:
        """The end of a conversation, which is now written; one that never began is ignored."""
        span = self._sessions.pop(session_id, None)
        if span is not None:
            self.end(span)
            self.flush()

    def around(self, session_id: str, *, inside: bool) -> Span | None:
        """Parent of a turn: the current span if it is `inside` of one, else its session."""
        session = self._sessions.get(session_id)
        return (current.get() or session) if inside else (session or current.get())

    # -- one tool call, begun and ended by the pipeline -------------------------------------------

    def call_begins(self, state: CallState) -> Span:
        """The span of a call, current from now on."""
        context = state.context
        around = current.get()
        state.around = around
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": state.tool,
            "gen_ai.tool.call.id": state.call_id,
        }
        if context.session_id:
            attributes["gen_ai.conversation.id"] = context.session_id
            around = around or self._sessions.get(context.session_id)
        span = self.begin("tool", f"execute_tool {state.tool}", attributes, around)
        current.set(span)
        return span

    def call_ends(self, state: CallState, span: Span, outcome: ToolOutcome) -> None:
        """End the span of a call; its parent is current again."""
        current.set(state.around)
        attributes = span.attributes
        attributes["gen_ai.tool.call.arguments"] = state.noted
        if state.verdict != "allowed":
            attributes["hermes.verdict"] = state.verdict
        if outcome.rule:
            attributes["hermes.rule"] = outcome.rule
        if outcome.status != "ok":
            attributes["error.type"] = outcome.status
        self.end(span, _STATUS.get(outcome.status, "error"), outcome.error or "")

    # -- writing --------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write the spans that have ended; those that can't be written are tried again later."""
        lines = self._buffer.drain(self._write)
        if lines and self.export is not None:
            self.export(lines)

    def _write(self, ended: list[Span]) -> list[dict[str, Any]]:
        # A span that is open for this long may never end.
        begun = [span for span in list(self._open.values()) if not span.noted]
        lines = self._lines(ended)
        if ended or begun:
            self.files.append([*lines, *self._lines(begun)])
        for span in begun:
            span.noted = True
        return lines

    def _lines(self, spans: Sequence[Span]) -> list[dict[str, Any]]:
        found = []
        for span in spans:
            try:
                found.append(self._line(span))
            except Exception:  # what can't be masked is not written, and the others are
                log.exception("a span of %s can't be written", span.kind)
        return found

    def _line(self, span: Span) -> dict[str, Any]:
        """A span as it is written: texts masked, and cut."""
        attributes = {"hermes.kind": span.kind, **span.attributes}
        for key, value in attributes.items():
            if isinstance(value, str):
                attributes[key] = self._shown(value)
        line: dict[str, Any] = {
            "trace_id": span.trace,
            "span_id": span.id,
            "parent_span_id": span.parent,
            "name": self._shown(span.name),
            "kind": "client" if span.kind == "chat" else "internal",
            "start_time_unix_nano": span.started,
            "end_time_unix_nano": span.ended,
            "status": span.status,
        }
        if span.error:
            line["error"] = self._shown(span.error)
        line["attributes"] = attributes
        return line

    def _shown(self, text: str) -> str:
        # Masked before it is cut: half of a secret is not known for one.
        masked = self.redact(text[:_LOOKED_AT])
        return masked if len(masked) <= _CUT else f"{masked[:_CUT]}… ({len(text)} characters)"


class Inside:
    """A `with` block that is a span: `with tracer.inside(…) as span`."""

    __slots__ = ("_around", "span", "tracer")

    def __init__(self, tracer: Tracer, span: Span) -> None:
        self.tracer = tracer
        self.span = span

    def __enter__(self) -> Span:
        self._around = current.get()
        current.set(self.span)
        return self.span

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        current.set(self._around)
        if kind is None:
            self.tracer.end(self.span, self.span.status if self.span.status != "open" else "ok")
            return
        self.span.attributes["error.type"] = kind.__name__
        stopped = kind.__name__ in ("CancelledError", "KeyboardInterrupt", "GeneratorExit")
        self.tracer.end(self.span, "cancelled" if stopped else "error", str(error))


_STATUS: dict[str, Status] = {"ok": "ok", "refused": "refused", "cancelled": "cancelled"}


_NEWEST = "spans.jsonl"
# How many files the room is made of.
_PARTS = 4
_DAY = 86_400.0


class SpanFiles:
    """The files of one folder; several processes may share it."""

    def __init__(
        self,
        folder: str | None = None,
        *,
        max_bytes: int = 64 * 1024**2,
        keep_days: float = 14,
    ) -> None:
        self.folder = folder or home_path("traces")
        self.path = os.path.join(self.folder, _NEWEST)
        self._max_bytes = max_bytes
        self._keep_days = keep_days
        self._tidied = 0.0
        self._written = False

    def append(self, lines: Sequence[dict[str, Any]]) -> None:
        """Append lines; a full file is renamed, and files beyond the limits are removed."""
        if self._written and not os.path.isdir(os.path.dirname(self.folder)):
            # The home was removed meanwhile: it is not ours to make again.
            return
        limit = max(self._max_bytes // _PARTS, 1)
        rotated = os.path.join(self.folder, f"spans-{time.time_ns()}.jsonl")
        data = b"".join(map(json_line, lines))
        size = append_lines(self.path, data, max_bytes=limit, rotated=rotated)
        self._written = True
        if size >= limit or time.time() - self._tidied > 3600:
            self._tidy()

    def read(self) -> Iterator[dict[str, Any]]:
        """Every readable line, oldest first."""
        for path in self.paths():
            try:
                for _, line in read_json_lines(path):
                    if isinstance(line, dict) and line.get("span_id"):
                        yield line
            except FileNotFoundError:
                # Another process has removed it.
                continue

    def paths(self) -> list[str]:
        """The files there are, oldest first."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        ours = [n for n in names if n.startswith("spans") and n.endswith(".jsonl")]
        # "-" sorts before ".": the newest, which has no time, comes last.
        return [os.path.join(self.folder, name) for name in sorted(ours)]

    def _tidy(self) -> None:
        """Remove expired files, then the oldest beyond the size limit."""
        self._tidied = time.time()
        found = []
        for path in self.paths():
            try:
                state = os.stat(path)
            except FileNotFoundError:
                continue
            found.append((path, state.st_mtime, state.st_size))
        total = sum(size for _, _, size in found)
        for path, changed, size in found:
            old = self._tidied - changed > self._keep_days * _DAY
            if path != self.path and (old or total > self._max_bytes):
                total -= size
                _remove(path)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        # Another process was first.
        return


if TYPE_CHECKING:
    Line = dict[str, Any]

INPUT, OUTPUT = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
_SESSION = "gen_ai.conversation.id"


class Trace:
    """Spans with one trace id; `spans` are lines as they were written, in the order of begin."""

    def __init__(self, trace_id: str, spans: list[Line]) -> None:
        self.id = trace_id
        self.spans = sorted(spans, key=lambda span: int(span["start_time_unix_nano"]))

    @property
    def session(self) -> str:
        """The session it belongs to; empty for a call outside of any."""
        named = (span["attributes"].get(_SESSION, "") for span in self.spans)
        return next(filter(None, named), "")

    @property
    def name(self) -> str:
        """Name of the outermost span."""
        return str(next(self.tree())[1]["name"])

    @property
    def started(self) -> float:
        """When it began, in seconds since 1970."""
        return float(self.spans[0]["start_time_unix_nano"]) / 1e9

    @property
    def seconds(self) -> float:
        """How long it took as far as anybody knows."""
        last = max(max(s["end_time_unix_nano"], s["start_time_unix_nano"]) for s in self.spans)
        return float(last) / 1e9 - self.started

    def summary(self) -> dict[str, Any]:
        """The trace at a glance; tokens are those of its model calls."""
        chats = [span["attributes"] for span in self._of("chat")]
        return {
            "trace_id": self.id,
            "session": self.session,
            "name": self.name,
            "started": self.started,
            "seconds": round(self.seconds, 6),
            "spans": len(self.spans),
            "model_calls": len(chats),
            "tool_calls": len(self._of("tool")),
            "agents": len(self._of("agent")),
            "input_tokens": sum(chat.get(INPUT, 0) for chat in chats),
            "output_tokens": sum(chat.get(OUTPUT, 0) for chat in chats),
            "errors": sum(span["status"] == "error" for span in self.spans),
            "open": sum(span["status"] == "open" for span in self.spans),
        }

    def tree(self) -> Iterator[tuple[str, Line]]:
        """Every span with its tree prefix, parents before children.

        A span without a recorded parent is a root.
        """
        known = {span["span_id"] for span in self.spans}
        below: dict[str, list[Line]] = {}
        for span in self.spans:
            parent = span["parent_span_id"]
            below.setdefault(parent if parent in known else "", []).append(span)
        # No recursion: how deep agents work for agents is not for us to say.
        pending = [("", "", span) for span in reversed(below.pop("", []))]
        while pending:
            drawn, ahead, span = pending.pop()
            yield drawn, span
            children = below.pop(span["span_id"], [])
            for place, child in enumerate(reversed(children)):
                branch, further = ("└ ", "  ") if place == 0 else ("├ ", "│ ")
                pending.append((ahead + branch, ahead + further, child))
        # Only in files that somebody changed: spans that are inside of themselves.
        yield from (("", span) for rest in below.values() for span in rest)

    def _of(self, kind: str) -> list[Line]:
        return [span for span in self.spans if span["attributes"].get("hermes.kind") == kind]


def traces(lines: Iterable[Line]) -> list[Trace]:
    """The traces that lines are of, the one that began last first."""
    spans: dict[str, dict[str, Line]] = {}
    for line in lines:
        try:
            of_trace = spans.setdefault(line["trace_id"], {})
            known = of_trace.get(line["span_id"])
            # A span may have been noted before its end: the line of its end counts.
            if known is None or not known["end_time_unix_nano"]:
                of_trace[line["span_id"]] = line
        except (KeyError, TypeError):
            # Somebody else's line.
            continue
    found = [Trace(trace_id, list(of_trace.values())) for trace_id, of_trace in spans.items()]
    return sorted(found, key=lambda trace: -trace.started)


def meant(found: list[Trace], name: str) -> list[Trace]:
    """The traces that a name means: `last`, the start of a trace's id, or a session.

    Raises `HermesError` where that is none, or not clear.
    """
    if not found:
        raise HermesError("there are no traces yet")
    if name == "last":
        return found[:1]
    of_session = [trace for trace in found if trace.session and _is(trace.session, name)]
    if of_session:
        return of_session[::-1]
    by_id = [trace for trace in found if name and trace.id.startswith(name)]
    if len(by_id) > 1:
        some = ", ".join(trace.id[:12] for trace in by_id[:5])
        raise HermesError(f"{name!r:.80} may be any of {some}", hint="Write more of the id.")
    if not by_id:
        raise HermesError(
            f"no trace is called {name!r:.80}", hint="`hermes trace list` has their names."
        )
    return by_id


def _is(session: str, name: str) -> bool:
    return session == name or session.partition("-")[2] == name


_SECONDS = 5.0
# How long a collector that does not answer is left alone, and what is kept for it meanwhile.
_REST_SECONDS = 30.0
_KEPT = 2_000
_KINDS = {"internal": 1, "client": 3}
_OK, _ERROR = 1, 2


def exporter(endpoint: str, environ: Mapping[str, str]) -> Exporter:
    """Exporter to an endpoint, by default the one in the environment.

    Raises `ConfigError` where there is none.
    """
    address = endpoint.strip() or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip()
    whole = "" if endpoint.strip() else environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
    url = whole.strip() or (f"{address.rstrip('/')}/v1/traces" if address else "")
    if not url.startswith(("http://", "https://")):
        raise ConfigError(
            f"trace.export is on, and {url[:80]!r} is no address to send traces to",
            hint="hermes config set trace.otlp_endpoint http://127.0.0.1:4318",
        )
    url = url.replace("/v1/traces/v1/traces", "/v1/traces")
    return Exporter(url, _headers(environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")))


class Exporter:
    """Sends ended spans; failed ones are kept for the next request."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self.url = url
        self._headers = {**(headers or {}), "Content-Type": "application/json"}
        self._waiting: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._not_before = 0.0
        self._failing = False

    def __call__(self, lines: Sequence[dict[str, Any]]) -> None:
        """Send these, and those that are waiting."""
        with self._lock:
            self._waiting = [*self._waiting, *lines][-_KEPT:]
            if time.monotonic() < self._not_before:
                return
            trouble = self._post(to_json(body(self._waiting)).encode())
            if not trouble:
                self._waiting, self._failing = [], False
                return
            self._not_before = time.monotonic() + _REST_SECONDS
            if not self._failing:
                log.warning("traces can't be sent to %s: %s", self.url, trouble)
            self._failing = True

    def _post(self, data: bytes) -> str:
        """Send one request; the error text, or empty."""
        import http.client
        import urllib.request

        request = urllib.request.Request(self.url, data, self._headers)
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                answer.read()
        except (OSError, http.client.HTTPException, ValueError) as error:
            return str(error) or type(error).__name__
        return ""


def body(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Lines of ended spans as one request to a collector."""
    about = {"service.name": "hermes", "service.version": __version__}
    scope = {"name": "hermes", "version": __version__}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _pairs(about)},
                "scopeSpans": [{"scope": scope, "spans": [_span(line) for line in lines]}],
            }
        ]
    }


def _span(line: Mapping[str, Any]) -> dict[str, Any]:
    failed = line["status"] == "error"
    status: dict[str, Any] = {"code": _ERROR if failed else _OK}
    if failed and line.get("error"):
        status["message"] = line["error"]
    span = {
        "traceId": line["trace_id"],
        "spanId": line["span_id"],
        "name": line["name"],
        "kind": _KINDS[line["kind"]],
        # 64 bits are text in this form of JSON.
        "startTimeUnixNano": str(line["start_time_unix_nano"]),
        "endTimeUnixNano": str(line["end_time_unix_nano"]),
        "attributes": _pairs({**line["attributes"], "hermes.status": line["status"]}),
        "status": status,
    }
    return {**span, "parentSpanId": line["parent_span_id"]} if line["parent_span_id"] else span


def _pairs(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": str(value)}


def _headers(text: str) -> dict[str, str]:
    """`name=value,name=value`, as OpenTelemetry writes them."""
    from urllib.parse import unquote

    pairs = (part.partition("=") for part in text.split(","))
    return {unquote(name.strip()): unquote(value.strip()) for name, mark, value in pairs if mark}
