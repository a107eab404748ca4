"""Characters and sets of them, as each engine writes them."""

from __future__ import annotations

from hermes.files.search.characters import STRAY, without

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.files.search.characters import Ranges

_NEWLINE, _RETURN = 10, 13
_OPEN_WORDS = frozenset((r"\W", r"\D"))


def spelled(one: str, *, python: bool) -> str:
    """One character as a pattern that matches it alone."""
    if one == "_" or (one.isascii() and one.isalnum()):
        return one
    code = ord(one)
    if not python:
        return f"\\x{{{code:X}}}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\U{code:08x}"


class CharacterSet:
    """What one character may be; a line's end is never among it."""

    __slots__ = ("_ranges", "negated", "words")

    def __init__(self, *, negated: bool = False) -> None:
        self.negated = negated
        self._ranges: list[tuple[int, int]] = []
        # `\w` and `\d` stay words: both engines know them.
        self.words: list[str] = []

    def add(self, ranges: Ranges) -> None:
        """Put characters in; of a wide range, `\\r` stays out."""
        for first, last in ranges:
            kept = without(((first, last),), _NEWLINE)
            self._ranges += kept if first == last else without(kept, _RETURN)

    @property
    def empty(self) -> bool:
        """Whether nothing can be matched."""
        return not (self._ranges or self.words or self.negated)

    def rust(self) -> str:
        """For ripgrep."""
        members = self._members(python=False)
        if self.negated:
            return f"[^{members}\\r\\n]"
        return f"[[{members}]--[\\r\\n]]" if self._open else f"[{members}]"

    def python(self) -> str:
        """For `re`; bytes that are no text are in no set, as with ripgrep."""
        members = self._members(python=True)
        stray = "\\r\\n" + _range(STRAY, python=True)
        if self.negated:
            return f"[^{members}{stray}]"
        return f"(?:(?![{stray}])[{members}])" if self._open else f"[{members}]"

    @property
    def _open(self) -> bool:
        return not _OPEN_WORDS.isdisjoint(self.words)

    def _members(self, *, python: bool) -> str:
        return "".join(self.words) + "".join(_range(one, python=python) for one in self._ranges)


def _range(bounds: tuple[int, int], *, python: bool) -> str:
    first, last = bounds
    low = _code(first, python=python)
    return low if first == last else f"{low}-{_code(last, python=python)}"


def _code(code: int, *, python: bool) -> str:
    if not python and 0xD800 <= code <= 0xDFFF:
        # ripgrep knows no halves of pairs: the nearest character that is one.
        code = 0xD7FF if code < 0xDC00 else 0xE000
    return spelled(chr(code), python=python)
