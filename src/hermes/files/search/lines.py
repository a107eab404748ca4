"""Lines of a file as they are shown: around where they match, and no longer than is useful."""

from __future__ import annotations

import io

from hermes.files.search.matching import decoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO

    from hermes.files.search.matching import Spot
    from hermes.files.search.values import Opens

# How long a line is shown whole; of a longer one, the surroundings of its first match.
LINE = 300
_BEFORE = 80
# How far lines around a match are looked for.
_REACH = 64 * 1024
_UTF_8 = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")

Shown = tuple[int, bool, str]


def shown_lines(disk: Opens, place: str, spots: Iterable[Spot], context: int) -> list[Shown]:
    """Number, whether it matches, and text of every line to show, in order."""
    found: dict[int, tuple[bool, str]] = {}
    with disk.open(place) as raw:
        file, base = _as_utf_8(raw)
        lines = _Lines(file, base)
        for number, column, offset in spots:
            before, text, after = lines.around(base + offset, column - 1, context)
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


class _Lines:
    """The lines of one file, as text."""

    def __init__(self, file: BinaryIO, base: int) -> None:
        self._file = file
        # Where its text begins.
        self._base = base
        self._encoding = ""

    def around(self, at: int, column: int, context: int) -> tuple[list[str], str, list[str]]:
        """The lines before, the line that begins at `at`, and the lines after."""
        self._file.seek(at)
        data = _read(self._file, _REACH)
        end = data.find(b"\n")
        before = self._before(at, context)
        if end < 0 and column + LINE > len(data):
            # The match is far off in a line without end.
            start = max(0, column - 4 * _BEFORE)
            self._file.seek(at + start)
            piece = _read(self._file, 4 * (LINE + _BEFORE)).partition(b"\n")[0]
            return before, self._cut(piece, column - start, whole_start=not start), []
        line = data[:end] if end >= 0 else data
        after = data[end + 1 :].split(b"\n") if end >= 0 else []
        if after and not after[-1] and len(data) < _REACH:
            after.pop()
        return before, self._cut(line, column), [self._cut(one, 0) for one in after[:context]]

    def _before(self, at: int, context: int) -> list[str]:
        start = max(self._base, at - _REACH)
        if not context or at <= self._base:
            return []
        self._file.seek(start)
        lines = _read(self._file, at - start).split(b"\n")
        lines.pop()
        return [self._cut(one, 0) for one in lines[-context:]]

    def _cut(self, line: bytes, column: int, *, whole_start: bool = True) -> str:
        """The text of a line; of a long one the part around a byte, `…` where some is missing."""
        line = line.removesuffix(b"\r")
        text = self._text(line)
        if len(line) <= LINE and whole_start:
            return text
        at = column if len(text) == len(line) else len(self._text(line[:column]))
        start = 0 if whole_start and at < LINE - _BEFORE else max(0, at - _BEFORE)
        kept = text[start : start + LINE]
        if not whole_start and start == 0:
            # It may begin in the middle of a character.
            kept = kept.lstrip("\ufffd")
        head = "…" if start or not whole_start else ""
        return f"{head}{kept}{'…' if start + LINE < len(text) else ''}"

    def _text(self, data: bytes) -> str:
        """Bytes as text: UTF-8, or the encoding of the file; zeros made visible."""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            # A cut may go through a character; anything else is another encoding.
            cut = error.start >= len(data) - 3 or (data and data[0] & 0xC0 == 0x80)
            text = data.decode(self._other(cut=bool(cut)), "replace")
        return text.replace("\0", "␀") if "\0" in text else text

    def _other(self, *, cut: bool) -> str:
        """What bytes are written in that are no UTF-8."""
        if not self._encoding:
            from hermes.files.text import codec_of, decode, width_of

            self._file.seek(self._base)
            sample = _read(self._file, _REACH)
            # In whole lines: a character that is cut would say something else.
            whole = sample[: sample.rfind(b"\n") + 1] or sample
            found = codec_of(decode(whole).encoding)
            self._encoding = "latin-1" if width_of(found) > 1 else found
        if self._encoding == "utf-8" and not cut:
            return "latin-1"
        return self._encoding


def _read(file: BinaryIO, size: int) -> bytes:
    """So many bytes, unless the file ends: a raw file may give fewer at once."""
    data = b""
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data
