"""Reads a regular expression, and spells it for both engines."""

from __future__ import annotations

import re

from hermes.files.search.characters import CATEGORIES, POSIX, WHITE, category, complement
from hermes.files.search.pieces import PatternError, Piece, char, counted, longest_run, set_of
from hermes.files.search.sets import CharacterSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.files.search.characters import Ranges

_CONTROLS = {"t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b", "0": "\0"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
# Ends and edges: how ripgrep and Python write them. A line may end in `\r\n`.
_LINE_END = (r"\r?$", r"(?=\r?(?:\n|\Z))")
_EDGES = {
    "b": (r"\b", r"\b"),
    "B": (r"\B", r"\B"),
    "<": (r"\b{start}", r"(?<![\w])(?=[\w])"),
    ">": (r"\b{end}", r"(?<=[\w])(?![\w])"),
    "A": ("^", "^"),
    "z": _LINE_END,
    "Z": _LINE_END,
}
_FLAGS = re.compile(r"\(\?[a-zA-Z-]*\)")
_MOST_REPEATS = 1000
_DEEPEST = 100


class Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._groups = 0
        self._names: set[str] = set()
        self._depth = 0
        self.only_python = False
        self.risky = False

    def whole(self) -> Piece:
        piece = self._alternatives()
        if self._at < len(self._text):
            raise PatternError("a ) without its (", self._at)
        return piece

    # -- structure ---------------------------------------------------------------------------

    def _alternatives(self) -> Piece:
        """Everything up to the end of a group."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise PatternError("groups are nested too deeply", self._at)
        flags = self._leading_flags()
        branches = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._sequence())
        self._depth -= 1
        rust = "|".join(one.rust for one in branches)
        python = "|".join(one.python for one in branches)
        if flags:
            rust, python = f"(?{flags}:{rust})", f"(?{flags}:{python})"
        piece = Piece(rust, python)
        piece.literal = branches[0].literal if len(branches) == 1 and not flags else None
        piece.weight = max(one.weight for one in branches)
        return piece

    def _sequence(self) -> Piece:
        pieces: list[Piece] = []
        while (one := self._peek()) and one not in "|)":
            pieces.append(self._repeated())
        joined = Piece("".join(p.rust for p in pieces), "".join(p.python for p in pieces))
        joined.weight = max((p.weight for p in pieces), default=1)
        joined.literal = longest_run(pieces)
        return joined

    def _repeated(self) -> Piece:
        start = self._at
        piece = self._atom()
        sign = self._at
        count = self._repetition()
        if count is None:
            return piece
        if piece.edge:
            raise PatternError("there is nothing to repeat", start)
        least, most = count
        manner = ""
        if self._peek() in ("?", "+"):
            manner = self._take()
            self.only_python = self.only_python or manner == "+"
        if self._repetition() is not None:
            raise PatternError("a repetition of a repetition", self._at - 1)
        if max(least, most or 0) * piece.weight > _MOST_REPEATS:
            raise PatternError(f"more than {_MOST_REPEATS} repetitions", sign)
        self.risky = self.risky or most is None or most > 1
        suffix = counted(least, most) + manner
        repeated = Piece(f"(?:{piece.rust}){suffix}", f"(?:{piece.python}){suffix}")
        repeated.weight = max(least, most or 1, 1) * piece.weight
        return repeated

    def _repetition(self) -> tuple[int, int | None] | None:
        """How often the last part may come; None (and nothing read) when that isn't said."""
        one = self._peek()
        if one in ("*", "+", "?") and one:
            self._at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[one]
        if one != "{":
            return None
        end = self._text.find("}", self._at)
        least, comma, most = self._text[self._at + 1 : max(end, 0)].partition(",")
        digits = least + most
        if end < 0 or not (digits.isascii() and digits.isdigit()):
            return None
        start = self._at
        self._at = end + 1
        if len(least) > 4 or len(most) > 4:
            raise PatternError(f"more than {_MOST_REPEATS} repetitions", start)
        low = int(least or 0)
        high = (int(most) if most else None) if comma else low
        if high is not None and high < low:
            raise PatternError("the repetition ends before it begins", start)
        return low, high

    # -- atoms -------------------------------------------------------------------------------

    def _atom(self) -> Piece:
        start = self._at
        one = self._take()
        if one == ".":
            return set_of(CharacterSet(negated=True))
        if one == "^":
            return Piece("^", "^", edge=True)
        if one == "$":
            return Piece(*_LINE_END, edge=True)
        if one == "[":
            return self._bracket(start)
        if one == "(":
            return self._group(start)
        if one == "\\":
            return self._escape(start)
        if one in "*+?":
            raise PatternError("there is nothing to repeat", start)
        return char(one)

    def _group(self, start: int) -> Piece:
        if self._peek() != "?":
            self._groups += 1
            return self._closed(start, "(?:", "(")
        self._at += 1
        if self._peek() == "#":
            end = self._text.find(")", self._at)
            if end < 0:
                raise PatternError("this comment is never closed", start)
            self._at = end + 1
            return Piece("", "", edge=True)
        for opening in ("=", "!", "<=", "<!", ">"):
            if self._text.startswith(opening, self._at):
                self._at += len(opening)
                self.only_python = True
                piece = self._closed(start, "", f"(?{opening}")
                piece.edge = opening != ">"
                return piece
        for opening in ("P<", "<"):
            if self._text.startswith(opening, self._at):
                self._at += len(opening)
                name = self._until(">", start)
                if not name.isidentifier() or name in self._names:
                    raise PatternError(f"{name!r} is no new name for a group", start)
                self._names.add(name)
                self._groups += 1
                return self._closed(start, "(?:", f"(?P<{name}>")
        if self._text.startswith("P=", self._at):
            self._at += 2
            return self._back(self._until(")", start), start)
        flags = self._flags(start, ":")
        opening = f"(?{flags}:"
        piece = self._closed(start, opening, opening)
        if flags:
            piece.literal = None
        return piece

    def _closed(self, start: int, rust: str, python: str) -> Piece:
        inner = self._alternatives()
        if self._peek() != ")":
            raise PatternError("this ( is never closed", start)
        self._at += 1
        piece = Piece(f"{rust}{inner.rust})", f"{python}{inner.python})", literal=inner.literal)
        piece.weight = inner.weight
        if rust == "":
            piece.literal = None
        return piece

    def _leading_flags(self) -> str:
        """`(?i)` at the head of a group holds for all of it."""
        found = _FLAGS.match(self._text, self._at)
        if found is None:
            return ""
        start = self._at
        self._at += 2
        return self._flags(start, ")")

    def _flags(self, start: int, end: str) -> str:
        on, _, off = self._until(end, start).partition("-")
        for letter in on + off:
            if letter not in "imsu":
                raise PatternError(f"(?{letter} is not known here", start)
        # The others change nothing: lines are matched one by one, in all scripts.
        return "i" if "i" in on else "-i" if "i" in off else ""

    def _back(self, name: str, start: int) -> Piece:
        known = name in self._names or (name.isdigit() and 1 <= int(name) <= self._groups)
        if not known:
            raise PatternError(f"there is no group {name} before this", start)
        self.only_python = self.risky = True
        # The empty group keeps a digit that follows apart.
        spelling = f"(?:\\{name})" if name.isdigit() else f"(?P={name})"
        return Piece("", spelling)

    # -- escapes and sets --------------------------------------------------------------------

    def _escape(self, start: int) -> Piece:
        one = self._peek()
        if one in _EDGES and one:
            self._at += 1
            return Piece(*_EDGES[one], edge=True)
        if one == "k":
            self._at += 1
            if self._peek() not in ("<", "{"):
                raise PatternError(r"\k needs <name>", start)
            return self._back(self._until(">" if self._take() == "<" else "}", start), start)
        if one.isdigit() and one.isascii() and one != "0":
            digits = self._take()
            while self._peek().isdigit() and int(digits + self._peek()) <= self._groups:
                digits += self._take()
            return self._back(digits, start)
        chosen = CharacterSet()
        code = self._class_escape(chosen, start)
        return char(chr(code)) if code is not None else set_of(chosen)

    def _class_escape(self, chosen: CharacterSet, start: int) -> int | None:
        """What follows a backslash: a character's code, or characters that `chosen` now has."""
        one = self._take()
        if not one:
            raise PatternError("a lone backslash", start)
        if one in "wdWD":
            chosen.words.append(f"\\{one}")
        elif one in "sS":
            chosen.add(WHITE if one == "s" else complement(WHITE))
        elif one in "pP":
            chosen.add(self._property(one == "P", start))
        elif one in _HEX_DIGITS:
            return self._code(_HEX_DIGITS[one], start)
        elif one == "n":
            raise PatternError("it spans lines, and the search is by line", start)
        elif one in _CONTROLS:
            return ord(_CONTROLS[one])
        elif one.isalnum():
            raise PatternError(f"\\{one} is not known here", start)
        else:
            return ord(one)
        return None

    def _property(self, negated: bool, start: int) -> Ranges:
        name = self._take()
        if name == "{":
            name = self._until("}", start)
        if name.startswith("^"):
            negated, name = not negated, name[1:]
        if name not in CATEGORIES:
            raise PatternError(
                f"the property {name!r} is not known here; categories such as L, Lu, Nd are", start
            )
        return complement(category(name)) if negated else category(name)

    def _code(self, digits: int, start: int) -> int:
        if self._peek() == "{":
            self._at += 1
            text = self._until("}", start)
        else:
            text = self._text[self._at : self._at + digits]
            self._at += digits
            if len(text) < digits:
                text = ""
        try:
            code = int(text, 16) if text.isalnum() else -1
        except ValueError:
            code = -1
        if not 0 <= code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise PatternError("no character has this code", start)
        if code == 10:
            raise PatternError("it spans lines, and the search is by line", start)
        return code

    def _bracket(self, start: int) -> Piece:
        chosen = CharacterSet()
        if self._peek() == "^":
            self._at += 1
            chosen.negated = True
        first = True
        while (one := self._peek()) != "]" or first:
            if not one:
                raise PatternError("this [ is never closed", start)
            first = False
            low = self._member(chosen)
            if (
                low is None
                or self._peek() != "-"
                or self._text[self._at + 1 : self._at + 2] in ("]", "")
            ):
                if low is not None:
                    chosen.add(((low, low),))
                continue
            at = self._at
            self._at += 1
            high = self._member(CharacterSet())
            if high is None or high < low:
                raise PatternError("this range leads nowhere", at)
            chosen.add(((low, high),))
        self._at += 1
        if chosen.empty:
            raise PatternError("it spans lines, and the search is by line", start)
        return set_of(chosen)

    def _member(self, chosen: CharacterSet) -> int | None:
        """One character of a set, by its code; None when it was a whole class of them."""
        start = self._at
        if self._text.startswith("[:", start) and (end := self._text.find(":]", start)) > 0:
            name = self._text[start + 2 : end]
            ranges = POSIX.get(name.removeprefix("^"))
            if ranges is None:
                raise PatternError(f"the class {name!r} is not known", start)
            chosen.add(complement(ranges) if name.startswith("^") else ranges)
            self._at = end + 2
            return None
        one = self._take()
        if one != "\\":
            return ord(one)
        if self._peek() == "b":
            self._at += 1
            return 8
        if self._peek() == "n":
            # No line holds one: it adds nothing, and takes nothing away.
            self._at += 1
            return 10
        return self._class_escape(chosen, start)

    # -- reading -----------------------------------------------------------------------------

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        one = self._peek()
        self._at += 1
        return one

    def _until(self, end: str, start: int) -> str:
        at = self._text.find(end, self._at)
        if at < 0:
            raise PatternError(f"{end} is missing", start)
        text = self._text[self._at : at]
        self._at = at + 1
        return text
