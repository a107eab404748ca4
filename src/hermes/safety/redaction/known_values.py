"""Known secrets, found in every common encoding and also when split over lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.redaction.invisible import bare_text, join_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hermes.safety.redaction.invisible import Span

# Shorter values would turn up in ordinary words and numbers.
SHORTEST = 4
# From this length on a value is looked for inside words and in encodings.
ANYWHERE = 6
# Texts from this length on are found by samples of so many letters.
_LONG = 16
_GRAM = 5


class KnownValues:
    """The known values with all spellings of each."""

    __slots__ = ("_index", "_values")

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: dict[str, None] = {}
        self._index: _Index | None = None
        for value in values:
            self.add(value)

    def __bool__(self) -> bool:
        return bool(self._values)

    @property
    def longest(self) -> int:
        """The length of the longest spelling."""
        return self._ready().longest

    def add(self, value: str) -> None:
        """Know one more value; blank and very short ones are left aside."""
        for spelling in (value, value.strip()):
            if len(spelling) >= SHORTEST and spelling not in self._values:
                self._values[spelling] = None
                self._index = None

    def find(self, text: str) -> Iterator[Span]:
        """Each place of each known value."""
        index = self._ready()
        yield from index.plain.find(text)
        for value in index.whole:
            if value in text:
                for start, end, kind in _places(text, value):
                    if not _in_word(text, start, end):
                        yield start, end, kind

    def find_joined(self, text: str) -> Iterator[Span]:
        """Each place of a known value with line ends, blanks or invisible characters in it."""
        bare = self._ready().bare
        ordinary = text.isascii() and "\\" not in text and "\x1b" not in text
        if bare.may_occur("".join(text.split()) if ordinary else bare_text(text)):
            joined = join_lines(text)
            if joined:
                yield from map(joined.original, bare.find(joined.text))

    def begins_at_end(self, text: str) -> int:
        """How much of the end of `text`, blanks left out, may be the beginning of a known value."""
        index = self._ready()
        tail = text[-index.longest :] if index.longest else ""
        for size in range(len(tail), 0, -1):
            piece = tail[-size:]
            if any(value.startswith(piece) for value in index.everything):
                return size
        return 0

    def _ready(self) -> _Index:
        if self._index is None:
            self._index = _Index(list(self._values))
        return self._index


class _Index:
    """What is looked for, prepared once."""

    __slots__ = ("bare", "everything", "longest", "plain", "whole")

    def __init__(self, values: list[str]) -> None:
        anywhere = [s for value in values if len(value) >= ANYWHERE for s in _spellings(value)]
        self.whole = [value for value in values if len(value) < ANYWHERE]
        self.plain = _Needles(anywhere)
        self.bare = _Needles(_bare_spellings(anywhere))
        self.everything = [*anywhere, *_bare_spellings(anywhere), *self.whole]
        self.longest = max(map(len, self.everything), default=0)


class _Needles:
    """Texts to look for, many at once.

    A long one that occurs covers a place that is a multiple of `_step`, so looking at the few
    letters there is enough to rule all of them out.
    """

    __slots__ = ("_grams", "_long", "_short", "_step")

    def __init__(self, texts: list[str]) -> None:
        # Longest first, so that a value inside another doesn't leave the other's ends.
        ordered = sorted(dict.fromkeys(texts), key=len, reverse=True)
        self._long = [text for text in ordered if len(text) >= _LONG]
        self._short = [text for text in ordered if len(text) < _LONG]
        self._step = min(map(len, self._long), default=_LONG) - _GRAM + 1
        self._grams = {
            text[at : at + _GRAM] for text in self._long for at in range(len(text) - _GRAM + 1)
        }

    def may_occur(self, text: str) -> bool:
        """False only when none of them is in `text`."""
        return self._may_have_long(text) or any(needle in text for needle in self._short)

    def find(self, text: str) -> Iterator[Span]:
        """Each place of each of them."""
        needles = self._long + self._short if self._may_have_long(text) else self._short
        for needle in needles:
            if needle in text:
                yield from _places(text, needle)

    def _may_have_long(self, text: str) -> bool:
        if not self._grams:
            return False
        seen = {text[at : at + _GRAM] for at in range(0, len(text), self._step)}
        return not self._grams.isdisjoint(seen)


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
