"""Words while they are put together: what they are made of, where they split."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.shell.scope import HOLE, UNSET, Scope, Value

if TYPE_CHECKING:
    from hermes.safety.shell.origin import Origin
    from hermes.safety.shell.protocols import Substituter
    from hermes.safety.shell.stream import Stream

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
