"""Launch of a command: shell, argument vector, variables, stdin; plain programs start without a
shell.
"""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING

import hermes.environments.shell_state as shell_state
from hermes.core.errors import ToolError, UnavailableError
from hermes.environments.command import as_bytes, no_variable
from hermes.environments.env_vars import MARK, command_environment
from hermes.environments.host.process import readable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes.environments.command import Order
    from hermes.environments.host.host_environment import Place
    from hermes.environments.host.process import Process, Ready


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


_scripts: dict[tuple[bool, bool, bool], bytes] = {}
_shell_found: tuple[bytes, bool] | None = None


def script(bash: bool, long: bool, keep_state: bool) -> bytes:
    """What the shell is to run, around the command."""
    key = bash, long, keep_state
    if key not in _scripts:
        _scripts[key] = shell_state.wrapped(bash=bash, long=long, keep=keep_state).encode()
    return _scripts[key]


def shell() -> tuple[bytes, bool]:
    """The shell to run commands with, and whether it is bash."""
    global _shell_found
    if _shell_found is None:
        bash = shutil.which("bash")
        path = bash or shutil.which("sh")
        if path is None:
            raise UnavailableError("there is no shell to run commands with", hint="Install bash.")
        _shell_found = os.fsencode(path), bash is not None
    return _shell_found


def not_started(failure: OSError, folder: str) -> ToolError:
    """What to say when the system would not start a command."""
    return ToolError(f"the command can't be started in {folder}: {failure.strerror}")


class Launcher:
    """Starts the commands of one task at one place."""

    def __init__(self, place: Place, task: str, passed: Sequence[str]) -> None:
        self._place = place
        self._task = task
        self._passed = passed
        # Our own variables that commands may see, as they were at the first command.
        self._ours: dict[str, str] | None = None
        self._last: tuple[dict[str, str], dict[bytes, bytes]] = ({}, {})

    def folder(self, order: Order, last: str) -> str:
        """Where a command starts: as it says, else where the last one left off or above that."""
        if order.cwd is not None:
            wanted = os.path.normpath(os.path.join(last, os.path.expanduser(order.cwd)))
            if not self._place.is_folder(wanted):
                raise ToolError(f"{wanted} is no folder", hint="Give a workdir that exists.")
            return wanted
        while not self._place.is_folder(last):
            last = os.path.dirname(last)
        return last

    def variables(
        self, order: Order, task_env: Mapping[str, str | None], folder: str
    ) -> dict[str, str]:
        """All that a command sees."""
        if self._ours is None:
            self._ours = self._place.variables(self._passed)
        variables = command_environment(task_env, self._ours, extra=order.env, attended=order.pty)
        variables[MARK] = self._task
        # Or the shell would take the folder by where it really is, and not by its name.
        variables["PWD"] = folder
        return variables

    def start(
        self,
        process: Process,
        order: Order,
        folder: str,
        variables: dict[str, str],
        definitions: str,
        *,
        keep: bool = False,
        plain: bool = False,
        input_file: int = -1,
        ready: Ready | None = None,
    ) -> bool:
        """Have a command started; with `keep` its shell says at the end what it leaves.

        Where there can be one: with `plain` a mere program is started without. Whether a shell was.
        One that nobody follows (`ready`) says when it has started.
        """
        path, is_bash = self._place.shell()
        text = as_bytes(order.command)
        typed = order.typed if order.pty else b""
        # A word of a program's can't be so long.
        long = len(text) > shell_state.LONGEST_ARGUMENT and is_bash
        words = None
        if long or definitions or not shell_state.leaves_no_trace(order.command):
            argv = [
                path, b"-c", script(is_bash, long, keep), b"bash" if is_bash else b"sh",
                b"" if long else text, as_bytes(definitions),
            ]  # fmt: skip
        else:
            keep = False
            argv = [path, b"-c", text]
            words = self._place.plain(order.command, variables) if plain else None
        if words is not None:
            path, argv = words
        given = {} if input_file < 0 else {0: input_file}
        opened: list[int] = []
        try:
            if order.stdin is not None and not order.pty:
                given[0] = readable(order.stdin)
                opened.append(given[0])
            if long:
                given[shell_state.TEXT_FILE] = readable(text + b"\0")
                opened.append(given[shell_state.TEXT_FILE])
            process.start(
                argv,
                program=path,
                task=self._task,
                env=self._encoded(variables),
                cwd=folder,
                given=given,
                state_place=shell_state.STATE_FILE if keep else None,
                pty=order.pty,
                announce=ready is None,
                ready=ready,
            )
            if typed:
                os.write(process.master, typed)
        finally:
            for file in opened:
                os.close(file)
        return words is None

    def _encoded(self, variables: dict[str, str]) -> dict[bytes, bytes]:
        """The variables as the system wants them; mostly those of the last command."""
        if variables != self._last[0]:
            for name, value in variables.items():
                if not name or "=" in name or "\0" in name + value:
                    raise no_variable(name)
            encoded = {as_bytes(name): as_bytes(value) for name, value in variables.items()}
            self._last = variables, encoded
        return self._last[1]
