"""Launch of a command: shell, argument vector, variables, stdin.

A command that is one program with plain words starts without a shell in between, which saves a
millisecond. Everything that a shell might read in another way is left to it: quotes, globs,
variables, its keywords and builtins. So is a program that can't be executed: the shell has the
better error message.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import hermes.environments.shell_state as shell_state
from hermes.core.errors import ToolError, UnavailableError
from hermes.core.paths import MARK, find_program
from hermes.environments.command import command_environment, encode_text, variable_error
from hermes.environments.host.process import stdin_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes.environments.command import CommandRequest
    from hermes.environments.host.host_environment import Host
    from hermes.environments.host.process import Poller, Process

_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+-]*(?:[ \t]+[A-Za-z0-9_./+:,@%=-]+)*[ \t]*")
# Builtins and keywords of bash.
_BUILTINS = frozenset({
    ".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "command",
    "compgen", "complete", "compopt", "continue", "coproc", "declare", "dirs", "disown", "do",
    "done", "echo", "elif", "else", "enable", "esac", "eval", "exec", "exit", "export", "false",
    "fc", "fg", "fi", "for", "function", "getopts", "hash", "help", "history", "if", "in", "jobs",
    "kill", "let", "local", "logout", "mapfile", "popd", "printf", "pushd", "pwd", "read",
    "readarray", "readonly", "return", "select", "set", "shift", "shopt", "source", "suspend",
    "test", "then", "time", "times", "trap", "true", "type", "typeset", "ulimit", "umask",
    "unalias", "unset", "until", "wait", "while",
})  # fmt: skip
# Builtins that equal the programs of that name, when they have no arguments.
_EQUAL = frozenset({"true", "false"})

_scripts: dict[tuple[bool, bool, bool], bytes] = {}
_shell: tuple[bytes, bool] | None = None


def plain_argv(command: str, variables: Mapping[str, str]) -> tuple[bytes, list[bytes]] | None:
    """Path and argument vector of a plain command; None where a shell has to read it."""
    if not _PLAIN.fullmatch(command):
        return None
    words = command.split()
    name = words[0]
    if name in _BUILTINS and (name not in _EQUAL or len(words) > 1):
        return None
    if "BASH_ENV" in variables or any(name.startswith("BASH_FUNC_") for name in variables):
        return None
    path = name if "/" in name else search(name, variables.get("PATH", ""))
    if not path:
        return None
    return path.encode(), [word.encode() for word in words]


def search(name: str, search_path: str) -> str:
    """The path of a program; empty where the search path has relative folders, or it is missing."""
    for folder in search_path.split(":"):
        path = f"{folder}/{name}"
        if not folder.startswith("/"):
            return ""
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return ""


def shell() -> tuple[bytes, bool]:
    """The path of the shell for commands, and whether it is bash."""
    global _shell
    if _shell is None:
        bash = find_program("bash")
        path = bash or find_program("sh")
        if path is None:
            raise UnavailableError("there is no shell to run commands with", hint="Install bash.")
        _shell = os.fsencode(path), bash is not None
    return _shell


def start_error(failure: OSError, folder: str) -> ToolError:
    """The error for a command that the system could not start."""
    return ToolError(f"the command can't be started in {folder}: {failure.strerror}")


class Launcher:
    """Starts the commands of one task on a host."""

    def __init__(self, host: Host, task: str, pass_env: Sequence[str]) -> None:
        self._host = host
        self._task = task
        self._pass_env = pass_env
        # Variables inherited from this program, as they were at the first command.
        self._inherited: dict[str, str] | None = None
        self._last: tuple[dict[str, str], dict[bytes, bytes]] = ({}, {})

    def folder(self, request: CommandRequest, last: str) -> str:
        """The working directory: as requested, else the last one, or the nearest that exists."""
        if request.cwd is not None:
            folder = os.path.normpath(os.path.join(last, os.path.expanduser(request.cwd)))
            if not self._host.is_folder(folder):
                raise ToolError(f"{folder} is no folder", hint="Give a workdir that exists.")
            return folder
        while not self._host.is_folder(last):
            last = os.path.dirname(last)
        return last

    def variables(
        self, request: CommandRequest, task_env: Mapping[str, str | None], folder: str
    ) -> dict[str, str]:
        """The environment variables of a command."""
        if self._inherited is None:
            self._inherited = self._host.variables(self._pass_env)
        variables = command_environment(
            task_env, self._inherited, extra=request.env, attended=request.pty
        )
        variables[MARK] = self._task
        # Without it the shell would resolve symbolic links in the path of its directory.
        variables["PWD"] = folder
        return variables

    def start(
        self,
        process: Process,
        request: CommandRequest,
        folder: str,
        variables: dict[str, str],
        definitions: str,
        *,
        keep: bool = False,
        plain: bool = False,
        stdin: int = -1,
        poller: Poller | None = None,
    ) -> bool:
        """Start a command; whether a shell runs it.

        With `keep` its shell writes its state at the end. With `plain` a plain command starts
        without a shell. Without a `poller` (in the background) the start is announced.
        """
        path, is_bash = self._host.shell()
        text = encode_text(request.command)
        typed = request.typed if request.pty else b""
        # Too long for an argument.
        long = len(text) > shell_state.LONGEST_ARGUMENT and is_bash
        plain_command = None
        if long or definitions or not shell_state.is_stateless(request.command):
            argv = [
                path, b"-c", _script(is_bash, long, keep), b"bash" if is_bash else b"sh",
                b"" if long else text, encode_text(definitions),
            ]  # fmt: skip
        else:
            keep = False
            argv = [path, b"-c", text]
            plain_command = self._host.plain(request.command, variables) if plain else None
        if plain_command is not None:
            path, argv = plain_command
        files = {} if stdin < 0 else {0: stdin}
        opened: list[int] = []
        try:
            if request.stdin is not None and not request.pty:
                files[0] = stdin_file(request.stdin)
                opened.append(files[0])
            if long:
                files[shell_state.TEXT_FILE] = stdin_file(text + b"\0")
                opened.append(files[shell_state.TEXT_FILE])
            process.start(
                argv,
                program=path,
                task=self._task,
                env=self._encoded(variables),
                cwd=folder,
                files=files,
                state_number=shell_state.STATE_FILE if keep else None,
                pty=request.pty,
                announce=poller is None,
                poller=poller,
            )
            if typed:
                os.write(process.master, typed)
        finally:
            for file in opened:
                os.close(file)
        return plain_command is None

    def _encoded(self, variables: dict[str, str]) -> dict[bytes, bytes]:
        """The variables as bytes; cached, since they seldom change between commands."""
        if variables != self._last[0]:
            for name, value in variables.items():
                if not name or "=" in name or "\0" in name + value:
                    raise variable_error(name)
            encoded = {encode_text(name): encode_text(value) for name, value in variables.items()}
            self._last = variables, encoded
        return self._last[1]


def _script(bash: bool, long: bool, keep: bool) -> bytes:
    """The cached shell script around a command."""
    key = bash, long, keep
    if key not in _scripts:
        _scripts[key] = shell_state.wrapped(bash=bash, long=long, keep=keep).encode()
    return _scripts[key]
