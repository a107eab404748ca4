"""Turn view: the answer block by block, a line for each call, a status line."""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING

from hermes.interfaces.chat.call_lines import Call, expanded, finished_lines, running_line
from hermes.interfaces.chat.markdown import Blocks, rendered
from hermes.interfaces.cli.progress import telling
from hermes.interfaces.cli.screen_text import cut, safe, safe_line, styled, wrapped, wrapped_styled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from hermes.runtime.events import Event

    class Face(Protocol):
        """Where a chat is shown. Both methods may be called from any thread."""

        @property
        def width(self) -> int:
            """The columns there are."""
            ...

        def show(self, text: str) -> None:
            """Print lines for good: safe text with styles of our own."""
            ...

        def refresh(self) -> None:
            """Something that is shown for now has changed."""
            ...


SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
# How many lines of an unfinished block are shown, and how many results can be looked at again.
_LIVE_LINES = 6
# How much is shown of what the person said: they know the rest.
_SAID_LINES = 12
_LIVE_CHARACTERS = 2_000
_KEPT = 500


class View:
    """What is shown of one conversation."""

    def __init__(self, face: Face) -> None:
        self.face = face
        self.redact: Callable[[str], str] = lambda text: text
        self._lock = threading.RLock()
        self._blocks = Blocks()
        self._heard = self._printed = False
        self._last = ""
        self._numbers = itertools.count(1)
        self._running: dict[str, Call] = {}
        self._calls: dict[int, Call] = {}
        self._todos = ""
        self._doing = ""
        self._since = 0.0

    # -- what is printed ----------------------------------------------------------------------

    def note(self, text: str, style: str = "dim") -> None:
        """A remark of the chat itself."""
        lines = wrapped(safe(text), self.face.width - 1)
        self._print("note", "\n".join(styled(line, style) for line in lines))

    def trouble(self, error: BaseException) -> None:
        """What went wrong, in one line, and what to do next."""
        hint = getattr(error, "hint", None)
        text = f"{error}" + (f" ({hint})" if hint else "")
        self.note(f"✗ {safe_line(self.redact(text))}", "red")

    def bug(self, error: BaseException) -> None:
        """The same for anything that was raised; what nobody foresaw is logged as a whole."""
        from hermes.core.errors import HermesError

        if not isinstance(error, HermesError | OSError):
            import traceback

            from hermes.core.log import Log

            told = "".join(traceback.format_exception(error))
            Log("hermes.chat").warning("the chat met a bug:\n%s", told)
            error = HermesError(f"unexpected {type(error).__name__}: {error}")
        self.trouble(error)

    def plain(self, text: str) -> None:
        """A text as it is, but safe."""
        self._print("note", "\n".join(wrapped(safe(text), self.face.width - 1)))

    def printed(self, text: str) -> None:
        """What a command of the command line printed, with its styles."""
        self._print("note", _wrapped(text.split("\n"), self.face.width))

    def ask(self, lines: Sequence[str]) -> None:
        """What the person is asked about: safe lines, with styles of our own."""
        self._print("question", _wrapped(lines, self.face.width))

    def person(self, text: str, sign: str = "❯") -> None:
        """What the person said."""
        first, *more = wrapped(safe(text), self.face.width - 3)
        if len(more) > _SAID_LINES:
            more[_SAID_LINES - 1 :] = [f"… {len(more) - _SAID_LINES + 1} more lines"]
        lines = [styled(f"{sign} {first}", "bold"), *(styled(f"  {one}", "bold") for one in more)]
        self._print("person", "\n".join(lines))

    def markdown(self, text: str) -> None:
        """A whole text at once."""
        with self._lock:
            blocks = Blocks()
            for block in [*blocks.feed(text), *blocks.end()]:
                self._block(block)

    # -- what happens -------------------------------------------------------------------------

    def begin(self, doing: str = "thinking") -> None:
        """A turn begins, or something else that takes its time."""
        with self._lock:
            self._doing, self._since = doing, time.monotonic()
            self._fresh()
        self.face.refresh()

    def end(self) -> None:
        """A turn has ended, however it did: what was half said is shown as it is."""
        with self._lock:
            for block in self._blocks.end():
                self._block(block)
            self._fresh()
            self._doing = ""
        self.face.refresh()

    def model(self, event: Any) -> None:
        """Something that the model said."""
        kind = type(event).__name__
        with self._lock:
            if kind == "TextDelta":
                self._heard, self._doing = True, ""
                for block in self._blocks.feed(event.text):
                    self._block(block)
            elif kind == "ReasoningDelta":
                self._doing = "thinking"
            elif kind == "CallDelta":
                self._doing = f"writing {safe_line(event.name)} ({event.size:,} characters)"
            elif kind == "Waiting":
                self._doing = f"waiting {event.seconds:.1f} s: {safe_line(event.reason)}"
            elif kind == "Noted":
                self.note(safe_line(event.text), "yellow")
            elif kind == "Discarded":
                void = "what came so far is void; " if self._printed else ""
                self._fresh()
                self.note(f"↻ {void}asking again: {safe_line(event.reason)}", "yellow")
            elif kind == "Done":
                if not self._heard:
                    self._blocks.feed(event.message.text)
                for block in self._blocks.end():
                    self._block(block)
                self._fresh()
                self._doing = "thinking" if event.message.calls else ""
        self.face.refresh()

    def tool(self, event: Event) -> None:
        """Something that happened to a call."""
        with self._lock:
            if event.kind == "started":
                self._call(event, event.data.get("arguments"))
            elif event.kind == "approval_requested":
                self._call(event, event.data["request"].arguments)
            elif event.kind == "progress":
                self._progress(event, str(event.data.get("message") or ""))
            elif event.kind == "output":
                if event.tool == "todo":
                    self._todo(str(event.data.get("text") or ""))
                else:
                    self._progress(event, str(event.data.get("text") or "").rstrip())
            elif event.kind == "finished":
                self._finished(event)
            elif event.kind == "trouble":
                self.note(f"! {safe_line(str(event.data.get('message')))}", "yellow")
        self.face.refresh()

    @property
    def active(self) -> bool:
        """Whether something goes on."""
        return bool(self._doing or self._running)

    # -- what is shown for now ----------------------------------------------------------------

    def now(self, width: int) -> list[str]:
        """Lines about what goes on at this moment, for a window of so many columns."""
        with self._lock:
            sign = SPINNER[int(time.monotonic() * 8) % len(SPINNER)]
            lines = self._unfinished(width)
            lines += [running_line(call, sign, width) for call in self._running.values()]
            if self._doing and not self._running:
                seconds = time.monotonic() - self._since
                lines.append(cut(f"{sign} {self._doing} {seconds:.0f} s", width - 1))
            return lines

    def _unfinished(self, width: int) -> list[str]:
        # Up to the last blank: a secret is known by its whole.
        pending = self._blocks.pending
        end = max(pending.rfind(" "), pending.rfind("\n")) + 1
        start = max(end - _LIVE_CHARACTERS, 0)
        if start:
            start = pending.find(" ", start, end) + 1
        shown = safe(self.redact(pending[start:end])).strip()
        return wrapped(shown, width - 1)[-_LIVE_LINES:] if shown else []

    # -- results that are looked at again -----------------------------------------------------

    def expand(self, number: int | None) -> bool:
        """Show the whole result of a call, the last one if None; whether there is such a call."""
        with self._lock:
            known = number if number is not None else max(self._calls, default=0)
            call = self._calls.get(known)
            if call is not None:
                self._print("note", "\n".join(expanded(call, self.face.width)))
            return call is not None

    def known_calls(self) -> list[tuple[str, str]]:
        """The numbers of the last calls, newest first, and what they were."""
        with self._lock:
            last = list(self._calls.values())[-20:]
        return [(str(call.number), f"{call.tool} {call.target}") for call in reversed(last)]

    # -- pieces -------------------------------------------------------------------------------

    def _fresh(self) -> None:
        self._blocks = Blocks()
        self._heard = self._printed = False

    def _block(self, block: Any) -> None:
        shown = rendered(block._replace(text=self.redact(block.text)), self.face.width)
        if block.close and self._last == "text":
            self._last = "text-close"
        self._print("text", shown)
        self._printed = True

    def _call(self, event: Event, arguments: Any = None) -> Call:
        emoji = event.data.get("emoji") or ""
        call = self._running.get(event.call_id)
        if call is not None:
            # It was asked about, and has begun now.
            call.emoji = safe_line(emoji)
            return call
        call = Call(next(self._numbers), event.tool, emoji, self.redact(telling(arguments)))
        self._running[event.call_id] = self._calls[call.number] = call
        self._calls.pop(call.number - _KEPT, None)
        return call

    def _progress(self, event: Event, text: str) -> None:
        call = self._running.get(event.call_id)
        if call is not None and text.strip():
            call.note = safe_line(text.strip().rsplit("\n", 1)[-1])

    def _finished(self, event: Event) -> None:
        # One that was refused never started.
        call = self._running.get(event.call_id) or self._call(event)
        self._running.pop(event.call_id, None)
        call.outcome = event.data["outcome"]
        self._print("call", "\n".join(finished_lines(call, call.outcome, self.face.width)))

    def _todo(self, listed: str) -> None:
        if listed != self._todos:
            self._todos = listed
            lines = [cut(safe_line(line), self.face.width - 3) for line in listed.splitlines()]
            self._print("call", "\n".join(f"  {line}" for line in lines))

    def _print(self, kind: str, text: str) -> None:
        """Print, with a blank line between things of different kinds."""
        with self._lock:
            together = {kind} - {"text", "person"}
            if kind == "note":
                together.add("person")
            elif kind == "text":
                together.add("text-close")
            apart = self._last not in together | {""}
            self._last = kind
            self.face.show(f"\n{text}" if apart else text)


def _wrapped(lines: Sequence[str], width: int) -> str:
    """Lines that may have styles in them, broken at the end of the window."""
    return "\n".join(part for line in lines for part in wrapped_styled(line, width))
