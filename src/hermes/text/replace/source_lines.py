"""Source lines: contents, offsets, line ends, indentation; character folding for comparison."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from itertools import accumulate, pairwise
from math import gcd

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_SAME = {
    "'": "\u2018\u2019\u201a\u201b\u2032\u02bc",
    '"': "\u201c\u201d\u201e\u201f\u2033",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    " ": "\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))),
    "...": "\u2026",
    "": "\u00ad\u200b\u200c\u200d\u2060\ufeff",
}
_TABLE: dict[int, str] = {ord(char): plain for plain, chars in _SAME.items() for char in chars}
_TABLE.update({code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)})  # full width
# Next to these, a space more or less changes nothing; elsewhere it may glue or part words.
_LOOSE = frozenset("=,;()[]{}+<>")
_SHORT = 500  # from here on, a search for each character that occurs is faster than a table
_ALONE = frozenset("()[]{},;:'\"`")
_QUOTES = frozenset("'\"`")


def fold(text: str) -> str:
    """A text in plain typography and composed characters; line endings stay."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", text)
    if len(text) < _SHORT:
        return text.translate(_TABLE)
    for code in {ord(character) for character in set(text)} & _TABLE.keys():
        text = text.replace(chr(code), _TABLE[code])
    return text


def fold_mapped(text: str) -> tuple[str, list[int]]:
    """The folded text, and for each of its positions the one in the text, the end included."""
    if text.isascii():
        return text, list(range(len(text) + 1))
    folded: list[str] = []
    places: list[int] = []
    start = 0
    while start < len(text):
        end = start + 1
        while end < len(text) and joins(text[end]):
            end += 1
        piece = fold(text[start:end])
        folded.append(piece)
        places.extend([start] * len(piece))
        start = end
    return "".join(folded), [*places, len(text)]


def joins(character: str) -> bool:
    """Whether a character belongs to the one before it."""
    return unicodedata.combining(character) != 0 or "\u1160" <= character <= "\u11ff"


def is_word(character: str) -> bool:
    """Whether a character is part of a word or a number."""
    return character.isalnum() or character == "_" or unicodedata.combining(character) != 0


def token_spans(line: str) -> list[tuple[int, int]]:
    """Where the words, numbers and signs of a line are; runs of one sign are one token."""
    spans: list[tuple[int, int]] = []
    position, length = 0, len(line)
    while position < length:
        character = line[position]
        start = position
        position += 1
        if character.isspace():
            continue
        if is_word(character):
            while position < length and is_word(line[position]):
                position += 1
        elif character not in _ALONE:
            while position < length and line[position] == character:
                position += 1
        spans.append((start, position))
    return spans


def same_tokens(one: str, other: str) -> bool:
    """Whether two folded lines differ in nothing but spaces that mean nothing."""
    if "".join(one.split()) != "".join(other.split()):
        return False
    first, second = token_spans(one), token_spans(other)
    if [one[a:b] for a, b in first] != [other[a:b] for a, b in second]:
        return False
    quote = ""
    for index in range(1, len(first)):
        before = one[slice(*first[index - 1])]
        after = one[slice(*first[index])]
        quote = _quoted(quote, one, first[index - 1])
        gap = one[first[index - 1][1] : first[index][0]]
        other_gap = other[second[index - 1][1] : second[index][0]]
        if gap == other_gap:
            continue
        if quote:
            return False  # inside a literal a space is content
        if bool(gap) != bool(other_gap) and not _loose(before, after):
            return False
    return True


def _loose(before: str, after: str) -> bool:
    if before == ":":
        return True
    signs = not is_word(before[0]) and not is_word(after[0])
    if signs and before[0] not in _ALONE and after[0] not in _ALONE:
        return False  # two operators that touch may be one
    return before[0] in _LOOSE or after[0] in _LOOSE


def _quoted(quote: str, line: str, span: tuple[int, int]) -> str:
    """The quotation mark that is still open behind this token."""
    start, end = span
    sign = line[start:end]
    if sign not in _QUOTES or (start and line[start - 1] == "\\"):
        return quote
    if quote:
        return "" if sign == quote else quote
    apostrophe = start > 0 and end < len(line) and is_word(line[start - 1]) and is_word(line[end])
    # A mark that is never closed, as in "the users' files", opens nothing.
    return "" if apostrophe or sign not in line[end:] else sign


BOM = "\ufeff"


class Source:
    """The lines of a text; a byte order mark at its start belongs to none of them."""

    __slots__ = ("_folded", "contents", "endings", "returns", "starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        offset = len(BOM) if text.startswith(BOM) else 0
        self.returns = "\r" in text and "\n" not in text  # lines end as they did on old machines
        self.contents, self.endings = split_lines(text[offset:], returns=self.returns)
        lengths = (
            len(content) + len(ending)
            for content, ending in zip(self.contents, self.endings, strict=True)
        )
        self.starts = list(accumulate(lengths, initial=offset))
        self._folded: list[str] | None = None

    @property
    def folded(self) -> list[str]:
        """The lines in plain typography."""
        if self._folded is None:
            plain = self.text.isascii()
            self._folded = self.contents if plain else fold("\n".join(self.contents)).split("\n")
        return self._folded

    def lines_of(self, text: str) -> list[str]:
        """The lines of an old or a new text."""
        text = text.replace("\r\n", "\n")
        return (text.replace("\r", "\n") if self.returns else text).split("\n")

    def line_at(self, position: int) -> int:
        """The index of the line that a position lies in."""
        return min(max(bisect_right(self.starts, position) - 1, 0), len(self.contents) - 1)

    def ending_at(self, line: int) -> str:
        """How lines end at this place: this one, else the one before, else any."""
        for candidate in (self.endings[line], self.endings[line - 1] if line else ""):
            if candidate:
                return candidate
        return next((ending for ending in self.endings if ending), "")


def split_lines(text: str, *, returns: bool) -> tuple[list[str], list[str]]:
    """The contents and the endings of lines; the last one has no ending.

    With `returns`, a lone carriage return ends a line as well.
    """
    if "\r" not in text:
        contents = text.split("\n")
        return contents, ["\n"] * (len(contents) - 1) + [""]
    if returns:
        contents = text.split("\r")
        return contents, ["\r"] * (len(contents) - 1) + [""]
    contents = text.split("\n")
    last = contents.pop()
    endings = ["\r\n" if content.endswith("\r") else "\n" for content in contents]
    contents = [content.removesuffix("\r") for content in contents]
    return [*contents, last], [*endings, ""]


class ShiftError(Exception):
    """A line of the new text can't be moved as its block was."""


class Shift:
    """Moves indentations: `width * grow // per + add` characters of the file's kind."""

    __slots__ = ("_add", "_drop", "_expand", "_grow", "_kind", "_per", "_prefix", "_unit")

    def __init__(
        self,
        *,
        prefix: str = "",
        drop: str = "",
        unit: int = 0,
        expand: int = 0,
        kind: str = "",
        grow: int = 1,
        per: int = 1,
        add: int = 0,
    ) -> None:
        self._prefix = prefix
        self._drop = drop
        self._unit = unit
        self._expand = expand
        self._kind = kind
        self._grow = grow
        self._per = per
        self._add = add

    def moved(self, indent: str) -> str:
        """The indentation that a line of the new text gets; ShiftError when there is none."""
        if self._kind:
            return self._scaled(indent)
        if self._expand:
            return indent.expandtabs(self._expand)
        if not indent.startswith(self._drop):
            raise ShiftError("it would have to move further to the left than the margin")
        rest = indent[len(self._drop) :]
        if self._unit and rest.strip(" ") == "":
            levels, spaces = divmod(len(rest), self._unit)
            rest = "\t" * levels + " " * spaces
        return self._prefix + rest

    def _scaled(self, indent: str) -> str:
        if self._kind == "\t" and indent.strip("\t") == "" and indent:
            return indent  # in the file's own kind already
        if len(set(indent)) > 1:
            raise ShiftError("it mixes tabs and spaces")
        whole, rest = divmod(len(indent) * self._grow, self._per)
        if whole + self._add < 0:
            raise ShiftError("it would have to move further to the left than the margin")
        if rest and self._kind == " ":
            raise ShiftError("its indentation lies between two steps")
        return self._kind * (whole + self._add) + " " * (rest // self._grow)


def find_shift(pairs: Iterable[tuple[str, str]], new: Sequence[str], *, tabs: bool) -> Shift | None:
    """The one rule that explains all (old, file) pairs of indentations, or None.

    `new` has the indentations that are to be moved; `tabs` says that the file is indented
    with tabs, which decides where the pairs themselves say nothing.
    """
    known = dict.fromkeys(pairs)
    old, found = [pair[0] for pair in known], [pair[1] for pair in known]
    unit = _unit([*old, *new]) if tabs and not any("\t" in indent for indent in old) else 0
    if all(have == want for have, want in known):
        # Nothing moves; but lines without indentation do not say which kind the file has.
        return Shift(unit=unit) if not any(old) else Shift()
    prefix = found[0].removesuffix(old[0]) if found[0].endswith(old[0]) else ""
    if prefix and all(want == prefix + have for have, want in known):
        return Shift(prefix=prefix, unit=unit if not any(old) else 0)
    drop = old[0].removesuffix(found[0]) if old[0].endswith(found[0]) else ""
    if drop and all(have == drop + want for have, want in known):
        if not (unit and any(found) is False and len(known) == 1):
            return Shift(drop=drop)
        return Shift(drop=drop, unit=unit)
    return _linear(known, _unit([*old, *new])) or _expanded(known)


def _expanded(known: Iterable[tuple[str, str]]) -> Shift | None:
    """The shift where tabs and spaces stand side by side: one tab is so many columns."""
    for columns in (4, 8, 2):
        if all(have.expandtabs(columns) == want for have, want in known):
            return Shift(expand=columns)
        if all(have == want.expandtabs(columns) for have, want in known):
            return Shift(unit=columns)
    return None


def _linear(known: Iterable[tuple[str, str]], unit: int) -> Shift | None:
    points = [(len(have), len(want)) for have, want in known]
    kinds = {char for have, _ in known for char in have}, {c for _, want in known for c in want}
    if len(kinds[0]) > 1 or len(kinds[1]) > 1:
        return None
    kind = next(iter(kinds[1]), " ")
    first = points[0]
    other = next((point for point in points if point[0] != first[0]), None)
    if other is None:
        if len(points) > 1 or kinds[0] == kinds[1]:
            return None  # one old indentation can't become two
        if kind == " ":
            step = max(first[1] // first[0], 1)
            return Shift(kind=kind, grow=step, add=first[1] - first[0] * step)
        return (
            None if first[0] % unit else Shift(kind=kind, per=unit, add=first[1] - first[0] // unit)
        )
    grow, per = other[1] - first[1], other[0] - first[0]
    if per < 0:
        grow, per = -grow, -per
    if grow <= 0:
        return None
    common = gcd(grow, per)
    grow, per = grow // common, per // common
    if (first[0] * grow) % per:
        return None
    add = first[1] - first[0] * grow // per
    if any(have * grow % per or have * grow // per + add != want for have, want in points):
        return None
    return Shift(kind=kind, grow=grow, per=per, add=add)


def _unit(indents: Iterable[str]) -> int:
    """How many spaces make one step, judged by the indentations of one text."""
    widths = sorted({len(indent) for indent in indents if indent.strip(" ") == ""})
    steps = [after - before for before, after in pairwise(widths)]
    if widths and widths[0] and not steps:
        steps = [widths[0]]
    return gcd(*steps) if steps else 4
