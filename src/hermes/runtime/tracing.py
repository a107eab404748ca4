"""Tracing: spans of sessions, turns, model requests and calls, with OpenTelemetry GenAI attribute
names.
"""

from __future__ import annotations

import os
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING

from hermes.core.log import Log
from hermes.runtime.json_lines import FULL, LineBuffer
from hermes.safety.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Any, Literal

    from hermes.core.entry import ToolOutcome
    from hermes.runtime.call_state import CallState
    from hermes.runtime.span_files import SpanFiles

    Kind = Literal["session", "turn", "chat", "tool", "agent", "approval"]
    Status = Literal["open", "ok", "error", "refused", "cancelled"]

log = Log("hermes.tracing")

_CUT = 1_000
# As much of a text as is looked at for secrets: none begins in what is shown and ends behind this.
_LOOKED_AT = 20_000

current: ContextVar[Span | None] = ContextVar("hermes.span", default=None)


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
        self.id = os.urandom(8).hex()
        self.parent = parent.id if parent is not None else ""
        self.trace: str = parent.trace if parent is not None else os.urandom(16).hex()
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
            from hermes.runtime.span_files import SpanFiles

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
