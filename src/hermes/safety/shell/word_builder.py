"""Word construction: escapes, braces, field splitting."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from hermes.safety.shell.scope import HOLE, UNSET, Scope, Value

if TYPE_CHECKING:
    from hermes.safety.shell.scope import Origin
    from hermes.safety.shell.stream import Stream, Substituter


_ANSI_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.S
)
_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b",
    "f": "\f", "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip


def unescape(text: str) -> str:
    """The text of an ANSI-C string, `printf` format or `echo -e` argument."""
    if "\\" not in text:
        return text
    plain = _ANSI_ESCAPE.sub(_unescaped, text)
    if plain.isascii():
        return plain
    try:
        # Bytes that were spelled out one by one are one character together.
        return plain.encode("latin-1").decode()
    except UnicodeError:
        return plain


def _unescaped(found: re.Match[str]) -> str:
    byte, short, long, octal, control, char = found.groups()
    if byte or short or long:
        code = int(byte or short or long, 16)
        return chr(code) if code < 0x110000 else ""
    if octal:
        return chr(int(octal, 8) & 255)
    if control:
        return chr(ord(control) & 31)
    return _ESCAPES.get(char, "\\" + char)


_LONGEST = 200_000
_MOST_NAMES = 16


class Word:
    """One argument: its resolved `text`, the `raw` spelling, and what it was made from."""

    __slots__ = ("glob", "origin", "process", "quoted", "raw", "stream", "text", "variables")

    text: str
    variables: tuple[str, ...]

    def __init__(self, text: str, raw: str, origin: Origin) -> None:
        self.text = text
        self.raw = raw
        self.origin = origin
        self.glob = False
        self.quoted = False
        self.variables = ()
        self.stream: Stream | None = None
        self.process: Stream | None = None

    @property
    def known(self) -> bool:
        """Whether the whole text is certain."""
        return HOLE not in self.text and UNSET not in self.text

    def part(self, text: str) -> Word:
        """A word made of a piece of this one, with the same provenance."""
        word = Word(text, text, self.origin)
        word.glob, word.variables, word.stream = self.glob, self.variables, self.stream
        return word

    def __repr__(self) -> str:
        return f"Word({self.text!r})"


class Builder:
    """Collects pieces of text into words; an unquoted blank in one of them starts another."""

    def __init__(
        self,
        raw: str,
        origin: Origin,
        scope: Scope,
        shell: Substituter,
        *,
        split: bool = True,
        depth: int = 0,
    ) -> None:
        self.raw = raw
        self.origin = origin
        self.scope = scope
        self.shell = shell
        self.split = split
        self.depth = depth
        self.size = 0
        self.done: list[Word] = []
        self.word: Word | None = None
        self.parts: list[str] = []

    def finished(self) -> list[Word]:
        self._close()
        return self.done

    def _current(self) -> Word:
        if self.word is None:
            self.word = Word("", self.raw, self.origin)
        return self.word

    def _put(self, text: str) -> None:
        self._current()
        self.size += len(text)
        if self.size > _LONGEST:
            if self.size - len(text) <= _LONGEST:
                self.shell.too_large()
                self.parts.append(HOLE)
            return
        self.parts.append(text)

    def _close(self) -> None:
        if self.word is not None:
            self.word.text = "".join(self.parts)
            self.done.append(self.word)
            self.word = None
            self.parts = []

    def _insert(self, name: str, value: Value, *, quoted: bool, every: bool) -> None:
        if self.word is not None or value.items:
            word = self._current()
            if name != "IFS" and name not in word.variables and len(word.variables) < _MOST_NAMES:
                word.variables += (name,)
            if value.glob:
                word.glob = True
        items = value.items if every else value.items[:1]
        for position, item in enumerate(items):
            if position and self.split:
                self._close()
                self._current().variables = (name,)
            elif position:
                self._put(" ")
            self._text(item, quoted=quoted)

    def _text(self, text: str, *, quoted: bool) -> None:
        if quoted or not self.split:
            self._put(text)
            return
        if "*" in text or "?" in text:
            self._current().glob = True
        blanks = self.scope.variables.get("IFS")
        if blanks is not None and blanks.text.strip():
            text = text.translate({ord(char): " " for char in blanks.text})
        if not (" " in text or "\n" in text or "\t" in text):
            self._put(text)
            return
        names = self.word.variables if self.word else ()
        if text[0].isspace() and self.parts:
            self._close()
        pieces = text.split()
        for position, piece in enumerate(pieces):
            if position:
                self._close()
            self._put(piece)
            self._current().variables = names
        if text[-1].isspace():
            self._close()


def both(one: Stream, other: Stream) -> Stream:
    """Several outputs in one word: nothing of the text is certain any more."""
    return type(one)(None, one.tags | other.tags)


_MOST = 256
_DEEPEST = 40
_WIDEST = 100_000
_RANGE = re.compile(
    r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?\Z|([A-Za-z])\.\.([A-Za-z])(?:\.\.-?\d+)?\Z"
)
_TOKEN = re.compile(r"['\"\\$`{},]|[<>](?=\()")


class _TooManyError(Exception):
    """More spellings than anyone would mean."""


def expand_braces(raw: str, shell: Substituter) -> list[str] | None:
    """The spellings that braces multiply a word into; None when nothing is to be expanded."""
    done: list[str] = []
    waiting = [raw]
    expanded = False
    while waiting:
        text = waiting.pop()
        try:
            group = _first_group(text)
        except _TooManyError:
            shell.too_large()
            return [*done, HOLE]
        if group is None:
            done.append(text)
        else:
            expanded = True
            start, end, choices = group
            head, tail = text[:start], text[end:]
            waiting.extend(head + choice + tail for choice in reversed(choices))
        if len(done) + len(waiting) > _MOST or sum(map(len, waiting)) > 100_000:
            shell.too_large()
            return [*done, HOLE]
    return done if expanded else None


def _first_group(text: str) -> tuple[int, int, list[str]] | None:
    """The first brace group that bash would expand: where it is and what it offers."""
    opened: list[int] = []
    commas: list[list[int]] = []
    index = 0
    while found := _TOKEN.search(text, index):
        token, at = found.group(), found.start()
        index = found.end()
        if token == "\\":
            index = at + 2
        elif token in "'\"`":
            close = text.find(token, index)
            while token != "'" and close > 0 and text[close - 1] == "\\":
                close = text.find(token, close + 1)
            if close < 0:
                return None
            index = close + 1
        elif token in "$<>":
            if text.startswith(("{", "("), index):
                index = _skip(text, index)
        elif token == "{":
            if len(opened) > _DEEPEST:
                raise _TooManyError
            opened.append(at)
            commas.append([])
        elif token == "," and opened:
            commas[-1].append(at)
        elif token == "}" and opened:
            start, cuts = opened.pop(), commas.pop()
            if cuts and not opened:
                edges = [start, *cuts, at]
                pairs = pairwise(edges)
                return start, at + 1, [text[left + 1 : right] for left, right in pairs]
            if not cuts:
                choices = _range(text[start + 1 : at])
                if choices:
                    return start, at + 1, choices
    return None


def _skip(text: str, index: int) -> int:
    closer = "}" if text[index] == "{" else ")"
    opener, depth = text[index], 0
    for at in range(index, len(text)):
        if text[at] == opener:
            depth += 1
        elif text[at] == closer:
            depth -= 1
            if not depth:
                return at + 1
    return len(text)


def _range(text: str) -> list[str]:
    found = _RANGE.match(text)
    if not found:
        return []
    if found[4]:
        first, last = ord(found[4]), ord(found[5])
        step = 1 if last >= first else -1
        return [chr(code) for code in range(first, last + step, step)]
    if len(text) > 40:
        raise _TooManyError
    first, last, by = int(found[1]), int(found[2]), abs(int(found[3] or 1)) or 1
    step = by if last >= first else -by
    if abs(last - first) // by > _WIDEST:
        raise _TooManyError
    numbers = range(first, last + (1 if step > 0 else -1), step)
    # A long range says nothing more about danger than its ends do.
    if len(numbers) > 24:
        return [str(first), str(last), HOLE]
    return [str(number) for number in numbers]
