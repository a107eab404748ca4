"""`Command`: a program with its words, options, input and redirections; inner commands of
wrappers.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from hermes.safety.shell.programs import VALUED
from hermes.safety.shell.scope import (
    ANYTHING,
    DECODED,
    HOLE,
    NETWORK,
    NOTHING,
    UNSET,
    Origin,
    Stream,
    Word,
    names,
)

if TYPE_CHECKING:
    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.scope import Scope


NO_VALUES: frozenset[str] = frozenset()


_VERSIONED = re.compile(
    r"(python|pypy|perl|ruby|php|lua|luajit|node|nodejs|pip|bash|tclsh|clang|"
    r"gcc)-?\d+(?:\.\d+)*(?:w|\.exe)?\Z"
)

_CMDLET_VERBS = names(
    "add clear copy disable enable format get initialize invoke move new out register remove "
    "rename reset restart set start stop uninstall unregister"
)


class Redirect:
    """One redirection: its operator, its target word, or the text of a here-document."""

    __slots__ = ("copies", "descriptor", "operator", "origin", "stream", "target")

    def __init__(self, operator: str, descriptor: str, target: Word | None, origin: Origin) -> None:
        self.operator = operator
        self.descriptor = descriptor
        self.target = target
        self.origin = origin
        self.stream: Stream | None = None
        # The descriptor that this one goes along with, or a dash when it is closed.
        self.copies = ""

    @property
    def writes(self) -> bool:
        """Whether the target is opened for writing (and is not another descriptor)."""
        return ">" in self.operator and self.target is not None

    @property
    def empties(self) -> bool:
        """Whether the target loses what it had before."""
        return self.operator in (">", ">|", "&>", ">&")


class Command:
    """A program with its arguments, after every expansion."""

    __slots__ = (
        "_args",
        "_flags",
        "_operands",
        "_texts",
        "_values",
        "assignments",
        "found",
        "memo",
        "name",
        "redirects",
        "scope",
        "stdin",
        "words",
    )

    name: str
    scope: Scope
    found: bool

    def __init__(
        self,
        words: list[Word],
        scope: Scope,
        *,
        stdin: Stream | None = None,
        redirects: list[Redirect] | None = None,
        assignments: list[tuple[str, Word]] | None = None,
        found: bool = False,
    ) -> None:
        self.words = words
        self.name = program_name(words[0].text)
        self.scope = scope
        self.stdin = stdin
        self.redirects = redirects or []
        self.assignments = assignments or []
        self.found = found
        # What rules of one family work out once for all of them.
        self.memo: dict[str, str | None] = {}
        self._args: list[str] | None = None
        self._flags: set[str] | None = None
        self._values: dict[str, list[Word]] = {}
        self._operands: list[Word] = []
        self._texts: list[str] | None = None

    @property
    def origin(self) -> Origin:
        """From the program to the last argument, in the given text."""
        first, last = self.words[0].origin, self.words[-1].origin
        return Origin(first.start, max(first.end, last.end))

    @property
    def text(self) -> str:
        """The command in one line, for people."""
        line = " ".join(word.text[:200] for word in self.words[:40])
        return line.replace(HOLE, "…").replace(UNSET, "…")[:400]

    @property
    def args(self) -> list[str]:
        """The arguments after the program."""
        if self._args is None:
            self._args = [word.text for word in self.words[1:]]
        return self._args

    @property
    def flags(self) -> set[str]:
        """Options as given and, for clusters such as `-rf`, each letter on its own."""
        if self._flags is None:
            self._read_options()
        return self._flags  # type: ignore[return-value]

    @property
    def operands(self) -> list[Word]:
        """Arguments that are neither options nor values of options."""
        if self._flags is None:
            self._read_options()
        return self._operands

    @property
    def texts(self) -> list[str]:
        """The operands as text, without the `compose` of a container program."""
        if self._texts is None:
            self._texts = [word.text for word in self.operands]
            if self._texts[:1] == ["compose"]:
                del self._texts[0]
        return self._texts

    def after(self, word: Word) -> list[Word]:
        """Every word after one of them, options and all: the command that a program starts."""
        return self.words[next(i for i, own in enumerate(self.words) if own is word) + 1 :]

    def values(self, *names: str) -> list[Word]:
        """The values given to any of these options."""
        if self._flags is None:
            self._read_options()
        return [word for name in names for word in self._values.get(name, ())]

    def has(self, *names: str) -> bool:
        """Whether one of these options was given; long ones may be shortened as getopt allows."""
        flags = self.flags
        for name in names:
            if name in flags:
                return True
            if name.startswith("--"):
                shortest = 3 if self.name == "rm" else 5
                for flag in flags:
                    if len(flag) >= shortest and name.startswith(flag) and flag.startswith("--"):
                        return True
        return False

    def _read_options(self) -> None:
        valued = VALUED.get(self.name, NO_VALUES)
        flags: set[str] = set()
        words = self.words
        index, size = 1, len(words)
        while index < size:
            word = words[index]
            text = word.text
            index += 1
            if len(text) < 2 or text[0] != "-":
                self._operands.append(word)
                continue
            if text == "--":
                self._operands.extend(words[index:])
                break
            option, _, value = text.partition("=")
            if value:
                flags.add(option)
                self._values.setdefault(option, []).append(word.part(value))
                if text[1] == "-":
                    continue
            flags.add(text)
            if text in valued:
                if index < size:
                    self._values.setdefault(text, []).append(words[index])
                    index += 1
                continue
            if text[1] == "-" or (len(text) > 3 and self._is_cmdlet()):
                continue
            index = self._read_cluster(word, flags, valued, index)
        self._flags = flags

    def _is_cmdlet(self) -> bool:
        """Whether options are words after a single dash, as PowerShell spells them."""
        verb, dash, _ = self.name.partition("-")
        return bool(dash) and verb in _CMDLET_VERBS

    def _read_cluster(self, word: Word, flags: set[str], valued: frozenset[str], index: int) -> int:
        text = word.text
        for position, letter in enumerate(text[1:], 1):
            flag = "-" + letter
            flags.add(flag)
            if flag in valued:
                rest = text[position + 1 :]
                if rest:
                    self._values.setdefault(flag, []).append(word.part(rest))
                elif index < len(self.words):
                    self._values.setdefault(flag, []).append(self.words[index])
                    index += 1
                break
        return index


def program_name(text: str) -> str:
    """The program behind a path or a versioned name: `/usr/bin/python3.12` is `python`."""
    name = posixpath.basename(text.rstrip("/")) if "/" in text else text
    if "\\" in name:
        name = name.rpartition("\\")[2]
    if name.isalnum() and name.islower() and not name[-1].isdigit():
        return name
    lowered = name.lower()
    if lowered.endswith((".exe", ".cmd", ".com")):
        name = lowered = lowered[:-4]
    match = _VERSIONED.match(lowered)
    if match:
        return match.group(1)
    if lowered.startswith("zf_"):
        # The builtins of a shell with file modules loaded.
        return lowered[3:]
    if lowered.startswith(("ld-linux", "ld-musl", "ld64.so", "ld.so")):
        return "ld.so"
    if lowered.startswith(("mkfs.", "fsck.", "newfs_", "mke2fs")):
        return "mkfs" if not lowered.startswith("fsck") else "fsck"
    # Case-insensitive file systems and PowerShell both run `RM` and `remove-item` alike.
    return lowered


_DEEPEST = 24


def run_words(
    words: list[Word],
    outer: Command,
    judge: Judge,
    *,
    scope: Scope | None = None,
    stdin: Stream | None = None,
    found: bool = False,
) -> Stream:
    """Judge the rest of a wrapper's words as a command of its own."""
    if not words:
        return NOTHING
    if judge.depth >= _DEEPEST:
        judge.blame("text.too-complex", outer)
        return ANYTHING
    judge.depth += 1
    judge.opened += 1
    try:
        return judge.run_command(
            Command(
                words,
                scope or outer.scope,
                stdin=stdin if stdin is not None else outer.stdin,
                redirects=outer.redirects,
                found=found or outer.found,
            )
        )
    finally:
        judge.depth -= 1


def run_word(word: Word, outer: Command, judge: Judge, *, scope: Scope | None = None) -> Stream:
    """Judge one word as a shell text, with spans that still fit when it was quoted plainly."""
    note_unread(word, outer, judge)
    inner = _inner_scope(outer, scope)
    return judge.run_text(word.text, inner_origin(word), inner, outer.stdin)


def run_line(
    words: list[Word], outer: Command, judge: Judge, *, scope: Scope | None = None
) -> Stream:
    """Judge several words as the one shell line that a program joins them into."""
    if len(words) == 1:
        return run_word(words[0], outer, judge, scope=scope)
    for word in words:
        note_unread(word, outer, judge)
    text = " ".join(word.text for word in words)
    inner = _inner_scope(outer, scope)
    return judge.run_text(text, outer.origin.vague(), inner, outer.stdin)


def _inner_scope(outer: Command, scope: Scope | None) -> Scope:
    inner = scope if scope is not None else outer.scope.copy()
    if outer.found:
        # Run once for each thing found: the same as a loop.
        inner = inner.copy()
        inner.loop += 1
    return inner


def note_unread(word: Word, outer: Command, judge: Judge) -> None:
    """Report code that came over the network or out of a decoder into this word."""
    if word.stream is not None and word.stream.tags & {NETWORK, DECODED}:
        judge.blame("remote-code.substitution", outer)


def inner_origin(word: Word) -> Origin:
    """Where the text of a word stands, exactly if the word is one plain quoted string."""
    raw = word.raw
    if raw == word.text:
        return word.origin
    if len(raw) == len(word.text) + 2 and raw[1:-1] == word.text:
        return word.origin.at(1, len(raw) - 1)
    return word.origin.vague()


def literal(text: str, outer: Command) -> Word:
    """A word that an interpreter's own source spells out."""
    return Word(text, text, outer.origin.vague())


def unknown(outer: Command) -> Word:
    """A word that can't be known before the command runs."""
    return literal(HOLE, outer)
