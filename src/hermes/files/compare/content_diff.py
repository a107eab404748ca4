"""Content diff: two inputs are equal, differ in lines, or (not text, or too large) in bytes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NamedTuple

import hermes.files.compare.render as render
from hermes.text.diff import line_changes
from hermes.text.encoding import codec_of, decode

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO, Literal

    from hermes.environments.disk.protocol import Disk
    from hermes.text.encoding import Text


CHUNK = 256 * 1024


class Side(NamedTuple):
    """Bytes with a name for people; `read` opens them anew each time."""

    label: str
    size: int
    read: Callable[[], BinaryIO]

    @classmethod
    def of_bytes(cls, label: str, data: bytes) -> Side:
        """A side that is in memory already."""
        return cls(label, len(data), lambda: io.BytesIO(data))

    @classmethod
    def of_file(cls, label: str, disk: Disk, path: str) -> Side:
        """A file on a disk."""
        status = disk.status(path)
        return cls(label, 0 if status is None else status.size, lambda: disk.open(path))


class Apart(NamedTuple):
    """Where two sides differ: equal before `head` bytes and in the last `tail` ones."""

    head: int
    tail: int
    lines: int  # how many lines end before `head`


def differing(old: Side, new: Side, check: Callable[[int], object]) -> Apart | None:
    """The range in which two inputs differ; None if equal. `check` gets the bytes read."""
    with old.read() as left, new.read() as right:
        head = lines = 0
        while True:
            a, b = read_exactly(left, CHUNK), read_exactly(right, CHUNK)
            check(len(a) + len(b))
            if a != b:
                equal = _common(a, b)
                head += equal
                lines += a.count(b"\n", 0, equal)
                break
            if not a:
                return None
            head += len(a)
            lines += a.count(b"\n")
        tail = 0
        most = min(old.size, new.size) - head
        while tail < most:
            size = min(CHUNK, most - tail)
            left.seek(old.size - tail - size)
            right.seek(new.size - tail - size)
            a, b = read_exactly(left, size), read_exactly(right, size)
            check(len(a) + len(b))
            if a != b:
                tail += _common(a[::-1], b[::-1])
                break
            tail += size
    return Apart(head, tail, lines)


def stretch(side: Side, start: int, end: int) -> bytes:
    """The bytes of a side from `start` to `end`."""
    with side.read() as file:
        file.seek(start)
        return read_exactly(file, end - start)


def read_exactly(file: BinaryIO, size: int) -> bytes:
    """As many bytes as there are, at most `size`: a raw file may give fewer at a time."""
    data = file.read(size) or b""
    if len(data) in (0, size):
        return data
    pieces = [data]
    size -= len(data)
    while size and (data := file.read(size)):
        pieces.append(data)
        size -= len(data)
    return b"".join(pieces)


def digest(side: Side, check: Callable[[int], object]) -> str:
    """The SHA-256 of a side."""
    import hashlib

    sha256 = hashlib.sha256()
    with side.read() as file:
        while data := file.read(CHUNK):
            sha256.update(data)
            check(len(data))
    return sha256.hexdigest()


def _common(a: bytes, b: bytes) -> int:
    """How many bytes at the start are equal."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


if TYPE_CHECKING:
    Format = Literal["unified", "summary", "side_by_side"]

# How much of each side is compared line by line.
MOST_BYTES = 8 * 1024 * 1024
MOST_PLACES = 200
_WINDOW = 64 * 1024
# A line feed is one byte of its own in all but these.
_WIDE = ("utf-16", "utf-32")
_PRINTED = frozenset(b"\t\n\r\f\x08\x1b")


class _Part(NamedTuple):
    """The compared lines of an input, its encoding and the number of the first line."""

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
    """The differences of two inputs as JSON for the model, always with `identical`."""
    apart = differing(old, new, check)
    if apart is None:
        return {"identical": True, "bytes": new.size}
    start, end = _looked_at(old, new, apart, context)
    left = _part(old, start, old.size - end, apart)
    right = _part(new, start, new.size - end, apart)
    if isinstance(left, str) or isinstance(right, str):
        reason = left if isinstance(left, str) else right
        return {**_by_bytes(old, new, apart, check), "reason": reason}
    pair = render.Pair(
        left.lines, right.lines, left.first, right.first, line_changes(left.lines, right.lines)
    )
    answer: dict[str, Any] = {
        "identical": False,
        "added": sum(change.new_end - change.new_start for change in pair.changes),
        "removed": sum(change.old_end - change.old_start for change in pair.changes),
    }
    if form == "unified":
        answer["diff"] = render.unified(pair, old.label, new.label, context)
    elif form == "side_by_side":
        answer["diff"] = render.side_by_side(pair, context)
    else:
        changes = render.places(pair)
        answer["changes"] = changes[:MOST_PLACES]
        if len(changes) > MOST_PLACES:
            answer["more_changes"] = len(changes) - MOST_PLACES
    if notes := _notes(left, right):
        answer["notes"] = notes
    return answer


def decoded(data: bytes) -> Text | None:
    """Bytes as text; None for binary data."""
    text = decode(data)
    # Told apart by what no text has, whatever the encoding.
    if text.tail or "\0" in text.text:
        return None
    if not text.certain and not _PRINTED.issuperset(byte for byte in set(data) if byte < 32):
        return None
    return text


def _looked_at(old: Side, new: Side, apart: Apart, context: int) -> tuple[int, int]:
    """Bytes to skip at the start and at the end: the common parts of long inputs."""
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
    """The lines between two offsets; or the reason why they are not compared."""
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
    """Notes on encoding and line ends, which the lines do not show."""
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
    if any(len(line) > render.LONGEST_LINE for part in (old, new) for line in part.lines):
        notes.append(f"lines are shown up to {render.LONGEST_LINE} characters")
    return notes


def _line_ends(lines: list[str]) -> str:
    carriage = sum(line.endswith("\r\n") for line in lines)
    feeds = sum(line.endswith("\n") for line in lines)
    if not carriage:
        return "LF" if feeds else "none"
    return "CRLF" if carriage == feeds else "mixed"
