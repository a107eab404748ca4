"""Progress of a run: one line a call on stderr, or JSON events; failures inside calls."""

from __future__ import annotations

import asyncio
import threading
import time

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from hermes.core.entry import ToolOutcome
    from hermes.core.model_protocol import Event as ModelEvent
    from hermes.interfaces.cli.terminal import Terminal
    from hermes.runtime.hooks import Event as ToolEvent
    from hermes.safety.redaction.redactor import Redactor

# How often a long wait is explained.
_WAIT_SECONDS = 30.0
_LINE = 200
_ARGUMENT = 60
# The argument that describes a call best: the first of these that it has.
_MAIN_ARGUMENTS = (
    "path",
    "command",
    "pattern",
    "url",
    "query",
    "question",
    "goal",
    "tasks",
    "action",
    "archive",
    "name",
)


class Progress:
    """Reports the events of a run: remarks on stderr, JSON lines on stdout."""

    def __init__(
        self,
        terminal: Terminal,
        redactor: Redactor,
        *,
        closed: Callable[[], None],
        calls: bool = True,
        silent: bool = False,
        lines: bool = False,
    ) -> None:
        """Report on `terminal`.

        Args:
            terminal: Where to print.
            redactor: Removes secrets.
            closed: Called once, from any thread, when the reader of the JSON lines has gone.
            calls: Print a remark for each call; long waits are always remarked on.
            silent: Print no remarks.
            lines: Print a JSON line on stdout for every event.
        """
        self._terminal = terminal
        self._redactor = redactor
        self._closed = closed
        self._calls = calls
        self._silent = silent
        self._lines = lines
        self._lock = threading.Lock()
        self._reset_streams()
        self._running: dict[str, str] = {}
        self._asked: set[str] = set()
        self._since = time.monotonic()

    def _reset_streams(self) -> None:
        # A secret may be split over several deltas.
        self._streams = {kind: self._redactor.stream() for kind in ("TextDelta", "ReasoningDelta")}

    def note(self, text: str) -> None:
        """Print a remark."""
        if not self._silent:
            self._terminal.note(text)

    def model_event(self, event: ModelEvent) -> None:
        """Report an event of the model's streamed answer."""
        # Not at start-up: whoever has an event has loaded this module already.
        from hermes.core import model_protocol as protocol

        self._since = time.monotonic()
        match event:
            case protocol.TextDelta() | protocol.ReasoningDelta():
                if self._lines:
                    kind = type(event).__name__
                    self._text(kind, self._streams[kind].feed(event.text))
            case protocol.Done():
                for kind, stream in self._streams.items():
                    self._text(kind, stream.close())
            case protocol.Discarded(reason=reason):
                self._reset_streams()
                self._remark("Discarded", f"asking the model again: {reason}", reason=reason)
            case protocol.Waiting(reason=reason, seconds=seconds):
                text = f"waiting {seconds:.1f} s: {reason}"
                self._remark("Waiting", text, seconds=seconds, reason=reason)
            case protocol.Noted(text=text):
                self._remark("Noted", text, text=text)

    def tool_event(self, event: ToolEvent) -> None:
        """Report an event of a tool call."""
        self._since = time.monotonic()
        match event.kind:
            case "approval_requested":
                arguments = self._redactor.redact_value(dict(event.data["request"].arguments))
                self._running[event.call_id] = _call_line(event.tool, "", arguments)
                self._asked.add(event.call_id)
            case "started":
                self._running[event.call_id] = _call_line(
                    event.tool, event.data.get("emoji") or "", event.data.get("arguments")
                )
                self._asked.discard(event.call_id)
                self._line(type="call", id=event.call_id, tool=event.tool, **event.data)
            case "finished":
                call = self._running.pop(event.call_id, event.tool)
                self._asked.discard(event.call_id)
                outcome = event.data["outcome"]
                self._line(type="outcome", id=event.call_id, status=outcome.status)
                if self._calls:
                    failed = not outcome.ok and (outcome.error or outcome.status)
                    error = failed or inner_failure(outcome)
                    end = f": {error}" if error else ""
                    inside = event.call_id.rpartition(".")[0] in self._running
                    indent = "  " if inside else ""
                    self.note(
                        f"{indent}{'✗' if error else '✓'} {call} {outcome.seconds:.1f} s{end}"
                    )

    async def explain_waits(self) -> None:
        """Print from time to time for which calls the run waits."""
        while True:
            await asyncio.sleep(1.0)
            if time.monotonic() - self._since >= _WAIT_SECONDS:
                self._since = time.monotonic()
                self._remark("Waiting", f"still waiting for {self.awaited}", reason=self.awaited)

    @property
    def awaited(self) -> str:
        """The running calls, or the model."""
        calls = {
            f"your answer about {line}" if call in self._asked else line: None
            for call, line in list(self._running.items())
        }
        return ", ".join(calls) or "the model"

    def _text(self, kind: str, text: str) -> None:
        if text:
            self._line(type=kind, text=text)

    def _remark(self, kind: str, remark: str, **fields: Any) -> None:
        self._line(type=kind, **fields)
        self.note(remark)

    def _line(self, **fields: Any) -> None:
        if not self._lines:
            return
        from hermes.core.json_text import to_json

        with self._lock:
            try:
                self._terminal.out(to_json(fields))
                self._terminal.stdout.flush()
            except BrokenPipeError:
                self._lines = False
                self._closed()


def main_argument(arguments: Mapping[str, Any] | None) -> str:
    """The argument that describes a call best, as one line; empty when there is none."""
    arguments = arguments or {}
    named = [_goals(arguments[name]) for name in _MAIN_ARGUMENTS if arguments.get(name)]
    texts = [value for value in arguments.values() if isinstance(value, str) and value.strip()]
    return _one_line(str((named or texts or [""])[0])[:2_000])


def _goals(value: Any) -> Any:
    """The goals of a list of tasks; other values as they are."""
    if not isinstance(value, list):
        return value
    goals = [task["goal"] for task in value if isinstance(task, dict) and task.get("goal")]
    return f"{len(goals)}: {'; '.join(map(str, goals))}" if goals else value


def _call_line(tool: str, emoji: str, arguments: Mapping[str, Any] | None) -> str:
    argument = main_argument(arguments)
    short = argument if len(argument) <= _ARGUMENT else f"{argument[: _ARGUMENT - 1]}…"
    return f"{emoji or ''} {tool} {short}".strip()


def inner_failure(outcome: ToolOutcome) -> str:
    """A failure inside a successful call, in one line: exit code of a command, failed agent."""
    if not outcome.ok:
        return ""
    try:
        value = outcome.value
    except ValueError:
        # Truncated for the model: no JSON any more.
        return ""
    return "; ".join(_failures(value))[:_LINE]


def _failures(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    code = value.get("exit_code")
    if isinstance(code, int) and code:
        last = _last_line(value.get("meaning") or value.get("stderr"))
        yield f"exit code {code}: {last}" if last else f"exit code {code}"
    elif "agent" in value and _is_failure(value.get("status")):
        reason = _last_line(value.get("reason"))
        status = f"{value['status']}: {reason}" if reason else str(value["status"])
        yield f"{value['agent']} {status}"
    elif isinstance(value.get("results"), list):
        for result in value["results"]:
            yield from _failures(result)


def _is_failure(status: Any) -> bool:
    from hermes.agent.delegation.child import ELSEWHERE
    from hermes.agent.delegation.child_report import UNFINISHED

    return isinstance(status, str) and status not in ("completed", ELSEWHERE, *UNFINISHED)


def _last_line(text: Any) -> str:
    lines = str(text or "").strip().splitlines()
    return _one_line(lines[-1][:_LINE]) if lines else ""


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
