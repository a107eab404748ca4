"""How a command is put before the shell: its words, its variables, the files it is given."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import hermes.environments.shell_state as shell_state
from hermes.core.errors import ToolError
from hermes.environments.local.shell import script
from hermes.environments.local.stdin import readable
from hermes.environments.order import as_bytes, no_variable
from hermes.environments.variables import MARK, command_environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes.environments.local.place import Place
    from hermes.environments.local.process import Process
    from hermes.environments.local.ready import Ready
    from hermes.environments.order import Order


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
