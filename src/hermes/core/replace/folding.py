"""Typography: characters that say the same, and the tokens that a line consists of."""

from __future__ import annotations

import unicodedata

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
