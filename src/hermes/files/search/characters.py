"""The sets of characters behind `\\s`, `\\p{…}` and `[:alpha:]`, as ranges of code points.

Both engines are given the same ranges, so that neither's own idea of white space counts.
"""

from __future__ import annotations

from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Ranges = tuple[tuple[int, int], ...]

LAST = 0x10FFFF
# Bytes that are no UTF-8 appear as these in Python; ripgrep has no character for them.
STRAY = (0xDC80, 0xDCFF)
_SURROGATES = (0xD800, 0xDFFF)
_LAST_LETTER = 0x33479
# Marks that stand far behind all others.
_SELECTORS = (0xE0100, 0xE01EF)

WHITE: Ranges = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0x85, 0x85),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
)

POSIX: dict[str, Ranges] = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "ascii": ((0x00, 0x7F),),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "cntrl": ((0x00, 0x1F), (0x7F, 0x7F)),
    "digit": ((0x30, 0x39),),
    "graph": ((0x21, 0x7E),),
    "lower": ((0x61, 0x7A),),
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((0x09, 0x0D), (0x20, 0x20)),
    "upper": ((0x41, 0x5A),),
    "word": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}

# One letter, or two, of the general category of a character.
CATEGORIES = frozenset(
    (
        *("C", "Cc", "Cf", "Cn", "Co"),
        *("L", "Ll", "Lm", "Lo", "Lt", "Lu"),
        *("M", "Mc", "Me", "Mn"),
        *("N", "Nd", "Nl", "No"),
        *("P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps"),
        *("S", "Sc", "Sk", "Sm", "So"),
        *("Z", "Zl", "Zp", "Zs"),
    )
)


def complement(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Every character that is in none of the ranges; no half of a surrogate pair."""
    found = []
    start = 0
    for first, last in sorted([*ranges, _SURROGATES]):
        if first > start:
            found.append((start, first - 1))
        start = max(start, last + 1)
    if start <= LAST:
        found.append((start, LAST))
    return tuple(found)


def without(ranges: Iterable[tuple[int, int]], code: int) -> Ranges:
    """The ranges less one character."""
    found = []
    for first, last in ranges:
        if not first <= code <= last:
            found.append((first, last))
            continue
        if first < code:
            found.append((first, code - 1))
        if code < last:
            found.append((code + 1, last))
    return tuple(found)


@lru_cache(maxsize=64)
def category(name: str) -> Ranges:
    """The characters of a general category such as `L` or `Lu`."""
    from unicodedata import category as of

    found: list[tuple[int, int]] = []
    start = -1
    # Behind the last letter there is little else than what belongs to C.
    last = LAST if name[0] == "C" else _LAST_LETTER
    for code in range(last + 2):
        inside = code <= last and of(chr(code)).startswith(name)
        inside = inside and not _SURROGATES[0] <= code <= _SURROGATES[1]
        if inside and start < 0:
            start = code
        elif not inside and start >= 0:
            found.append((start, code - 1))
            start = -1
    if name in ("M", "Mn"):
        found.append(_SELECTORS)
    return tuple(found)
