"""Lines of a file as they are shown: around where they match, and no longer than is useful."""

from __future__ import annotations

import io

from hermes.files.search.matching import decoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO

    from hermes.files.search.matching import Spot
    from hermes.runtime.disk import Disk

# How long a line is shown whole; of a longer one, the surroundings of its first match.
LINE = 300
_BEFORE = 80
# How far lines around a match are looked for.
_REACH = 64 * 1024
_UTF_8 = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")

Shown = tuple[int, bool, str]


def shown_lines(disk: Disk, place: str, spots: Iterable[Spot], context: int) -> list[Shown]:
    """Number, whether it matches, and text of every line to show, in order."""
    found: dict[int, tuple[bool, str]] = {}
    with disk.open(place) as raw:
        file, base = _as_utf_8(raw)
        for number, column, offset in spots:
            before, text, after = _around(file, base + offset, column - 1, base, context)
            for distance, line in enumerate(reversed(before), 1):
                found.setdefault(number - distance, (False, line))
            found[number] = (True, text)
            for distance, line in enumerate(after, 1):
                found.setdefault(number + distance, (False, line))
    return [(number, *found[number]) for number in sorted(found)]


def _as_utf_8(file: BinaryIO) -> tuple[BinaryIO, int]:
    """The file with its text as UTF-8, and where that begins."""
    head = file.read(3)
    if head[:2] not in _UTF_16:
        return file, len(_UTF_8) if head == _UTF_8 else 0
    file.seek(0)
    return io.BytesIO(decoded(file.read()).encode("utf-8", "surrogatepass")), 0


def _around(
    file: BinaryIO, at: int, column: int, base: int, context: int
) -> tuple[list[str], str, list[str]]:
    """The lines before, the line that begins at `at`, and the lines after."""
    file.seek(at)
    data = _read(file, _REACH)
    end = data.find(b"\n")
    before = _before(file, at, base, context)
    if end < 0 and column + LINE > len(data):
        # The match is far off in a line without end.
        start = max(0, column - 4 * _BEFORE)
        file.seek(at + start)
        piece = _read(file, 4 * (LINE + _BEFORE)).partition(b"\n")[0]
        return before, _cut(piece, column - start, whole_start=not start), []
    line = data[:end] if end >= 0 else data
    after = data[end + 1 :].split(b"\n") if end >= 0 else []
    if after and not after[-1] and len(data) < _REACH:
        after.pop()
    return before, _cut(line, column), [_cut(one, 0) for one in after[:context]]


def _before(file: BinaryIO, at: int, base: int, context: int) -> list[str]:
    start = max(base, at - _REACH)
    if not context or at <= base:
        return []
    file.seek(start)
    lines = _read(file, at - start).split(b"\n")
    lines.pop()
    return [_cut(one, 0) for one in lines[-context:]]


def _read(file: BinaryIO, size: int) -> bytes:
    """So many bytes, unless the file ends: a raw file may give fewer at once."""
    data = b""
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data


def _cut(line: bytes, column: int, *, whole_start: bool = True) -> str:
    """The text of a line; of a long one the part around a byte, with `…` where some is missing."""
    line = line.removesuffix(b"\r")
    if len(line) <= LINE and whole_start:
        return as_text(line)
    text = as_text(line)
    at = column if len(text) == len(line) else len(as_text(line[:column]))
    start = 0 if whole_start and at < LINE - _BEFORE else max(0, at - _BEFORE)
    kept = text[start : start + LINE]
    if not whole_start and start == 0:
        # It may begin in the middle of a character.
        kept = kept.lstrip("\ufffd")
    head = "…" if start or not whole_start else ""
    return f"{head}{kept}{'…' if start + LINE < len(text) else ''}"


def as_text(data: bytes) -> str:
    """Bytes as text: UTF-8, or Latin-1 when they are not; zeros made visible."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        # A cut may go through a character; anything else is another encoding.
        cut = error.start >= len(data) - 3 or (data and data[0] & 0xC0 == 0x80)
        text = data.decode("utf-8", "replace") if cut else data.decode("latin-1")
    return text.replace("\0", "␀") if "\0" in text else text
