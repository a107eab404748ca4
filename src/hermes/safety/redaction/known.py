"""Values known to be secret, found in every usual encoding and also when cut by line ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.redaction.squeeze import bare_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hermes.safety.redaction.squeeze import Span

# Shorter values would turn up in ordinary words and numbers.
SHORTEST = 4
# From this length on a value is looked for inside words and in encodings.
ANYWHERE = 6


class KnownValues:
    """The known values with all spellings of each."""

    __slots__ = ("_anywhere", "_bare", "_values", "_whole", "longest")

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: set[str] = set()
        self._whole: list[str] = []
        self._anywhere: list[str] = []
        # The same without blanks, for texts whose lines were joined.
        self._bare: list[str] = []
        self.longest = 0
        for value in values:
            self.add(value)

    def __bool__(self) -> bool:
        return bool(self._values)

    def add(self, value: str) -> None:
        """Know one more value; blank and very short ones are left aside."""
        for spelling in {value, value.strip()}:
            if len(spelling) < SHORTEST or spelling in self._values:
                continue
            self._values.add(spelling)
            if len(spelling) < ANYWHERE:
                self._whole.append(spelling)
            else:
                self._anywhere.extend(v for v in _spellings(spelling) if v not in self._anywhere)
                self._bare = _bare_spellings(self._anywhere)
                # Longest first, so that a value inside another doesn't leave the other's ends.
                self._anywhere.sort(key=len, reverse=True)
            self.longest = max([self.longest, *map(len, self._anywhere), len(spelling)])

    def find(self, text: str) -> Iterator[Span]:
        """Each place of each known value."""
        for value in self._anywhere:
            if value in text:
                yield from _places(text, value)
        for value in self._whole:
            if value in text:
                for start, end, kind in _places(text, value):
                    if not _in_word(text, start, end):
                        yield start, end, kind

    def find_joined(self, joined: str) -> Iterator[Span]:
        """Each place in a text without blanks; blanks in the values count as none."""
        for bare in self._bare:
            if bare in joined:
                yield from _places(joined, bare)

    def begins_at_end(self, text: str) -> int:
        """How much of the end of `text`, blanks left out, may be the beginning of a known value."""
        tail = text[-self.longest :] if self.longest else ""
        for size in range(len(tail), 0, -1):
            piece = tail[-size:]
            if any(value.startswith(piece) for value in (*self._anywhere, *self._whole)):
                return size
        return 0


def _places(text: str, value: str) -> Iterator[Span]:
    at = text.find(value)
    while at >= 0:
        yield at, at + len(value), "known"
        at = text.find(value, at + 1)


def _in_word(text: str, start: int, end: int) -> bool:
    return text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()


def _spellings(value: str) -> list[str]:
    """The value as it is, and as JSON, URLs, shells, base64 and hexadecimal write it."""
    import base64
    import json
    from urllib.parse import quote, quote_plus

    raw = value.encode("utf-8", "surrogatepass")
    found = [value]
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        found += [once, json.dumps(once, ensure_ascii=ascii_only)[1:-1]]
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        found += [quoted, quoted.replace("%", "%25"), _lower_escapes(quoted)]
    found.append(value.replace("'", "'\\''"))
    found.append(value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
    found += [raw.hex(), raw.hex().upper()]
    if len(raw) >= ANYWHERE:
        for skip in range(3):
            # Each character carries six bits: those which also hold bits of the neighbours go.
            text = base64.b64encode(b"\0" * skip + raw).decode()
            first = (skip * 8 + 5) // 6
            last = (skip + len(raw)) * 8 // 6
            core = text[first:last]
            if skip == 0:
                found.append(text)
            found += [core, core.replace("+", "-").replace("/", "_")]
    # JSON may write a slash as `\/`.
    found += [spelling.replace("/", "\\/") for spelling in found if "/" in spelling]
    return [spelling for spelling in dict.fromkeys(found) if len(spelling) >= ANYWHERE]


def _bare_spellings(spellings: list[str]) -> list[str]:
    """The spellings without blanks, and without what reads as an escaped one."""
    found = {bare for text in spellings for bare in ("".join(text.split()), bare_text(text))}
    return sorted((bare for bare in found if len(bare) > ANYWHERE + 1), key=len, reverse=True)


def _lower_escapes(quoted: str) -> str:
    pieces = quoted.split("%")
    return pieces[0] + "".join(f"%{piece[:2].lower()}{piece[2:]}" for piece in pieces[1:])
