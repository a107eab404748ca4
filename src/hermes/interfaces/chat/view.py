"""Turn view: the answer block by block, a line for each call, a status area.

Events come from any thread. Finished output is printed once; unfinished output belongs to the
status area below it, which the display redraws.
"""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING

from hermes.interfaces.chat.markdown import Blocks, rendered
from hermes.interfaces.cli.progress import inner_failure, main_argument
from hermes.interfaces.cli.terminal import (
    columns,
    cut,
    safe,
    safe_line,
    styled,
    wrapped,
    wrapped_styled,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Protocol

    from hermes.core.entry import ToolOutcome
    from hermes.core.model_protocol import Event as ModelEvent
    from hermes.runtime.hooks import Event as ToolEvent


# Lines shown of a diff, and of an expanded result.
_DIFF_LINES = 12
_RESULT_LINES = 200
_MARKS = {"ok": ("✓", "green"), "cancelled": ("■", "yellow"), "refused": ("⊘", "yellow")}
_FAILED = ("✗", "red")


class Call:
    """One tool call, running or finished; `number` names it for `/expand`.

    A call that a script makes has that in `script`; a script counts its `calls`.
    """

    __slots__ = (
        "calls", "emoji", "note", "number", "outcome", "script", "since", "target", "tool",
    )  # fmt: skip

    def __init__(self, number: int, tool: str, emoji: str = "", target: str = "") -> None:
        self.number = number
        self.tool = safe_line(tool)
        self.emoji = safe_line(emoji)
        self.target = safe_line(target)
        self.note = ""
        self.calls = 0
        self.script: Call | None = None
        self.since = time.monotonic()
        self.outcome: ToolOutcome | None = None


def running_line(call: Call, sign: str, width: int) -> str:
    """Line of a running call: target or progress, and elapsed time."""
    indent = "  " if call.script is not None else ""
    seconds = _seconds(time.monotonic() - call.since)
    return _fitted(f"{indent}{sign} {_head(call)}", call.note or call.target, seconds, width)


def finished_lines(call: Call, outcome: ToolOutcome, width: int) -> list[str]:
    """Lines of a finished call: its result, and the diff or the error."""
    error = inner_failure(outcome) if outcome.ok else outcome.error or outcome.status
    failed = outcome.ok and bool(error)
    mark, colour = _FAILED if failed else _MARKS.get(outcome.status, _FAILED)
    calls = f"{call.calls} call{'s' if call.calls > 1 else ''}, " if call.calls else ""
    end = f"{calls}{_seconds(outcome.seconds)} [{call.number}]"
    line = _fitted(f"{mark} {_head(call)}", call.target, end, width)
    lines = [styled(mark, colour) + line[len(mark) :]]
    if error:
        reason = wrapped(safe_line(error), max(width - 4, 10))
        lines += [f"  {styled(line, colour)}" for line in reason[:3]]
        if len(reason) > 3:
            lines.append(f"  … /expand {call.number}")
        return lines
    diff = list(_diff_lines(_parsed(outcome.content)))
    lines += [f"  {_coloured(cut(line, width - 3))}" for line in diff[:_DIFF_LINES]]
    if len(diff) > _DIFF_LINES:
        rest = len(diff) - _DIFF_LINES
        lines.append(styled(f"  … {rest} more lines: /expand {call.number}", "dim"))
    return lines


def expanded(call: Call, width: int) -> list[str]:
    """The whole result of a call; the middle of a very long one is left out."""
    head = styled(f"[{call.number}] {_head(call)} {call.target}".rstrip(), "bold")
    if call.outcome is None:
        return [head, "  still running"]
    value = _parsed(call.outcome.content)
    lines: list[str] = []
    for line in _readable(value):
        lines += [f"  {_coloured(part)}" for part in wrapped(safe(line), max(width - 3, 10))]
    if len(lines) > _RESULT_LINES:
        half = _RESULT_LINES // 2
        omitted = len(lines) - 2 * half
        lines = [*lines[:half], styled(f"  … {omitted} lines left out …", "dim"), *lines[-half:]]
    return [head, *lines]


def _head(call: Call) -> str:
    return f"{call.emoji} {call.tool}".strip()


def _fitted(head: str, middle: str, end: str, width: int) -> str:
    """One line: head and end whole, the middle cut to the room between them."""
    room = width - 1 - columns(head) - columns(end) - 2
    if room < 4:
        return cut(f"{head} {end}", width - 1)
    return f"{head} {cut(middle, room)} {end}" if middle else f"{head} {end}"


def _seconds(seconds: float) -> str:
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def _parsed(content: str) -> Any:
    import json

    try:
        return json.loads(content)
    except ValueError:
        return content


def _diff_lines(value: Any) -> Iterator[str]:
    """Lines of every diff in a result, without the file headers."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "diff" and isinstance(inner, str):
                for line in safe(inner).split("\n"):
                    if line.strip() and not line.startswith(("--- ", "+++ ")):
                        yield line
            else:
                yield from _diff_lines(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _diff_lines(inner)


def _coloured(line: str) -> str:
    colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return styled(line, colour) if colour else line


def _readable(value: Any) -> Iterator[str]:
    """A result as text: multi-line strings as they are, other values as JSON."""
    import json

    if isinstance(value, str):
        yield from value.split("\n")
    elif isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, str) and "\n" in inner:
                yield f"{name}:"
                yield from inner.rstrip("\n").split("\n")
            else:
                text = inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False)
                yield f"{name}: {text}"
    else:
        yield from json.dumps(value, ensure_ascii=False, indent=2).split("\n")


if TYPE_CHECKING:

    class Display(Protocol):
        """Output of a chat; its methods may be called from any thread."""

        @property
        def width(self) -> int:
            """Width in columns."""
            ...

        def show(self, text: str) -> None:
            """Print lines: safe text with styles."""
            ...

        def refresh(self) -> None:
            """Redraw the status area."""
            ...


SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
# Lines and characters shown of an unfinished block.
_LIVE_LINES = 6
_LIVE_CHARACTERS = 2_000
# Lines shown of a message that the person typed.
_MESSAGE_LINES = 12
# Calls whose results can be expanded.
_CALLS = 500


class View:
    """Display of one conversation."""

    def __init__(self, display: Display) -> None:
        self.display = display
        self.redact: Callable[[str], str] = lambda text: text
        self._lock = threading.RLock()
        self._blocks = Blocks()
        self._has_text = self._printed = False
        self._last = ""
        self._numbers = itertools.count(1)
        self._running: dict[str, Call] = {}
        self._calls: dict[int, Call] = {}
        self._todos = ""
        self._doing = ""
        self._since = 0.0

    # -- output -------------------------------------------------------------------------------

    def note(self, text: str, style: str = "dim") -> None:
        """Print a remark of the chat itself."""
        lines = wrapped(safe(text), self.display.width - 1)
        self._print("note", "\n".join(styled(line, style) for line in lines))

    def error(self, error: BaseException) -> None:
        """Print an error and its hint."""
        hint = getattr(error, "hint", None)
        text = f"{error}" + (f" ({hint})" if hint else "")
        self.note(f"✗ {safe_line(self.redact(text))}", "red")

    def failure(self, error: BaseException) -> None:
        """Print any exception; unexpected ones are logged with their traceback."""
        from hermes.core.errors import HermesError

        if not isinstance(error, HermesError | OSError):
            import traceback

            from hermes.core.log import Log

            trace = "".join(traceback.format_exception(error))
            Log("hermes.chat").warning("unexpected error in the chat:\n%s", trace)
            error = HermesError(f"unexpected {type(error).__name__}: {error}")
        self.error(error)

    def text(self, text: str) -> None:
        """Print a text, made safe."""
        self._print("note", "\n".join(wrapped(safe(text), self.display.width - 1)))

    def output(self, text: str) -> None:
        """Print the output of a CLI command, with its styles."""
        self._print("note", _wrapped(text.split("\n"), self.display.width))

    def question(self, lines: Sequence[str]) -> None:
        """Print a question: safe lines with styles."""
        self._print("question", _wrapped(lines, self.display.width))

    def message(self, text: str, sign: str = "❯") -> None:
        """Print a message of the person."""
        first, *more = wrapped(safe(text), self.display.width - 3)
        if len(more) > _MESSAGE_LINES:
            more[_MESSAGE_LINES - 1 :] = [f"… {len(more) - _MESSAGE_LINES + 1} more lines"]
        lines = [styled(f"{sign} {first}", "bold"), *(styled(f"  {line}", "bold") for line in more)]
        self._print("person", "\n".join(lines))

    def markdown(self, text: str) -> None:
        """Print a complete Markdown text."""
        with self._lock:
            blocks = Blocks()
            for block in [*blocks.feed(text), *blocks.end()]:
                self._block(block)

    # -- events -------------------------------------------------------------------------------

    def begin(self, doing: str = "thinking") -> None:
        """Start a turn or another activity, shown in the status area."""
        with self._lock:
            self._doing, self._since = doing, time.monotonic()
            self._fresh()
        self.display.refresh()

    def end(self) -> None:
        """End the turn; unfinished text is printed."""
        with self._lock:
            for block in self._blocks.end():
                self._block(block)
            self._fresh()
            self._doing = ""
        self.display.refresh()

    def model_event(self, event: ModelEvent) -> None:
        """Show an event of the model's streamed answer."""
        # Not at start-up: whoever has an event has loaded this module already.
        from hermes.core import model_protocol as protocol

        with self._lock:
            match event:
                case protocol.TextDelta():
                    self._has_text, self._doing = True, ""
                    for block in self._blocks.feed(event.text):
                        self._block(block)
                case protocol.ReasoningDelta():
                    self._doing = "thinking"
                case protocol.CallDelta():
                    self._doing = f"writing {safe_line(event.name)} ({event.size:,} characters)"
                case protocol.Waiting():
                    self._doing = f"waiting {event.seconds:.1f} s: {safe_line(event.reason)}"
                case protocol.Noted():
                    self.note(safe_line(event.text), "yellow")
                case protocol.Discarded():
                    void = "the text so far is void; " if self._printed else ""
                    self._fresh()
                    self.note(f"↻ {void}asking again: {safe_line(event.reason)}", "yellow")
                case protocol.Done():
                    if not self._has_text:
                        self._blocks.feed(event.message.text)
                    for block in self._blocks.end():
                        self._block(block)
                    self._fresh()
                    self._doing = "thinking" if event.message.calls else ""
        self.display.refresh()

    def tool_event(self, event: ToolEvent) -> None:
        """Show an event of a tool call."""
        with self._lock:
            match event.kind:
                case "started":
                    self._call(event, event.data.get("arguments"))
                case "approval_requested":
                    self._call(event, event.data["request"].arguments)
                case "progress":
                    self._progress(event, str(event.data.get("message") or ""))
                case "output" if event.tool == "todo":
                    self._todo(str(event.data.get("text") or ""))
                case "output":
                    self._progress(event, str(event.data.get("text") or "").rstrip())
                case "finished":
                    self._finished(event)
                case "trouble":
                    self.note(f"! {safe_line(str(event.data.get('message')))}", "yellow")
        self.display.refresh()

    @property
    def active(self) -> bool:
        """Whether an activity or a call is running."""
        return bool(self._doing or self._running)

    # -- status area --------------------------------------------------------------------------

    def status(self, width: int) -> list[str]:
        """Lines of the status area."""
        with self._lock:
            sign = SPINNER[int(time.monotonic() * 8) % len(SPINNER)]
            lines = self._unfinished(width)
            lines += [running_line(call, sign, width) for call in self._running.values()]
            if self._doing and not self._running:
                seconds = time.monotonic() - self._since
                lines.append(cut(f"{sign} {self._doing} {seconds:.0f} s", width - 1))
            return lines

    def _unfinished(self, width: int) -> list[str]:
        # Up to the last blank: the redactor recognises only whole secrets.
        pending = self._blocks.pending
        end = max(pending.rfind(" "), pending.rfind("\n")) + 1
        start = max(end - _LIVE_CHARACTERS, 0)
        if start:
            start = pending.find(" ", start, end) + 1
        text = safe(self.redact(pending[start:end])).strip()
        return wrapped(text, width - 1)[-_LIVE_LINES:] if text else []

    # -- expanded results ---------------------------------------------------------------------

    def expand(self, number: int | None) -> bool:
        """Print the whole result of a call, by default the last; False when there is none."""
        with self._lock:
            call = self._calls.get(max(self._calls, default=0) if number is None else number)
            if call is not None:
                self._print("note", "\n".join(expanded(call, self.display.width)))
            return call is not None

    def recent_calls(self) -> list[tuple[str, str]]:
        """Number and description of the last calls, newest first."""
        with self._lock:
            last = list(self._calls.values())[-20:]
        return [(str(call.number), f"{call.tool} {call.target}") for call in reversed(last)]

    # -- helpers ------------------------------------------------------------------------------

    def _fresh(self) -> None:
        self._blocks = Blocks()
        self._has_text = self._printed = False

    def _block(self, block: Any) -> None:
        lines = rendered(block._replace(text=self.redact(block.text)), self.display.width)
        if block.close and self._last == "text":
            self._last = "text-close"
        self._print("text", lines)
        self._printed = True

    def _call(self, event: ToolEvent, arguments: Any = None) -> Call:
        emoji = event.data.get("emoji") or ""
        call = self._running.get(event.call_id)
        if call is not None:
            # Approved, and started now.
            call.emoji = safe_line(emoji)
            return call
        call = Call(next(self._numbers), event.tool, emoji, self.redact(main_argument(arguments)))
        call.script = self._running.get(event.call_id.rpartition(".")[0])
        self._running[event.call_id] = self._calls[call.number] = call
        self._calls.pop(call.number - _CALLS, None)
        return call

    def _progress(self, event: ToolEvent, text: str) -> None:
        call = self._running.get(event.call_id)
        if call is not None and text.strip():
            call.note = safe_line(text.strip().rsplit("\n", 1)[-1])

    def _finished(self, event: ToolEvent) -> None:
        # A refused call never started.
        call = self._running.get(event.call_id) or self._call(event)
        self._running.pop(event.call_id, None)
        call.outcome = event.data["outcome"]
        if call.script is not None:
            call.script.calls += 1
            if call.outcome.ok and not inner_failure(call.outcome):
                # Folded into the line of its script.
                return
        self._print("call", "\n".join(finished_lines(call, call.outcome, self.display.width)))

    def _todo(self, listed: str) -> None:
        if listed != self._todos:
            self._todos = listed
            lines = [cut(safe_line(line), self.display.width - 3) for line in listed.splitlines()]
            self._print("call", "\n".join(f"  {line}" for line in lines))

    def _print(self, kind: str, text: str) -> None:
        """Print a text, with a blank line between different kinds of output."""
        with self._lock:
            together = {kind} - {"text", "person"}
            if kind == "note":
                together.add("person")
            elif kind == "text":
                together.add("text-close")
            separate = self._last not in together | {""}
            self._last = kind
            self.display.show(f"\n{text}" if separate else text)


def _wrapped(lines: Sequence[str], width: int) -> str:
    return "\n".join(part for line in lines for part in wrapped_styled(line, width))
