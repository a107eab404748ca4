"""The text that has a worker run one command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hermes.environments.shell_state as shell_state
from hermes.environments.far.scripts import limited, quoted, settings
from hermes.environments.order import is_name
from hermes.environments.variables import MARK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.environments.far.connection import Connection
    from hermes.environments.order import Order

# More than this is sent by itself and not within the text.
MOST_INLINE = 64 * 1024


class Request:
    """One order for one worker; its processes are found by the request's `number`.

    `worker` says whose files at the far end it uses: its own, until a worker takes it on.
    """

    def __init__(
        self,
        connection: Connection,
        order: Order,
        variables: Mapping[str, str | None],
        definitions: str = "",
    ) -> None:
        self._far = connection.known
        self._token = connection.token
        self._order = order
        self.number = self.worker = connection.number()
        self.variables = {
            **{name: value for name, value in variables.items() if is_name(name)},
            MARK: f"{connection.token}.{self.number}.",
            # Or bash would take itself for a login by ssh, and read its settings each time.
            "SHLVL": "1",
        }
        self._definitions = definitions
        # What is typed at a terminal comes from it, and not from a file.
        self.data = None if order.pty else order.stdin

    @property
    def inline(self) -> bool:
        """Whether what it reads can be sent within the text."""
        return self.data is None or (len(self.data) <= MOST_INLINE and b"\0" not in self.data)

    def place(self, letter: str) -> str:
        """A file of this worker's at the far end."""
        return f"{self._far.folder}/{letter}{self.worker}"

    def text(self, folder: str, *, keep: bool, strict: bool) -> str:
        """Run it in the worker; with `keep` the state it leaves is told.

        With `strict` it does not run where the folder is gone.
        """
        before, files = self._files()
        files += " 2>&3 3>&-"
        if keep:
            files += f" {shell_state.STATE_FILE}>{self.place('s')}"
        return (
            f"{before}if go {quoted(folder)} {'1' if strict else quoted('')}; then (\n"
            f"{settings(self.variables)}exec {self._far.setsid} {self._words(keep)}{files}\n"
            f"); end $? {'1' if keep else ''}\nelse end 255; fi\n"
        )

    def alone(self, folder: str, mark: str) -> str:
        """The text of a script that runs it by itself, reading our input where it has no other.

        It begins with a mark on each stream, behind what a login prints, and ends with one.
        """
        before, files = self._files(default="")
        begin = f"printf '\\036{mark}<'"
        before = f"{begin}\n{'' if self._order.pty else f'{begin} >&2'}\n{before}"
        before = f"{limited(self._token)}\n{before}"
        text = f"{before}cd {quoted(folder)} || exit 126\nexport PWD\n{settings(self.variables)}"
        words = f"{self._words(keep=False)}{files}{'' if self._order.pty else ' 2>&3 3>&-'}\n"
        if self._order.pty:
            # It has a session of its own already, and must keep it for the terminal's sake.
            # Who asks for a terminal from none of his own is given one in which no key works.
            keys = "{ stty 38400 sane; stty rows 40 cols 120; } 2>/dev/null"
            return f"{keys}\n{text}exec {words}"
        # What this shell itself has to say of the command ("Terminated") is not the command's.
        return (
            f"{text}exec 3>&2 2>/dev/null\n( exec {self._far.setsid} {words})\n"
            f"c=$?; printf '\\036{mark}<\\036{mark}>'; exit $c\n"
        )

    def _files(self, default: str = " </dev/null") -> tuple[str, str]:
        """What has to be done before, and where it reads from."""
        before, files = "", default
        if self.data is not None:
            files = f" <{self.place('i')}"
            if self.inline:
                text = quoted(self.data.decode("utf-8", "surrogateescape"))
                before = f"printf %s {text} >{self.place('i')}\n"
        if self._long:
            form = "'%s\\0'" if self._far.bash else "%s"
            before += f"printf {form} {quoted(self._order.command)} >{self.place('t')}\n"
            files += f" {shell_state.TEXT_FILE}<{self.place('t')}"
        return before, files

    @property
    def _long(self) -> bool:
        return len(self._order.command) > shell_state.LONGEST_ARGUMENT // 4

    def _words(self, keep: bool) -> str:
        far = self._far
        first = f"echo $$ {self.number} >{self.place('p')}; "
        if not keep and not self._long and not self._definitions:
            words = [far.shell, "-c", first + self._order.command]
        else:
            script = shell_state.wrapped(bash=far.bash, long=self._long, keep=keep)
            name = "bash" if far.bash else "sh"
            text = "" if self._long else self._order.command
            words = [far.shell, "-c", first + script, name, text, self._definitions]
        return " ".join(map(quoted, words))
