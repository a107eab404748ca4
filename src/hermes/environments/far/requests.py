"""The text that has a worker run one command, and what can't be put into one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import hermes.environments.shell_state as shell_state
from hermes.core.errors import ToolError
from hermes.environments.far.scripts import VARIABLE, quoted, settings
from hermes.environments.local.shell import as_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.environments.far.connection import Far

# More than this is sent by itself and not within the text.
MOST_INLINE = 64 * 1024
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check(command: str, env: Mapping[str, str] | None) -> None:
    """Raise `ToolError` for what no shell can be given."""
    as_bytes(command)
    if "\0" in command:
        raise ToolError("a command can't hold a zero character")
    for name, value in (env or {}).items():
        if not _NAME.fullmatch(name) or "\0" in value:
            raise ToolError(f"{name!r:.80} can't be a variable, or not with that value")


def as_data(stdin: str | bytes | None) -> bytes | None:
    """What a command is to read, as bytes."""
    return as_bytes(stdin) if isinstance(stdin, str) else stdin


def inline(data: bytes) -> bool:
    """Whether some input can be sent within the text."""
    return len(data) <= MOST_INLINE and b"\0" not in data


class Request:
    """One command for one worker; its processes are found by the command's `number`."""

    def __init__(
        self,
        far: Far,
        command: str,
        *,
        worker: int,
        number: int,
        token: str,
        variables: Mapping[str, str | None],
        definitions: str = "",
    ) -> None:
        self._far = far
        self._command = command
        self._worker = worker
        self.variables = {
            **{name: value for name, value in variables.items() if _NAME.fullmatch(name)},
            VARIABLE: f"{token}.{number}.",
            # Or bash would take itself for a login by ssh, and read its settings each time.
            "SHLVL": "1",
        }
        self._definitions = definitions

    def place(self, letter: str) -> str:
        """A file of this worker's at the far end."""
        return f"{self._far.folder}/{letter}{self._worker}"

    def text(self, folder: str, data: bytes | None, *, keep: bool, strict: bool) -> str:
        """Run it in the worker; with `keep` the state it leaves is told.

        With `strict` it does not run where the folder is gone.
        """
        before, files = self._files(data)
        files += " 2>&3 3>&-"
        if keep:
            files += f" {shell_state.STATE_FILE}>{self.place('s')}"
        return (
            f"{before}if go {quoted(folder)} {'1' if strict else quoted('')}; then (\n"
            f"{settings(self.variables)}exec {self._far.setsid} {self._words(keep)}{files}\n"
            f"); end $? {'1' if keep else ''}\nelse end 255; fi\n"
        )

    def alone(self, folder: str, data: bytes | None, *, tty: bool, mark: str) -> str:
        """The text of a script that runs it by itself, reading our input where it has no other.

        It begins with a mark on each stream, behind what a login prints.
        """
        before, files = self._files(data, default="")
        begin = f"printf '\\036{mark}<'"
        before = f"{begin}\n{'' if tty else f'{begin} >&2'}\n{before}"
        text = f"{before}cd {quoted(folder)} || exit 126\nexport PWD\n{settings(self.variables)}"
        words = f"{self._words(keep=False)}{files}\n"
        if tty:
            # It has a session of its own already, and must keep it for the terminal's sake.
            return f"stty rows 40 cols 120 2>/dev/null\n{text}exec {words}"
        return f"{text}( exec {self._far.setsid} {words})\nexit $?\n"

    def _files(self, data: bytes | None, default: str = " </dev/null") -> tuple[str, str]:
        """What has to be done before, and where it reads from."""
        before, files = "", default
        if data is not None:
            files = f" <{self.place('i')}"
            if inline(data):
                text = quoted(data.decode("utf-8", "surrogateescape"))
                before = f"printf %s {text} >{self.place('i')}\n"
        if self._long:
            before += f"printf '%s\\0' {quoted(self._command)} >{self.place('t')}\n"
            files += f" {shell_state.TEXT_FILE}<{self.place('t')}"
        return before, files

    @property
    def _long(self) -> bool:
        return len(self._command) > shell_state.LONGEST_ARGUMENT // 4

    def _words(self, keep: bool) -> str:
        far = self._far
        first = f"echo $$ >{self.place('p')}; "
        if not keep and not self._long and not self._definitions:
            words = [far.shell, "-c", first + self._command]
        else:
            script = shell_state.wrapped(bash=far.bash, long=self._long, keep=keep)
            name = "bash" if far.bash else "sh"
            text = "" if self._long else self._command
            words = [far.shell, "-c", first + script, name, text, self._definitions]
        return " ".join(map(quoted, words))
