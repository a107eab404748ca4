"""Targets of a delete: one ordinary file, more than that, or everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hermes.safety.shell.path_classes as path_classes
from hermes.safety.shell.scope import HOLE

if TYPE_CHECKING:
    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.scope import Scope
    from hermes.safety.shell.word_builder import Word


def kind_of_delete(
    words: list[Word], scope: Scope, *, recursive: bool, found: bool = False
) -> str | None:
    """The rule that deleting these operands meets; None for one ordinary file."""
    if (recursive or found) and any(covers_everything(word, scope) for word in words):
        return "delete.root-or-home"
    if recursive:
        return "delete.recursive" if words else None
    if found:
        return "delete.each"
    if any(word.glob for word in words):
        return "delete.glob"
    if scope.loop and any(word.variables for word in words):
        return "delete.each"
    if scope.script:
        # Its own temporary files, whose names are made when it runs.
        words = [word for word in words if word.known]
    if len(words) > 1:
        return "delete.several"
    for word in words:
        for path in path_classes.targets(word, scope):
            if path_classes.is_temporary(path):
                continue
            if HOLE in path:
                return "delete.unknown"
            if not path_classes.in_workspace(path, scope):
                return "delete.outside"
    return None


def covers_everything(word: Word, scope: Scope) -> bool:
    """Whether an operand is the root, a home directory, or all that is in one."""
    text = word.text
    if not text:
        return False
    # A plain name leads further down; only above home could that be the home directory.
    plain = not word.glob and text[0].isalnum() and ".." not in text and word.known
    if plain and not (scope.home + "/").startswith(scope.cwd.rstrip("/") + "/"):
        return False
    return any(
        path_classes.is_root(path, glob=word.glob)
        or path_classes.is_home(path, scope, glob=word.glob)
        for path in path_classes.targets(word, scope)
    )


def judge_found(command: Command, tops: list[Word], judge: Judge, *, filtered: bool) -> None:
    """`find … -delete`: a question, or a refusal when nothing limits it to a part of home."""
    if not filtered and any(covers_everything(top, command.scope) for top in tops):
        judge.blame("delete.root-or-home", command)
    else:
        judge.blame("delete.each", command)
