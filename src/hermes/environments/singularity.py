"""Singularity backend (Apptainer): settings, the program, the instance,
`SingularityEnvironment`.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from typing import TYPE_CHECKING

from hermes.core.errors import ConfigError, UnavailableError
from hermes.core.paths import find_program, is_below
from hermes.environments.command import BackendError, Isolation, inherited_variables
from hermes.environments.host.guardian_client import guardian
from hermes.environments.host.process import Poller, Process
from hermes.environments.remote_shell.connection import Transport, start
from hermes.environments.remote_shell.remote_environment import RemoteShellEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from hermes.environments.environment import SharedSettings


START_SECONDS = 60.0
_REMOTE = re.compile(r"(?:docker|oras|library|shub|https?)://\S+")
_SIZE = re.compile(r"[1-9]\d*[bkmgBKMG]?")
_NETWORKS = ("host", "none")


class SingularitySettings:
    """An image, folders of this machine that are bound into it, and limits."""

    def __init__(
        self,
        image: str,
        *,
        workspace: str = "",
        workdir: str = "/workspace",
        binds: Sequence[str] = (),
        overlay: str = "",
        network: str = "host",
        memory: str = "",
        pids: int | None = None,
        program: str = "",
        allow_home: bool = False,
        start_seconds: float = START_SECONDS,
    ) -> None:
        self.image = _image(image)
        self.workspace = os.path.realpath(os.path.expanduser(workspace)) if workspace else ""
        self.workdir = workdir
        wanted = [f"{self.workspace}:{workdir}", *binds] if workspace else list(binds)
        self.binds = [_bind(bind, allow_home=allow_home) for bind in wanted]
        # A folder or image for changed files; without one they are gone with the task.
        self.overlay = os.path.expanduser(overlay)
        self.network = network
        self.memory = memory
        self.pids = pids
        # Path of the program, if it is not on the search path.
        self.program = program
        self.start_seconds = start_seconds
        if overlay and not os.path.exists(self.overlay):
            raise ConfigError(f"{self.overlay} is not there", hint=_hint("overlay"))
        if network not in _NETWORKS:
            words = " or ".join(_NETWORKS)
            raise ConfigError(f"the network is {words}, not {network!r}", hint=_hint("network"))
        if memory and not _SIZE.fullmatch(memory):
            raise ConfigError(f"{memory!r} is no amount of memory", hint=_hint("memory"))
        if pids is not None and pids < 1:
            raise ConfigError(f"{pids} is no number of processes", hint=_hint("pids"))

    @classmethod
    def read(cls, setting: Callable[[str, Any], Any], workspace: str) -> SingularitySettings:
        """From the settings below `terminal.singularity`."""
        defaults: dict[str, Any] = {
            "image": "", "workdir": "/workspace", "binds": [], "overlay": "", "network": "host",
            "memory": "", "pids": 0, "program": "", "allow_home": False,
            "start_seconds": START_SECONDS,
        }  # fmt: skip
        given = {
            name: setting(f"terminal.singularity.{name}", value) for name, value in defaults.items()
        }
        return cls(**{**given, "pids": given["pids"] or None}, workspace=workspace)


def _image(image: str) -> str:
    if not image or image.startswith("-"):
        raise ConfigError(f"{image!r} is no image", hint=_hint("image"))
    if _REMOTE.fullmatch(image):
        return image
    path = os.path.abspath(os.path.expanduser(image))
    if not os.path.exists(path):
        raise ConfigError(f"the image {path} is not there", hint=_hint("image"))
    return path


def _bind(bind: str, *, allow_home: bool) -> str:
    source, _, rest = bind.partition(":")
    target, _, mode = rest.partition(":")
    # The program separates binds by commas.
    if "," in bind or "\n" in bind or mode not in ("", "ro", "rw"):
        raise ConfigError(f"{bind!r} can't be bound", hint="Write source:target or :ro after it.")
    real = os.path.realpath(os.path.expanduser(source))
    if not os.path.exists(real):
        raise ConfigError(f"{real} is to be bound and is not there", hint=_hint("binds"))
    home = os.path.realpath(os.path.expanduser("~"))
    if not allow_home and is_below(home, real):
        raise ConfigError(
            f"{real} holds the whole home folder, with its keys and passwords",
            hint="Bind a folder in it, or set terminal.singularity.allow_home.",
        )
    if real.endswith(".sock"):
        raise ConfigError(f"{real} is a way out of the container", hint=_hint("binds"))
    target = target or real
    if not target.startswith("/"):
        raise ConfigError(f"{target!r} is no place in a container", hint=_hint("binds"))
    return f"{real}:{target}{f':{mode}' if mode else ''}"


def _hint(name: str) -> str:
    return f"Change terminal.singularity.{name}."


# (pattern of the program's message, its meaning, advice)
_COMPLAINTS = (
    (r"could not open image|no such file or directory.*image|image format not recognized",
     "the image can't be opened", "Check its path and format."),
    (r"unable to (?:handle|fetch|download)|conveyor failed|manifest unknown|dial tcp",
     "the image can't be fetched", "Check its name and the network, or pull it beforehand."),
    (r"actions/start", "the image was not made by this program, so that no instance can be started",
     "Build one from it: apptainer build --sandbox NEW OLD."),
    (r"user namespace|not permitted.*namespace|setuid",
     "containers may not be made by this user", "Enable user namespaces, or install setuid mode."),
    (r"cgroup", "limits can't be set here", "Leave memory and pids unset, or enable cgroups v2."),
    (r"requesting capability set", "the container wants rights that we do not have",
     "Run as another user."),
    (r"mount.*overlay|overlay.*mount", "the overlay can't be used", "Check overlay."),
    (r"network|cni", "the network can't be set up so for this user", "Set network to host."),
    (r"unknown flag|unknown shorthand", "the program is too old", "Install a newer one."),
)  # fmt: skip


def found(settings: SingularitySettings) -> str:
    """The program's path."""
    names = [settings.program] if settings.program else ["apptainer", "singularity"]
    for name in names:
        path = find_program(name)
        if path is not None:
            return os.path.abspath(path)
    raise UnavailableError(
        f"there is no {' or '.join(names)} here", hint="Install Apptainer, or name its program."
    )


def start_words(settings: SingularitySettings, name: str) -> list[str]:
    """The arguments that start an instance."""
    # Without home folder, other processes and variables of this program; no privileges.
    words = ["instance", "start", "--containall", "--no-home", "--cleanenv", "--no-privs"]
    if settings.network == "none":
        words += ["--net", "--network", "none"]
    for bind in settings.binds:
        words += ["--bind", bind]
    words += ["--overlay", settings.overlay] if settings.overlay else ["--writable-tmpfs"]
    if settings.memory:
        words += ["--memory", settings.memory]
    if settings.pids is not None:
        words += ["--pids-limit", str(settings.pids)]
    return [*words, settings.image, name]


def explain_error(
    settings: SingularitySettings, program: str, errors: str, code: int | None
) -> BackendError:
    """The error for a container that did not start, with a command to check."""
    check = f"{os.path.basename(program)} exec --containall {settings.image} true"
    label = f"the container of {settings.image}"
    for words, meaning, advice in _COMPLAINTS:
        if re.search(words, errors, re.IGNORECASE):
            return BackendError(
                f"{label} does not start: {meaning}", hint=f"{advice} To check: {check}"
            )
    if code is None:
        meaning = f"no answer within {settings.start_seconds:g} s"
    else:
        fatal = [line for line in errors.splitlines() if line.startswith(("FATAL", "ERROR"))]
        meaning = " ".join((fatal or errors.splitlines() or [f"exit code {code}"])[-1].split())[
            -300:
        ]
    return BackendError(f"{label} does not start: {meaning}", hint=f"To check: {check}")


_NAME = re.compile(r"hermes-(\d+)-[0-9a-f]{8}")
_LIST_SECONDS = 20.0


class SingularityTransport(Transport):
    """The way into an instance: a container for one task."""

    terminal = "local"

    def __init__(self, settings: SingularitySettings) -> None:
        self._settings = settings
        self.label = f"the container of {os.path.basename(settings.image)}"
        self.start_seconds = settings.start_seconds
        self._program = ""
        self._name = ""
        self._process: Process | None = None
        self._task = ""

    def prepare(self, task: str) -> None:
        """Start an instance; its daemon stays below the guardian."""
        self.close()
        # A task of its own, since the instance ends after its shells.
        self._task = f"{task}/instance"
        self._program = found(self._settings)
        prune(self._program)
        self._name = f"hermes-{os.getpid()}-{os.urandom(4).hex()}"
        errors = bytearray()
        process = Process(lambda _, data: errors.extend(data[:8000]))
        poller = Poller()
        argv = [self._program, *start_words(self._settings, self._name)]
        os.close(start(process, argv, task=self._task, poller=poller))
        try:
            process.wait_until(poller, time.monotonic() + self.start_seconds)
            process.drain()
        finally:
            poller.close()
        if process.failure is not None or process.exit_code != 0:
            process.close()
            raise self.explain(errors.decode("utf-8", "replace"), process.exit_code)
        self._process = process

    def argv(self, words: Sequence[str], *, tty: bool = False, first: bool = False) -> list[str]:  # noqa: ARG002
        """The command line that joins the instance."""
        folder = self._settings.workdir if self._settings.workspace else "/"
        options = ["--cleanenv", "--no-privs", "--pwd", folder]
        return [self._program, "exec", *options, f"instance://{self._name}", *words]

    def explain(self, errors: str, code: int | None) -> BackendError:
        """The error for a shell that did not start."""
        return explain_error(self._settings, self._program, errors, code)

    def info(self) -> Isolation:
        """The isolation that the program enforces."""
        settings = self._settings
        missing = [] if settings.memory else ["memory"]
        if settings.network == "host":
            missing.append("network")
        if settings.pids is None:
            missing.append("number of processes")
        return Isolation(
            "singularity",
            files="the image, and these binds: " + (", ".join(settings.binds) or "nothing"),
            network="none" if settings.network == "none" else "",
            processes="a process namespace, ended with the task",
            memory=settings.memory,
            not_enforced=tuple(missing),
        )

    def close(self) -> None:
        """End the instance."""
        process, self._process = self._process, None
        if process is None:
            return
        _run(self._program, "instance", "stop", "--timeout", "2", self._name)
        guardian.stop_task(self._task)
        process.close()


def prune(program: str) -> list[str]:
    """End orphaned instances; their names."""
    ended = []
    for match in _NAME.finditer(_run(program, "instance", "list", "--json")):
        if not _lives(int(match[1])) and match[0] not in ended:
            _run(program, "instance", "stop", "--force", match[0])
            ended.append(match[0])
    return ended


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _run(*argv: str) -> str:
    """The output of a short call of the program; empty if it fails."""
    try:
        done = subprocess.run(
            argv,
            env=inherited_variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIST_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


class SingularityEnvironment(RemoteShellEnvironment):
    """Runs commands in a container, which is started with the first command."""

    def __init__(
        self,
        settings: SingularitySettings,
        cwd: str = "",
        *,
        shared: SharedSettings | None = None,
    ) -> None:
        start = cwd or (settings.workdir if settings.workspace else "/")
        super().__init__(SingularityTransport(settings), start, shared=shared)
