"""Commands that are one program and plain words: those need no shell in between.

A shell would replace itself by the program, after a millisecond of its own. Everything that it
might read in another way is left to it: quotes, patterns, variables, its own words and commands. So
is whatever the system can't start, for the shell knows best what to say of that.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+-]*(?:[ \t]+[A-Za-z0-9_./+:,@%=-]+)*[ \t]*")
# What bash does itself, and the words of its grammar.
_OWN = frozenset({
    ".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "command",
    "compgen", "complete", "compopt", "continue", "coproc", "declare", "dirs", "disown", "do",
    "done", "echo", "elif", "else", "enable", "esac", "eval", "exec", "exit", "export", "false",
    "fc", "fg", "fi", "for", "function", "getopts", "hash", "help", "history", "if", "in", "jobs",
    "kill", "let", "local", "logout", "mapfile", "popd", "printf", "pushd", "pwd", "read",
    "readarray", "readonly", "return", "select", "set", "shift", "shopt", "source", "suspend",
    "test", "then", "time", "times", "trap", "true", "type", "typeset", "ulimit", "umask",
    "unalias", "unset", "until", "wait", "while",
})  # fmt: skip
# Its own that do the same as the programs of that name, as long as nothing is said to them.
_ALIKE = frozenset({"true", "false"})


def plain_words(command: str, variables: Mapping[str, str]) -> tuple[bytes, list[bytes]] | None:
    """The program's place, and all words; None where a shell has to read the command."""
    if not _PLAIN.fullmatch(command):
        return None
    words = command.split()
    first = words[0]
    if first in _OWN and (first not in _ALIKE or len(words) > 1):
        return None
    if "BASH_ENV" in variables or any(name.startswith("BASH_FUNC_") for name in variables):
        return None
    place = first if "/" in first else _found(first, variables.get("PATH", ""))
    if not place:
        return None
    return place.encode(), [word.encode() for word in words]


def _found(name: str, path: str) -> str:
    """Where a program is that is known by its name alone; empty where that is not sure."""
    for folder in path.split(":"):
        place = f"{folder}/{name}"
        if not folder.startswith("/"):
            return ""
        if os.access(place, os.X_OK) and os.path.isfile(place):
            return place
    return ""
