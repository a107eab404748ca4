"""Two sides, compared: equal, different in lines, or - no text, or too much - in bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import hermes.files.comparing.showing as showing
from hermes.core.line_changes import line_changes
from hermes.files.comparing.sides import differing, digest, stretch
from hermes.files.text import codec_of, decode

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    from hermes.files.comparing.sides import Apart, Side
    from hermes.files.text import Text

    Format = Literal["unified", "summary", "side_by_side"]

# How much of each side is compared line by line.
MOST_BYTES = 8 * 1024 * 1024
MOST_PLACES = 200
_WINDOW = 64 * 1024
# A line feed is one byte of its own in all but these.
_WIDE = ("utf-16", "utf-32")
_PRINTED = frozenset(b"\t\n\r\f\x08\x1b")


class _Part(NamedTuple):
    """The lines of a side that are looked at, and how they were read."""

    lines: list[str]
    encoding: str
    first: int


def compare_contents(
    old: Side,
    new: Side,
    *,
    form: Format = "unified",
    context: int = 3,
    check: Callable[[int], object] = lambda _: None,
) -> dict[str, Any]:
    """What is different between two sides, for the model; `identical` is always there."""
    apart = differing(old, new, check)
    if apart is None:
        return {"identical": True, "bytes": new.size}
    start, end = _looked_at(old, new, apart, context)
    left = _part(old, start, old.size - end, apart)
    right = _part(new, start, new.size - end, apart)
    if isinstance(left, str) or isinstance(right, str):
        reason = left if isinstance(left, str) else right
        return {**_by_bytes(old, new, apart, check), "reason": reason}
    pair = showing.Pair(
        left.lines, right.lines, left.first, right.first, line_changes(left.lines, right.lines)
    )
    answer: dict[str, Any] = {
        "identical": False,
        "added": sum(change.new_end - change.new_start for change in pair.changes),
        "removed": sum(change.old_end - change.old_start for change in pair.changes),
    }
    if form == "unified":
        answer["diff"] = showing.unified(pair, old.label, new.label, context)
    elif form == "side_by_side":
        answer["diff"] = showing.side_by_side(pair, context)
    else:
        found = showing.places(pair)
        answer["changes"] = found[:MOST_PLACES]
        if len(found) > MOST_PLACES:
            answer["more_changes"] = len(found) - MOST_PLACES
    if notes := _notes(left, right):
        answer["notes"] = notes
    return answer


def decoded(data: bytes) -> Text | None:
    """Bytes as text; None for what is no text."""
    text = decode(data)
    # Told apart by what no text has, whatever the encoding.
    if text.tail or "\0" in text.text:
        return None
    if not text.certain and not _PRINTED.issuperset(byte for byte in set(data) if byte < 32):
        return None
    return text


def _looked_at(old: Side, new: Side, apart: Apart, context: int) -> tuple[int, int]:
    """How many bytes at the start and at the end are left out: of long sides, what is equal."""
    if max(old.size, new.size) <= MOST_BYTES:
        return 0, 0
    # The lines around are wanted too: as many as fit into a window that is always affordable.
    before = stretch(old, max(0, apart.head - _WINDOW), apart.head)
    at = len(before)
    for _ in range(context + 1):
        at = before.rfind(b"\n", 0, max(at, 0))
    begin = old.size - apart.tail
    after = stretch(old, begin, begin + _WINDOW)
    stop = -1
    for _ in range(context + 1):
        stop = after.find(b"\n", stop + 1)
        if stop < 0:
            stop = len(after) - 1
            break
    return apart.head - len(before) + at + 1, apart.tail - stop - 1


def _part(side: Side, start: int, end: int, apart: Apart) -> _Part | str:
    """The lines between two places of a side; or why they are not compared."""
    if end - start > MOST_BYTES:
        return "too much is different to compare it line by line"
    if start == 0 and end == side.size:
        read = decoded(stretch(side, 0, side.size))
        return "not text" if read is None else _Part(_split(read.text), read.encoding, 1)
    data = stretch(side, start, end)
    # Judged by its beginning, like any other file; a window may cut a character in two.
    sample = stretch(side, 0, _WINDOW)
    read = decoded(sample[: sample.rfind(b"\n") + 1] or sample)
    if read is None or read.encoding.startswith(_WIDE) or b"\0" in data:
        return "too large to compare line by line, or not text"
    first = apart.lines - data.count(b"\n", 0, max(0, apart.head - start)) + 1
    mark = read.bom if start == 0 else b""
    text = data.removeprefix(mark).decode(codec_of(read.encoding), "replace")
    return _Part(_split(text), read.encoding, first)


def _split(text: str) -> list[str]:
    """Lines with their ends; only a line feed ends one."""
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    if parts[-1]:
        lines.append(parts[-1])
    return lines


def _by_bytes(old: Side, new: Side, apart: Apart, check: Callable[[int], object]) -> dict[str, Any]:
    return {
        "identical": False,
        "first_difference": {"byte": apart.head, "line": apart.lines + 1},
        "old": {"bytes": old.size, "sha256": digest(old, check)},
        "new": {"bytes": new.size, "sha256": digest(new, check)},
    }


def _notes(old: _Part, new: _Part) -> list[str]:
    """What a reader of the lines would not see."""
    notes = []
    if old.encoding != new.encoding:
        notes.append(f"the encoding changed from {old.encoding} to {new.encoding}")
    ends = _line_ends(old.lines), _line_ends(new.lines)
    if ends[0] != ends[1] and "none" not in ends:
        notes.append(f"line endings changed from {ends[0]} to {ends[1]}")
    if len(old.lines) == len(new.lines):
        plain = [[line.rstrip("\r\n") for line in part.lines] for part in (old, new)]
        if plain[0] == plain[1]:
            notes.append("only line endings or encoding differ")
    if any(len(line) > showing.LONGEST_LINE for part in (old, new) for line in part.lines):
        notes.append(f"lines are shown up to {showing.LONGEST_LINE} characters")
    return notes


def _line_ends(lines: list[str]) -> str:
    carriage = sum(line.endswith("\r\n") for line in lines)
    feeds = sum(line.endswith("\n") for line in lines)
    if not carriage:
        return "LF" if feeds else "none"
    return "CRLF" if carriage == feeds else "mixed"
