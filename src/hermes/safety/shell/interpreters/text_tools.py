"""Filters that can start a shell or write files: sed and pagers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.effects import READERS
from hermes.safety.shell.interpreters.python_values import expand_home
from hermes.safety.shell.opening import literal
from hermes.safety.shell.paths import is_null
from hermes.safety.shell.places import judge_write
from hermes.safety.shell.producers import reads_nothing
from hermes.safety.shell.scope import HOLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.command import Command
    from hermes.safety.shell.judge import Judge
    from hermes.safety.shell.stream import Stream

_SED_COMMAND = re.compile(
    (
        r"(?:^|[;{}\n]|\d|\$|/[IM]?)\s*(?:([ewWrR])(?:\s+(\S[^\n]*)|$)|s(.)((?:\\.|"
        r"(?!\3)[^\\])*)\3((?:\\.|(?!\3)[^\\])*)\3([gpiImM0-9]*)([ew])\s*([^\n;]*))"
    ),
    re.S,
)
# Every line deleted, none left.
_SED_NOTHING = re.compile(r"\s*(?:1,\$)?\s*d\s*;?\s*\Z")
# What was matched, in the text that replaces it.
_SED_FILLED = re.compile(r"(?<!\\)&|\\\d")


def _awk(command: Command, judge: Judge) -> Stream | None:
    from hermes.safety.shell.interpreters.awk import run_awk

    return run_awk(command, judge)


def _sed(command: Command, judge: Judge) -> Stream | None:
    scripts = command.values("-e", "--expression")
    if not scripts and not command.values("-f", "--file"):
        scripts = command.operands[:1]
    for script in scripts:
        if _SED_NOTHING.match(script.text) and any(
            flag.startswith(("-i", "--in-place")) for flag in command.flags
        ):
            judge.blame("delete.emptied", command)
        for found in _SED_COMMAND.finditer(script.text):
            letter, argument = found.group(1), found.group(2)
            if letter == "e":
                _shell(argument or HOLE, command, judge)
            elif letter in ("w", "W") and argument:
                _write(argument, command, judge)
            elif found.group(7) == "e":
                _shell(_SED_FILLED.sub(HOLE, found.group(5)), command, judge)
            elif found.group(7) == "w":
                _write(found.group(8), command, judge)
    return None


def _pager(command: Command, judge: Judge) -> Stream | None:
    for word in command.words[1:]:
        if word.text.startswith("+!"):
            _shell(word.text[2:], command, judge)
    return None


def _write(path: str, command: Command, judge: Judge) -> None:
    word = literal(expand_home(path, command.scope), command)
    judge_write(word, command.text, command.scope, judge)
    if reads_nothing(command, READERS["sed"](command)) and not is_null(word.text):
        judge.blame("delete.emptied", command)


def _shell(text: str, command: Command, judge: Judge) -> None:
    judge.run_text(text, command.origin.vague(), command.scope.copy())


TEXT_TOOLS: dict[str, Callable[[Command, Judge], Stream | None]] = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
    "sed": _sed,
    "gsed": _sed,
    **dict.fromkeys(("less", "more", "most"), _pager),
}
