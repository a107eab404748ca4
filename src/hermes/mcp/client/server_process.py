"""Server process: its program, its environment variables, its start and its end."""

from __future__ import annotations

import os
from itertools import count
from typing import TYPE_CHECKING

from hermes.core.errors import ConfigError
from hermes.environments.env_vars import MARK
from hermes.environments.host.guardian_client import GRACE_SECONDS, guardian
from hermes.mcp.client.settings import filled
from hermes.runtime.child_process import child_environment

if TYPE_CHECKING:
    from hermes.mcp.client.settings import Server

_ids = count(1)
# How long a server has to end by itself when its input is closed.
ENDING_SECONDS = 0.5


class Launch:
    """What would be run: the program found, its arguments, variables and folder."""

    __slots__ = ("argv", "cwd", "env", "program")

    def __init__(self, program: str, argv: list[str], env: dict[str, str], cwd: str) -> None:
        self.program = program
        self.argv = argv
        self.env = env
        self.cwd = cwd


class CommandMissingError(ConfigError):
    """No program of that name is where it was looked for; `looked` has the places."""

    def __init__(self, command: str, path: str, looked: list[str]) -> None:
        shown = ", ".join(looked[:12]) + (" …" if len(looked) > 12 else "")
        super().__init__(
            f"the program {command!r} was not found; looked in {shown or 'no folder at all'}",
            hint="Give its whole path, or set PATH in the server's env.",
        )
        self.command = command
        self.path = path
        self.looked = looked


def launch_of(server: Server, project: str) -> Launch:
    """What a server's definition comes to on this machine."""
    env = child_environment((), {})
    env.update({name: filled(value, bare=True) for name, value in server.env.items()})
    cwd = os.path.abspath(os.path.join(project, os.path.expanduser(filled(server.cwd))))
    if not os.path.isdir(cwd):
        raise ConfigError(f"its folder {cwd} does not exist")
    command = os.path.expanduser(filled(server.command))
    program = _found(command, env.get("PATH", os.defpath), cwd)
    arguments = [filled(one) for one in server.args]
    return Launch(program, [command, *arguments], env, cwd)


def _found(command: str, path: str, cwd: str) -> str:
    if "/" in command:
        place = os.path.join(cwd, command)
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return place
        raise CommandMissingError(command, path, [place])
    looked = [os.path.join(cwd, folder) for folder in path.split(os.pathsep) if folder]
    for folder in looked:
        place = os.path.join(folder, command)
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return place
    raise CommandMissingError(command, path, looked)


class Program:
    """A server's process, with the files to talk to it through; `stop` ends its whole tree."""

    __slots__ = ("_id", "_task", "_told", "error", "exit", "failure", "gone", "input", "output",
                 "pid", "status")  # fmt: skip

    def __init__(self, launch: Launch, name: str) -> None:
        """Start it. The files are ours, and do not block."""
        self._task = f"mcp-{name}/{os.getpid()}-{next(_ids)}"
        self._told = b""
        self.pid = 0
        self.exit: int | None = None
        self.failure = ""
        self.gone = False
        env = {**launch.env, MARK: self._task}
        theirs_in, self.input = os.pipe()
        self.output, theirs_out = os.pipe()
        self.error, theirs_err = os.pipe()
        try:
            self._id, self.status = guardian.run(
                [os.fsencode(word) for word in (launch.program, *launch.argv[1:])],
                task=self._task,
                env={os.fsencode(key): os.fsencode(value) for key, value in env.items()},
                cwd=launch.cwd,
                files={0: theirs_in, 1: theirs_out, 2: theirs_err},
                announce=True,
            )
        except BaseException:
            for file in (self.input, self.output, self.error):
                os.close(file)
            raise
        finally:
            for file in (theirs_in, theirs_out, theirs_err):
                os.close(file)
        for file in (self.input, self.output, self.error, self.status):
            os.set_blocking(file, False)

    def hear(self) -> bool:
        """Take in what became of it; False when there is no more to hear."""
        try:
            data = os.read(self.status, 4096)
        except BlockingIOError:
            return True
        if not data:
            if not self.gone and not self.failure:
                # The guardian itself was killed: nobody else ends what it watched over.
                guardian.sweep(self._task, self.pid)
            self.gone = True
            return False
        self._told += data
        *lines, self._told = self._told.split(b"\n")
        for line in lines:
            what, *words = line.decode("utf-8", "replace").split(" ")
            if what == "started":
                self.pid = int(words[0])
            elif what == "failed":
                self.failure = f"{os.strerror(int(words[0]))}: {' '.join(words[1:])}"
                self.gone = True
            elif what == "exited":
                code = os.waitstatus_to_exitcode(int(words[1]))
                self.exit = code if code >= 0 else 128 - code
            elif what == "gone":
                self.gone = True
        return True

    def how(self) -> str:
        """How it ended, as the end of a sentence; nothing while it runs."""
        if self.failure:
            return f"could not be started: {self.failure}"
        return "" if self.exit is None else f"ended with exit code {self.exit}"

    def stop(self) -> None:
        """Have it and everything it started ended: asked first, then killed."""
        if not self.gone:
            grace = GRACE_SECONDS if self.exit is None else GRACE_SECONDS / 4
            guardian.stop(self._id, grace=grace)

    def close_input(self) -> None:
        """Say that no more will come, which ends most servers."""
        if self.input >= 0:
            os.close(self.input)
            self.input = -1

    def close(self) -> None:
        """Let go of all files; the process should have been stopped before."""
        for name in ("input", "output", "error", "status"):
            file = getattr(self, name)
            if file >= 0:
                os.close(file)
                setattr(self, name, -1)
