"""Inner commands: wrappers and interpreters hand the command that they start back to the
analysis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.shell.command import Command
from hermes.safety.shell.scope import HOLE
from hermes.safety.shell.stream import ANYTHING, DECODED, NETWORK, NOTHING, Stream
from hermes.safety.shell.word_builder import Word

if TYPE_CHECKING:
    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.scope import Origin, Scope


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
