"""Span files: trace spans as rotating JSON lines, and reading them back as trees."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import msgspec

from hermes.core.errors import HermesError
from hermes.core.home import flock, home_path, is_current, make_private

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any


_NEWEST = "spans.jsonl"
# How many files the room is made of.
_PARTS = 4
_DAY = 86_400.0
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


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
        """Write lines behind those that are there."""
        if self._written and not os.path.isdir(os.path.dirname(self.folder)):
            # The home was removed meanwhile: it is not ours to make again.
            return
        data = b"".join(_encoded(line) + b"\n" for line in lines)
        handle = self._locked()
        try:
            size = os.fstat(handle).st_size
            if size and not _ends_a_line(handle, size):
                # A crash cut the last line short; ours must not become part of it.
                data = b"\n" + data
            with memoryview(data) as rest:
                done = 0
                while done < len(rest):
                    done += os.write(handle, rest[done:])
            self._written = True
            if size + len(data) >= max(self._max_bytes // _PARTS, 1):
                aside = f"spans-{time.time_ns()}.jsonl"
                os.rename(self.path, os.path.join(self.folder, aside))
                self._tidied = 0.0
        finally:
            os.close(handle)
        if time.time() - self._tidied > 3600:
            self._tidy()

    def read(self) -> Iterator[dict[str, Any]]:
        """Every line that can be read, oldest first; half of one at the end is left out."""
        for path in self.paths():
            try:
                with open(path, "rb") as file:
                    for line in file:
                        try:
                            found = _decode(line)
                        except (msgspec.DecodeError, UnicodeDecodeError):
                            continue
                        if isinstance(found, dict) and found.get("span_id"):
                            yield found
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

    def _locked(self) -> int:
        """The newest file, open and ours alone until it is closed."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        while True:
            try:
                handle = os.open(self.path, flags, 0o600)
            except FileNotFoundError:
                make_private(self.folder)
                continue
            flock(handle)
            if is_current(handle, self.path):
                return handle
            # While we waited another process has put it aside.
            os.close(handle)

    def _tidy(self) -> None:
        """Remove what is too old, then the oldest of what is too much."""
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


def _encoded(line: dict[str, Any]) -> bytes:
    try:
        return _encode(line)
    except UnicodeEncodeError:
        # A model may send lone surrogates even as a name.
        return _encode(_spelled(line))


def _spelled(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_spelled(key): _spelled(inner) for key, inner in value.items()}
    return [_spelled(inner) for inner in value] if isinstance(value, list) else value


def _ends_a_line(handle: int, size: int) -> bool:
    os.lseek(handle, size - 1, os.SEEK_SET)
    return os.read(handle, 1) == b"\n"


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
        """What it is about: the outermost span."""
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
        """Every span with the branches that are drawn before it; parents before children.

        One whose parent was never written stands at the top.
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
