"""Tool call lines: a call and its result, with diffs and error tails."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hermes.interfaces.cli.progress import setback
from hermes.interfaces.cli.screen_text import columns, cut, safe, safe_line, styled, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from hermes.core.entry import ToolOutcome

# How much of a diff is shown at once, and how much of a result when it is asked for.
_DIFF_LINES = 12
_RESULT_LINES = 200
_MARKS = {"ok": ("✓", "green"), "cancelled": ("■", "yellow"), "refused": ("⊘", "yellow")}
_FAILED = ("✗", "red")


class Call:
    """One call while it runs and afterwards; `number` is how the person can name it."""

    __slots__ = ("emoji", "note", "number", "outcome", "since", "target", "tool")

    def __init__(self, number: int, tool: str, emoji: str = "", target: str = "") -> None:
        self.number = number
        self.tool = safe_line(tool)
        self.emoji = safe_line(emoji)
        self.target = safe_line(target)
        self.note = ""
        self.since = time.monotonic()
        self.outcome: ToolOutcome | None = None


def running_line(call: Call, sign: str, width: int) -> str:
    """A call under way: what, how far, since when."""
    return _fitted(
        f"{sign} {_head(call)}", call.note or call.target, _seconds(time.monotonic() - call.since),
        width,
    )  # fmt: skip


def finished_lines(call: Call, outcome: ToolOutcome, width: int) -> list[str]:
    """What became of a call: a line, and the change it made or the reason why not."""
    trouble = setback(outcome) if outcome.ok else outcome.error or outcome.status
    failed = outcome.ok and bool(trouble)
    mark, colour = _FAILED if failed else _MARKS.get(outcome.status, _FAILED)
    end = f"{_seconds(outcome.seconds)} [{call.number}]"
    line = _fitted(f"{mark} {_head(call)}", call.target, end, width)
    lines = [styled(mark, colour) + line[len(mark) :]]
    if trouble:
        told = wrapped(safe_line(trouble), max(width - 4, 10))
        lines += [f"  {styled(one, colour)}" for one in told[:3]]
        if len(told) > 3:
            lines.append(f"  … /expand {call.number}")
        return lines
    changes = list(_differences(_parsed(outcome.content)))
    shown = [
        f"  {_coloured(cut(line, width - 3))}"
        for line in changes[:_DIFF_LINES]
    ]  # fmt: skip
    if len(changes) > _DIFF_LINES:
        left = len(changes) - _DIFF_LINES
        shown.append(styled(f"  … {left} more lines: /expand {call.number}", "dim"))
    return lines + shown


def expanded(call: Call, width: int) -> list[str]:
    """The whole result of a call, as far as a screen can hold it."""
    head = styled(f"[{call.number}] {_head(call)} {call.target}".rstrip(), "bold")
    if call.outcome is None:
        return [head, "  still running"]
    value = _parsed(call.outcome.content)
    lines: list[str] = []
    for line in _readable(value):
        lines += [f"  {_coloured(part)}" for part in wrapped(safe(line), max(width - 3, 10))]
    if len(lines) > _RESULT_LINES:
        half = _RESULT_LINES // 2
        left = len(lines) - 2 * half
        lines = [*lines[:half], styled(f"  … {left} lines left out …", "dim"), *lines[-half:]]
    return [head, *lines]


def _head(call: Call) -> str:
    return f"{call.emoji} {call.tool}".strip()


def _fitted(head: str, middle: str, end: str, width: int) -> str:
    """Head and end whole, as much of the middle as there is room for, in one line."""
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


def _differences(value: Any) -> Iterator[str]:
    """The lines of every diff in a result, without the names that the call's line shows."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "diff" and isinstance(inner, str):
                for line in safe(inner).split("\n"):
                    if line.strip() and not line.startswith(("--- ", "+++ ")):
                        yield line
            else:
                yield from _differences(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _differences(inner)


def _coloured(line: str) -> str:
    colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return styled(line, colour) if colour else line


def _readable(value: Any) -> Iterator[str]:
    """A result as text: long texts as they are, the rest as names and values."""
    import json

    if isinstance(value, str):
        yield from value.split("\n")
    elif isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, str) and "\n" in inner:
                yield f"{name}:"
                yield from inner.rstrip("\n").split("\n")
            else:
                said = inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False)
                yield f"{name}: {said}"
    else:
        yield from json.dumps(value, ensure_ascii=False, indent=2).split("\n")
