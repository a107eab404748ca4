"""Targets of a delete: one ordinary file, more than that, or everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hermes.safety.shell.path_classes as path_classes
from hermes.safety.shell.scope import HOLE, names

if TYPE_CHECKING:
    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.scope import Scope
    from hermes.safety.shell.words import Word


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


DELETERS = names("rm unlink srm grm rimraf del-cli remove-item ri rd rmdir del erase")
_POSIX = names("rm unlink srm grm rimraf del-cli")


def delete_rules(command: Command) -> list[str | None]:
    """The rules that a deleting program meets, by its operands and switches."""
    found = []
    if command.name in _POSIX:
        recursive = command.name in ("rimraf", "del-cli") or (
            command.name != "unlink" and command.has("-r", "-R", "--recursive")
        )
        found.append(
            kind_of_delete(
                command.operands, command.scope, recursive=recursive, found=command.found
            )
        )
    switches = {arg.lower() for arg in command.args}
    if command.name not in _POSIX | {"rmdir"} or switches & {"/s", "/q", "-recurse"}:
        found.append(_windows_rule(command, switches))
    return found


def _windows_rule(command: Command, switches: set[str]) -> str | None:
    words, scope = _windows_targets(command), command.scope
    if "/s" in switches or any(len(arg) > 1 and "-recurse".startswith(arg) for arg in switches):
        everything = any(covers_everything(word, scope) for word in words)
        return "windows.delete-everything" if everything else "windows.delete-tree"
    if command.name in ("rd", "rmdir", "rm"):
        return None
    unknown = any(word.text == HOLE for word in words) or (not words and command.stdin is not None)
    kind = kind_of_delete(words, scope, recursive=False, found=command.found)
    return "windows.delete-many" if unknown or kind else None


def _windows_targets(command: Command) -> list[Word]:
    """Operands of PowerShell, whose switches start with `-`, or of cmd, whose start with `/`."""
    from hermes.safety.shell.code.powershell import windows_path

    words = []
    for word in command.words[1:]:
        text = word.text
        if text.startswith("-") or (text.startswith("/") and len(text) in (2, 3)):
            continue
        if text.lower() in ("silentlycontinue", "stop", "ignore", "$true", "$false"):
            continue
        spelled = "\\" in word.raw or "$env" in word.raw.lower() or "%" in word.raw
        raw = word.raw.strip("\"'") if spelled else text
        part = word.part(windows_path(raw, command.scope))
        part.glob = "*" in part.text
        words.append(part)
    return words


def judge_found(command: Command, tops: list[Word], judge: Judge, *, filtered: bool) -> None:
    """`find … -delete`: a question, or a refusal when nothing limits it to a part of home."""
    if not filtered and any(covers_everything(top, command.scope) for top in tops):
        judge.blame("delete.root-or-home", command)
    else:
        judge.blame("delete.each", command)
