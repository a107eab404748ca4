"""What is told while an agent works: to people a line for each call, to programs each event."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

from hermes.interfaces.cli.setbacks import setback
from hermes.interfaces.cli.showing import call_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hermes.interfaces.cli.terminal import Terminal
    from hermes.runtime.events import Event
    from hermes.safety.redaction.redactor import Redactor

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
        from hermes.core.jsontext import to_json

        with self._lock:
            try:
                self._terminal.out(to_json(fields))
                self._terminal.stdout.flush()
            except BrokenPipeError:
                self._lines = False
                self._unheard()
