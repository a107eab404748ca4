"""Progress of a run: one line a call on stderr, or JSON events; failures inside calls."""

from __future__ import annotations

import asyncio
import threading
import time

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from hermes.core.entry import ToolOutcome
    from hermes.interfaces.cli.terminal import Terminal
    from hermes.runtime.events import Event
    from hermes.safety.redaction.redactor import Redactor


_LINE = 200


def setback(outcome: ToolOutcome) -> str:
    """What the result of a call says did not work, in one line; empty when it says nothing."""
    if not outcome.ok:
        return ""
    try:
        value = outcome.value
    except ValueError:
        # Cut for a model, and no JSON any more.
        return ""
    return "; ".join(_told(value))[:_LINE]


def _told(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    code = value.get("exit_code")
    if isinstance(code, int) and code:
        last = _last_line(value.get("meaning") or value.get("stderr"))
        yield f"exit code {code}: {last}" if last else f"exit code {code}"
    elif "agent" in value and _went_wrong(value.get("status")):
        why = _last_line(value.get("reason"))
        told = f"{value['status']}: {why}" if why else str(value["status"])
        yield f"{value['agent']} {told}"
    elif isinstance(value.get("results"), list):
        for one in value["results"]:
            yield from _told(one)


def _went_wrong(status: Any) -> bool:
    from hermes.agent.delegation.child import ELSEWHERE
    from hermes.agent.delegation.child_report import UNFINISHED

    return isinstance(status, str) and status not in ("completed", ELSEWHERE, *UNFINISHED)


def _last_line(text: Any) -> str:
    lines = str(text or "").strip().splitlines()
    if not lines:
        return ""
    return " ".join("".join(c if c.isprintable() else " " for c in lines[-1][:_LINE]).split())


# The argument that says most about a call, the first of these that it has.
_TELLING = (
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


def telling(arguments: Mapping[str, Any] | None) -> str:
    """The argument that says most, as one line; empty when none does."""
    given = arguments or {}
    named = [_several(given[name]) for name in _TELLING if given.get(name)]
    texts = [value for value in given.values() if isinstance(value, str) and value.strip()]
    told = str((named or texts or [""])[0])
    return " ".join("".join(c if c.isprintable() else " " for c in told[:2_000]).split())


def _several(value: Any) -> Any:
    """What a list of objects is about: the goal of each, where they have one."""
    if not isinstance(value, list):
        return value
    goals = [one["goal"] for one in value if isinstance(one, dict) and one.get("goal")]
    return f"{len(goals)}: {'; '.join(map(str, goals))}" if goals else value


def call_line(tool: str, emoji: str, arguments: Mapping[str, Any] | None) -> str:
    """A call: its sign, its name, and the argument that says most."""
    told = telling(arguments)
    short = told if len(told) <= 60 else f"{told[:59]}…"
    return f"{emoji or ''} {tool} {short}".strip()


# How often a long wait is explained.
_WAIT_SECONDS = 30.0
# What the model says, as it says it.
_SAID = ("TextDelta", "ReasoningDelta")


class Watching:
    """Hears what the model says and what happens to its calls, and passes it on."""

    def __init__(
        self,
        terminal: Terminal,
        redactor: Redactor,
        *,
        unheard: Callable[[], None],
        calls: bool = True,
        silent: bool = False,
        lines: bool = False,
    ) -> None:
        """Tell on `terminal`.

        Args:
            terminal: Where it is told.
            redactor: Takes the secrets out.
            unheard: Called once when nobody reads the events any more, from any thread.
            calls: Whether each call is a remark; what takes long always is.
            silent: No remarks at all.
            lines: A JSON line on stdout for every event.
        """
        self._terminal = terminal
        self._redactor = redactor
        self._unheard = unheard
        self._calls = calls
        self._silent = silent
        self._lines = lines
        self._lock = threading.Lock()
        self._flows = {kind: redactor.stream() for kind in _SAID}
        self._doing: dict[str, str] = {}
        self._asked: set[str] = set()
        self._since = time.monotonic()

    def say(self, text: str) -> None:
        """A remark."""
        if not self._silent:
            self._terminal.note(text)

    def model(self, event: Any) -> None:
        """Something that the model said."""
        self._since = time.monotonic()
        kind = type(event).__name__
        if kind in _SAID:
            self._said(kind, self._flows[kind].feed(event.text) if self._lines else "")
        elif kind == "Done":
            for name in _SAID:
                self._said(name, self._flows[name].close())
        elif kind == "Discarded":
            self._flows = {name: self._redactor.stream() for name in _SAID}
            self._remark(kind, f"asking the model again: {event.reason}", reason=event.reason)
        elif kind == "Waiting":
            told = f"waiting {event.seconds:.1f} s: {event.reason}"
            self._remark(kind, told, seconds=event.seconds, reason=event.reason)
        elif kind == "Noted":
            self._remark(kind, event.text, text=event.text)

    def tool(self, event: Event) -> None:
        """Something that happened to a call."""
        self._since = time.monotonic()
        if event.kind == "approval_requested":
            arguments = self._redactor.redact_value(dict(event.data["request"].arguments))
            self._doing[event.call_id] = call_line(event.tool, "", arguments)
            self._asked.add(event.call_id)
        elif event.kind == "started":
            self._doing[event.call_id] = call_line(
                event.tool, event.data.get("emoji") or "", event.data.get("arguments")
            )
            self._asked.discard(event.call_id)
            self._line(type="call", id=event.call_id, tool=event.tool, **event.data)
        elif event.kind == "finished":
            doing = self._doing.pop(event.call_id, event.tool)
            self._asked.discard(event.call_id)
            outcome = event.data["outcome"]
            self._line(type="outcome", id=event.call_id, status=outcome.status)
            if self._calls:
                trouble = setback(outcome) if outcome.ok else outcome.error or outcome.status
                end = f": {trouble}" if trouble else ""
                self.say(f"{'✗' if trouble else '✓'} {doing} {outcome.seconds:.1f} s{end}")

    async def watch(self) -> None:
        """Say from time to time what is being waited for."""
        while True:
            await asyncio.sleep(1.0)
            if time.monotonic() - self._since >= _WAIT_SECONDS:
                self._since = time.monotonic()
                self._remark("Waiting", f"still waiting for {self.awaited}", reason=self.awaited)

    @property
    def awaited(self) -> str:
        """What is being waited for."""
        doing = {
            f"your answer about {line}" if call in self._asked else line: None
            for call, line in list(self._doing.items())
        }
        return ", ".join(doing) or "the model"

    def _said(self, kind: str, text: str) -> None:
        if text:
            self._line(type=kind, text=text)

    def _remark(self, kind: str, told: str, **fields: Any) -> None:
        self._line(type=kind, **fields)
        self.say(told)

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
                self._unheard()
