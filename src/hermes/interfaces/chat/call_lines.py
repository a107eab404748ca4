"""Tool call lines: a call and its result, with diffs and error tails."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hermes.interfaces.cli.progress import inner_failure
from hermes.interfaces.cli.screen_text import columns, cut, safe, safe_line, styled, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from hermes.core.entry import ToolOutcome

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
