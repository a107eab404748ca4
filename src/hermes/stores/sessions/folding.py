"""Text as a search sees it: without case, accents and widths, cut into what is looked up.

    words      letters, digits and underscores in a row: `foo_bar`, `été`, `한국어`
    grams      neighbours in scripts that write no spaces: 漢字かな -> 漢字, 字か, かな, な
    symbols    every other sign by itself: %, ->, an emoji

A word longer than `LONGEST` (a key, a picture in base 64) is not kept as such; one sign for all
of them says that the text has to be looked at.
"""

from __future__ import annotations

import re
import unicodedata

LONGEST = 40
BLOB = "\ue0ff"

# Thai, Lao, Tibetan, Burmese, Khmer; radicals, kana, bopomofo, ideographs.
_UNSPACED = (
    "\u0e00-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b"
    "\u3040-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
# Vowel signs and points that are no letters to Python, and yet parts of words.
_SIGNS = (
    "\u0591-\u05c7\u0610-\u061a\u064b-\u0670\u06d6-\u06ed\u0730-\u074a\u07a6-\u07b0\u0900-\u0dff"
)

_ASCII = re.compile(r"(\w+)|([^\w\s\x00-\x1f\x7f])", re.ASCII)
_ANY = re.compile(rf"((?:[^\W{_UNSPACED}]|[{_SIGNS}])+)|([^\w\s\x00-\x1f\x7f{_UNSPACED}])|([{_UNSPACED}]+)")  # fmt: skip  # noqa: E501


class _Table(dict[int, str]):
    """What each character becomes; filled as characters are met."""

    def __missing__(self, code: int) -> str:
        parts = unicodedata.normalize("NFKD", chr(code)).casefold()
        kept = "".join(c for c in unicodedata.normalize("NFKD", parts) if not _accent(c))
        self[code] = found = unicodedata.normalize("NFC", kept)
        return found


_table = _Table()


def fold(text: str) -> str:
    """The text as it is compared."""
    if text.isascii():
        return text.lower()
    composed = (
        text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)
    )
    folded = composed.translate(_table)
    if unicodedata.is_normalized("NFC", folded):
        return folded
    return unicodedata.normalize("NFC", folded)


def fold_char(char: str) -> str:
    """What one character becomes."""
    return _table[ord(char)]


class Run:
    """A piece of a text: what it is made of, and whether something stands beside it."""

    __slots__ = ("after", "before", "kind", "text")

    def __init__(self, kind: str, text: str, before: bool, after: bool) -> None:
        self.kind = kind  # word, symbol or unspaced
        self.text = text
        self.before = before
        self.after = after


def runs(folded: str) -> list[Run]:
    """The pieces of a text that was folded, in order."""
    found = []
    for match in _ANY.finditer(folded):
        kind = ("word", "symbol", "unspaced")[(match.lastindex or 1) - 1]
        inside = match.start() > 0, match.end() < len(folded)
        found.append(Run(kind, match.group(), *inside))
    return found


def tokens(folded: str) -> tuple[set[str], set[str]]:
    """What a text is found by: its words, and all else."""
    words: set[str] = set()
    others: set[str] = set()
    if folded.isascii():
        for word, symbol in set(_ASCII.findall(folded)):
            if word:
                words.add(word)
            else:
                others.add(symbol_token(symbol))
    else:
        for word, symbol, unspaced in set(_ANY.findall(folded)):
            if word:
                words.add(word)
            elif symbol:
                others.add(symbol_token(symbol))
            else:
                others.update(grams(unspaced))
                others.add(unspaced[-1])
    long = [word for word in words if len(word) > LONGEST]
    if long:
        words.difference_update(long)
        others.add(BLOB)
    return words, others


def grams(run: str) -> list[str]:
    """Every two neighbours."""
    return [run[place : place + 2] for place in range(len(run) - 1)]


def symbol_token(symbol: str) -> str:
    """A sign as the index knows it, where signs of ASCII would only separate words."""
    return chr(0xE000 + ord(symbol)) if symbol.isascii() else symbol


def _accent(char: str) -> bool:
    """Marks on Latin, Greek and Cyrillic letters; in other scripts they are not decoration."""
    return (
        "\u0300" <= char <= "\u036f"
        or "\u1ab0" <= char <= "\u1aff"
        or ("\u1dc0" <= char <= "\u1dff" or "\u20d0" <= char <= "\u20ff")
    )
