"""Parser: shell text to a tree-sitter syntax tree, in pieces when the text is long, handed to the
tree walk.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.lexing import (
    Here,
    as_ascii,
    is_crowded,
    is_dense,
    is_merged,
    needs_preparing,
    prepare,
    split_pieces,
)
from hermes.safety.shell.run_command import run_simple
from hermes.safety.shell.scope import ANYTHING, HOLE, NOTHING, Stream, joined, names
from hermes.safety.shell.walk import Walker
from hermes.safety.shell.words import Word

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.scope import Origin, Scope

_LONG = 1500
_PLAIN = re.compile(r"[A-Za-z0-9_./-][A-Za-z0-9_./:,+@%^-]*(?: +[A-Za-z0-9_./:=,+@%^-]+){0,30}\Z")
_WORD = re.compile(r"[^ ]+")
# The first words of which a grammar makes more than a program.
_GRAMMAR = names(
    "if then else elif fi for while until do done case esac select function time coproc in export "
    "declare typeset local readonly unset unsetenv"
)
_parser: Parser | None = None


def parse(text: str) -> Node:
    """The root of the syntax tree of an ASCII text."""
    global _parser
    if _parser is None:
        import tree_sitter
        import tree_sitter_bash

        _parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    return _parser.parse(text.encode("latin-1", "replace")).root_node


def run(text: str, origin: Origin, scope: Scope, stdin: Stream | None, judge: Judge) -> Stream:
    """Judge a text and say what it would print."""
    if _PLAIN.match(text) and text.partition(" ")[0] not in _GRAMMAR:
        # Most commands are plain words side by side, and need no grammar.
        words = [
            Word(found.group(), found.group(), origin.at(found.start(), found.end()))
            for found in _WORD.finditer(text)
        ]
        return run_simple(words, [], [], scope, stdin, judge)
    if len(text) > _LONG:
        return _run_long(text, origin, scope, stdin, judge)
    heres: dict[int, Here] = {}
    if "\n" in text and is_merged(text):
        shown, heres, _ = prepare(text, simplify=True)
    elif needs_preparing(text):
        shown, heres, _ = prepare(text)
    else:
        shown = as_ascii(text)
    root = parse(shown)
    if root.has_error:
        if not judge.may_fail():
            judge.report("text.too-complex", origin, text[:80])
            return ANYTHING
        shown, heres, whole = prepare(text, simplify=True)
        root = parse(shown)
        if (root.has_error or not whole) and not (scope.script and HOLE in text):
            judge.report("text.unreadable", origin, text[:200])
    return Walker(text, origin, heres, judge).run(root, scope, stdin)


def _run_long(
    text: str, origin: Origin, scope: Scope, stdin: Stream | None, judge: Judge
) -> Stream:
    """The same for a text too long to be parsed at once."""
    shown, heres, whole = prepare(text, simplify=True)
    if not whole:
        judge.report("text.unreadable", origin, text[:200])
        return ANYTHING
    if is_crowded(shown, script=bool(scope.script)):
        judge.report("text.too-complex", origin, text[:80])
        return ANYTHING
    outputs = []
    body = shown[: len(shown.rstrip()) + 1]
    pieces = [(0, len(body))] if len(body) <= _LONG else split_pieces(body)
    for start, end in pieces:
        piece = shown[start:end]
        if is_dense(piece):
            judge.report("text.too-complex", origin.at(start, end), text[start : start + 80])
            return ANYTHING
        root = parse(piece)
        if root.has_error and not judge.may_fail():
            return ANYTHING
        if root.has_error:
            judge.report("text.unreadable", origin.at(start, end), text[start : start + 200])
        inside = {at - start: here for at, here in heres.items() if start <= at < end}
        walker = Walker(text[start:end], origin.at(start, end), inside, judge, start)
        outputs.append(walker.run(root, scope, stdin))
        if root.has_error:
            return ANYTHING
    return joined([output for output in outputs if output is not NOTHING])
