"""Server process: its program, its environment variables, its start and its end."""

from __future__ import annotations

import os
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ConfigError
from hermes.core.paths import MARK, is_below
from hermes.environments.host.guardian_client import GRACE_SECONDS, guardian
from hermes.mcp.client.settings import expand
from hermes.runtime.child_process import child_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.environments.confinement import ConfinedMachine
    from hermes.mcp.client.settings import Server

_ids = count(1)
EXIT_SECONDS = 0.5  # for a server to exit after its stdin is closed


class Launch(NamedTuple):
    """The program file, its arguments, environment variables, folder and confinement."""

    program: str
    argv: list[str]
    env: dict[str, str]
    cwd: str
    # Confines the process; None where the settings give it all rights of the person.
    machine: ConfinedMachine | None = None

    @property
    def confinement(self) -> str:
        """How the process is confined; empty where it is not."""
        return self.machine.mechanism if self.machine is not None else ""


class CommandMissingError(ConfigError):
    """The program was not found; `searched` has the folders."""

    def __init__(self, command: str, path: str, searched: list[str]) -> None:
        shown = ", ".join(searched[:12]) + (" …" if len(searched) > 12 else "")
        super().__init__(
            f"the program {command!r} was not found; looked in {shown or 'no folder at all'}",
            hint="Give its whole path, or set PATH in the server's env.",
        )
        self.command = command
        self.path = path
        self.searched = searched


def resolve_launch(server: Server, project: str) -> Launch:
    """Resolve a definition on this machine: references, folder and program."""
    env = child_environment((), {})
    env.update({name: expand(value, bare=True) for name, value in server.env.items()})
    cwd = os.path.abspath(os.path.join(project, os.path.expanduser(expand(server.cwd))))
    if not os.path.isdir(cwd):
        raise ConfigError(f"its folder {cwd} does not exist")
    command = os.path.expanduser(expand(server.command))
    program = _find_program(command, env.get("PATH", os.defpath), cwd)
    arguments = [expand(argument) for argument in server.args]
    machine = _machine(server, project, [program, *arguments])
    return Launch(program, [command, *arguments], env, cwd, machine)


def _machine(server: Server, project: str, words: list[str]) -> ConfinedMachine | None:
    """What confines a server: its own setting decides, and the project's file can't open it.

    `auto` confines servers that commands could change: those that a project defines, and those
    whose program or arguments are files of the project.
    """
    from hermes.core.config import Config
    from hermes.environments.confinement import ConfinedMachine
    from hermes.environments.confinement import Settings as Confinement

    config = Config.load()
    mode = str(config.get("terminal.confine.mode"))
    wanted = server.confine == "on" or server.of_project or _names_file_of(project, words)
    if server.confine == "off" and not server.of_project:
        wanted = False
    if not wanted or (mode == "off" and server.confine != "on"):
        return None
    settings = Confinement(
        mode="on" if server.confine == "on" else mode,
        allow=tuple(config.get("terminal.confine.allow")),
        write=tuple(config.get("terminal.confine.write")),
        programs=tuple(_temporary_folders(words, os.path.realpath(project))),
    )
    return ConfinedMachine(os.path.realpath(project), settings, task=f"mcp-{server.name}")


def _temporary_folders(words: list[str], project: str) -> Iterator[str]:
    """Folders of a program and its scripts below /tmp, which a confined process has anew."""
    for word in words:
        path = os.path.realpath(word)
        temporary = path.startswith(("/tmp/", "/var/tmp/")) and not is_below(path, project)
        if temporary and os.path.isabs(word) and os.path.isfile(path):
            folder = os.path.dirname(path)
            yield path if folder in ("/tmp", "/var/tmp") else folder


def _names_file_of(project: str, words: list[str]) -> bool:
    root = os.path.realpath(project)
    paths = [os.path.realpath(os.path.join(root, word)) for word in words]
    return any(is_below(path, root) and os.path.isfile(path) for path in paths)


def _find_program(command: str, path: str, cwd: str) -> str:
    if "/" in command:
        file = os.path.join(cwd, command)
        if os.path.isfile(file) and os.access(file, os.X_OK):
            return file
        raise CommandMissingError(command, path, [file])
    searched = [os.path.join(cwd, folder) for folder in path.split(os.pathsep) if folder]
    for folder in searched:
        file = os.path.join(folder, command)
        if os.path.isfile(file) and os.access(file, os.X_OK):
            return file
    raise CommandMissingError(command, path, searched)


class ServerProcess:
    """A server's process and its pipes; `stop` ends the whole process tree."""

    __slots__ = (
        "_guardian",
        "_id",
        "_machine",
        "_partial_status",
        "_task",
        "error",
        "exit",
        "failure",
        "gone",
        "input",
        "output",
        "pid",
        "status",
    )  # fmt: skip

    def __init__(self, launch: Launch, name: str) -> None:
        """Start the process; the pipes are non-blocking."""
        self._task = f"mcp-{name}/{os.getpid()}-{next(_ids)}"
        self._partial_status = b""
        self.pid = 0
        self.exit: int | None = None
        self.failure = ""
        self.gone = False
        self._machine = launch.machine
        self._guardian = guardian if self._machine is None else self._machine.guardian
        own = {} if self._machine is None else self._machine.own_variables()
        env = {**launch.env, **own, MARK: self._task}
        child_in, self.input = os.pipe()
        self.output, child_out = os.pipe()
        self.error, child_err = os.pipe()
        try:
            self._id, self.status = self._guardian.run(
                [os.fsencode(word) for word in (launch.program, *launch.argv[1:])],
                task=self._task,
                env={os.fsencode(key): os.fsencode(value) for key, value in env.items()},
                cwd=launch.cwd,
                files={0: child_in, 1: child_out, 2: child_err},
                announce=True,
            )
        except BaseException:
            for file in (self.input, self.output, self.error):
                os.close(file)
            raise
        finally:
            for file in (child_in, child_out, child_err):
                os.close(file)
        for file in (self.input, self.output, self.error, self.status):
            os.set_blocking(file, False)

    def read_status(self) -> bool:
        """Read the guardian's reports; False at their end."""
        try:
            data = os.read(self.status, 4096)
        except BlockingIOError:
            return True
        if not data:
            if not self.gone and not self.failure:
                # The guardian was killed: its orphans are ended from here.
                self._guardian.sweep(self._task, self.pid)
            self.gone = True
            return False
        self._partial_status += data
        *lines, self._partial_status = self._partial_status.split(b"\n")
        for line in lines:
            event, *words = line.decode("utf-8", "replace").split(" ")
            if event == "started":
                self.pid = int(words[0])
            elif event == "failed":
                self.failure = f"{os.strerror(int(words[0]))}: {' '.join(words[1:])}"
                self.gone = True
            elif event == "exited":
                code = os.waitstatus_to_exitcode(int(words[1]))
                self.exit = code if code >= 0 else 128 - code
            elif event == "gone":
                self.gone = True
        return True

    def exit_text(self) -> str:
        """How it ended, as the end of a sentence; empty while it runs."""
        if self.failure:
            return f"could not be started: {self.failure}"
        return "" if self.exit is None else f"ended with exit code {self.exit}"

    def stop(self) -> None:
        """Terminate the process tree, and kill it after a grace period."""
        if not self.gone:
            grace = GRACE_SECONDS if self.exit is None else GRACE_SECONDS / 4
            self._guardian.stop(self._id, grace=grace)

    def close_input(self) -> None:
        """Close stdin, which ends most servers."""
        if self.input >= 0:
            os.close(self.input)
            self.input = -1

    def close(self) -> None:
        """Close all pipes, after `stop`."""
        for name in ("input", "output", "error", "status"):
            file = getattr(self, name)
            if file >= 0:
                os.close(file)
                setattr(self, name, -1)
        if self._machine is not None:
            self._machine.close()
