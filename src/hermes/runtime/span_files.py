"""Span files: trace spans as rotating JSON lines, and reading them back as trees."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.core.home import home_path
from hermes.runtime.json_lines import append_lines, json_line, read_json_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any


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
