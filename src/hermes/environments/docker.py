"""Docker backend (or Podman): settings, command line of the engine, the container,
`DockerEnvironment`.

The container lives as long as the guard shell inside: when Hermes goes, its stdin ends, and the
container with it.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ConfigError, UnavailableError
from hermes.core.paths import find_program
from hermes.environments.command import BackendError, Isolation, inherited_variables
from hermes.environments.disk.shell_disk import SharedFolderDisk
from hermes.environments.environment import SharedSettings
from hermes.environments.host.guardian_client import guardian
from hermes.environments.host.process import run_to_end
from hermes.environments.host.process_listing import MACHINE, PID, STARTED, TASK, is_stale, labels
from hermes.environments.remote_shell.connection import BrokenChannelError, Transport
from hermes.environments.remote_shell.remote_environment import RemoteShellEnvironment
from hermes.environments.remote_shell.scripts import quote
from hermes.environments.sandbox.bwrap import check_workspace, hermes_home_below
from hermes.environments.workspace_acl import CONTAINER_USER, grant_access, revoke_access

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from hermes.environments.command import CommandRequest, CommandResult
    from hermes.environments.disk.shell_disk import ShellDisk
IMAGE = "debian:stable-slim"
MEMORY = 2 * 1024**3
PIDS = 256
START_SECONDS = 30.0
_SOCKETS = ("docker.sock", "podman.sock", "containerd.sock", "crio.sock", "buildkitd.sock")
# Options that would disable the isolation.
_FORBIDDEN = ("--privileged", "--pid=host", "--pid host", "--userns=host", "--userns host")


class Volume(NamedTuple):
    """A path on this machine or a volume of the engine, and its path inside."""

    source: str
    target: str
    writable: bool

    @property
    def is_bind(self) -> bool:
        """Whether it is a path on this machine."""
        return self.source.startswith("/")


class DockerSettings:
    """A container's settings, checked. `volumes` are `SOURCE:TARGET[:ro|rw]`, as engines write it.

    Raises `ConfigError` for a missing path, an engine's socket, or a folder that contains a home.
    """

    def __init__(
        self,
        image: str = IMAGE,
        *,
        volumes: Sequence[str] = (),
        network: str = "none",
        memory: int = MEMORY,
        pids: int = PIDS,
        cpus: float = 0.0,
        user: str = "",
        read_only: bool = False,
        mount_workspace: bool = True,
        pull: bool = False,
        extra: Sequence[str] = (),
        program: str = "",
        host: str = "",
        start_seconds: float = START_SECONDS,
    ) -> None:
        if not image or image.startswith("-"):
            raise ConfigError(f"{image!r} is no image", hint="Set terminal.docker.image.")
        self.image = image
        self.volumes = [_volume(text) for text in volumes]
        self.network = network
        self.memory = memory
        self.pids = pids
        self.cpus = cpus
        # `uid[:gid]`; the owner of the workspace when empty.
        self.user = user
        self.read_only = read_only
        self.mount_workspace = mount_workspace
        self.pull = pull
        self.extra = _allowed(extra)
        # `docker` or `podman`, whichever there is, when empty; where the engine listens.
        self.program = program
        self.host = host
        self.start_seconds = start_seconds

    @classmethod
    def read(cls, setting: Callable[[str, Any], Any]) -> DockerSettings:
        """From the settings below `terminal.docker`."""
        defaults: dict[str, Any] = {
            "image": IMAGE, "volumes": [], "network": "none", "memory": MEMORY, "pids": PIDS,
            "cpus": 0.0, "user": "", "read_only": False, "mount_workspace": True, "pull": False,
            "program": "", "host": "", "start_seconds": START_SECONDS,
        }  # fmt: skip
        given = {
            name: setting(f"terminal.docker.{name}", value) for name, value in defaults.items()
        }
        return cls(**given, extra=setting("terminal.docker.extra_args", []))


def workspace_of(path: str) -> str:
    """A folder that may be mounted: never a home folder or an ancestor of one."""
    return check_workspace(path)


def _volume(text: str) -> Volume:
    parts = text.split(":")
    writable = parts[-1] != "ro"
    if parts[-1] in ("ro", "rw"):
        parts.pop()
    if len(parts) != 2 or not parts[0] or not parts[1].startswith("/"):
        raise ConfigError(f"{text!r} is no volume", hint="Write SOURCE:TARGET[:ro|rw].")
    source, target = parts
    if source.startswith(("~", ".")):
        source = os.path.abspath(os.path.expanduser(source))
    if not source.startswith("/"):
        return Volume(source, target, writable)
    real = os.path.realpath(source)
    try:
        mode = os.stat(real).st_mode
    except OSError:
        raise ConfigError(f"the volume {source} is not there", hint="Make it first.") from None
    if stat.S_ISSOCK(mode) or os.path.basename(real) in _SOCKETS:
        raise ConfigError(f"{source} is a socket, which leads out of the container")
    if stat.S_ISDIR(mode):
        check_workspace(real)
    return Volume(real, target, writable)


def _allowed(extra: Sequence[str]) -> list[str]:
    """Configured extra arguments; raises `ConfigError` for those that disable the isolation."""
    joined = " ".join(extra)
    for word in (*_SOCKETS, *_FORBIDDEN):
        if word in joined:
            raise ConfigError(
                f"{word} would undo the container's walls",
                hint="Take it out of terminal.docker.extra_args.",
            )
    return list(extra)


NOBODY = "65534:65534"
HOME = "/hermes-home"
# The first process waits for the shell that we talk to, and takes care of orphans meanwhile.
_FIRST = "/bin/sh; exit 0"


def run_arguments(
    settings: DockerSettings, *, name: str, labels: Mapping[str, str], workspace: str, user: str
) -> list[str]:
    """The arguments of `docker` that start a container, which ends with the connection to it."""
    argv = ["run", "--interactive", "--rm", "--name", name]
    argv += ["--pull", "missing" if settings.pull else "never"]
    for label, value in labels.items():
        argv += ["--label", f"{label}={value}"]
    argv += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    argv += ["--pids-limit", str(settings.pids)]
    argv += ["--memory", str(settings.memory), "--memory-swap", str(settings.memory)]
    if settings.cpus:
        argv += ["--cpus", f"{settings.cpus:g}"]
    argv += ["--network", settings.network, "--user", user]
    if not settings.user:
        # A user that the image does not know has no home there, and git trusts no project.
        argv += ["--tmpfs", f"{HOME}:rw,exec,mode=1777", "--env", f"HOME={HOME}"]
        argv += ["--env", "GIT_CONFIG_COUNT=1"]
        argv += ["--env", "GIT_CONFIG_KEY_0=safe.directory", "--env", "GIT_CONFIG_VALUE_0=*"]
    if settings.read_only:
        argv += ["--read-only", "--tmpfs", "/tmp:rw,exec,mode=1777"]
    for volume in settings.volumes:
        argv += ["--mount", _mount(volume)]
    if workspace:
        argv += ["--mount", _bind(workspace, workspace, writable=True), "--workdir", workspace]
        if own := hermes_home_below(workspace):
            argv += ["--mount", _joined(["type=tmpfs", f"target={own}"])]
    return [*argv, *settings.extra, "--entrypoint", "/bin/sh", settings.image, "-c", _FIRST]


def user_of(settings: DockerSettings, workspace: str) -> str:
    """The user for commands: as configured, else the owner of the workspace; never root by default.

    A workspace of root gets an access list for an unprivileged user. On a file system without
    access lists it is root, without any capability.
    """
    if settings.user:
        return settings.user
    if not workspace:
        return NOBODY
    found = os.stat(workspace)
    if found.st_uid:
        return f"{found.st_uid}:{found.st_gid or found.st_uid}"
    return f"{CONTAINER_USER}:{CONTAINER_USER}" if grant_access(workspace) else "0:0"


def _mount(volume: Volume) -> str:
    if volume.is_bind:
        return _bind(volume.source, volume.target, writable=volume.writable)
    fields = ["type=volume", f"source={volume.source}", f"target={volume.target}"]
    return _joined(fields if volume.writable else [*fields, "readonly"])


def _bind(source: str, target: str, *, writable: bool) -> str:
    # Unlike `--volume`, this fails when the source is not there.
    fields = ["type=bind", f"source={source}", f"target={target}"]
    return _joined(fields if writable else [*fields, "readonly"])


def _joined(fields: list[str]) -> str:
    """Fields in the engine's CSV syntax: quoted where one contains a comma."""
    return ",".join(
        '"' + field.replace('"', '""') + '"' if any(c in field for c in ',"\n') else field
        for field in fields
    )


# Where the engine is, as its own command line reads it.
_ENGINE = (
    "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY",
    "DOCKER_API_VERSION", "CONTAINER_HOST", "CONTAINERS_CONF", "XDG_RUNTIME_DIR",
)  # fmt: skip
_ON_TERMINAL = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"


def engine(settings: DockerSettings) -> list[str]:
    """The command line of the engine's client; raises `UnavailableError`."""
    names = (settings.program,) if settings.program else ("docker", "podman")
    program = next(filter(None, map(find_program, names)), None)
    if program is None:
        raise UnavailableError(
            f"there is no {' or '.join(names)} here",
            hint="Install Docker or Podman, or choose another terminal.env_type.",
        )
    given = {name: os.environ[name] for name in _ENGINE if name in os.environ}
    if settings.host:
        given["DOCKER_HOST"] = given["CONTAINER_HOST"] = settings.host
        given.pop("DOCKER_CONTEXT", None)
    env = find_program("env") or "/usr/bin/env"
    return [env, *(f"{name}={value}" for name, value in given.items()), program]


class DockerTransport(Transport):
    """The way into a container: the first shell starts it, the others join."""

    def __init__(self, settings: DockerSettings, *, workspace: str, task: str) -> None:
        self.settings = settings
        self.workspace = workspace
        self.label = f"the container of {settings.image}"
        self.start_seconds = settings.start_seconds
        self.name = ""
        # How many containers there were so far.
        self.count = 0
        self._task = task
        self._engine: list[str] = []
        self._pruned = False
        self._user = ""

    def prepare(self, task: str = "") -> None:  # noqa: ARG002
        """Find the engine's client, and remove orphaned containers."""
        self._engine = engine(self.settings)
        # The access list of the last container was removed with it.
        self._user = ""
        if not self._pruned:
            # Should the engine not answer, starting a container will say why.
            with suppress(BackendError):
                prune(self._engine, seconds=min(5.0, self.start_seconds))
            self._pruned = True
        word = re.sub(r"[^A-Za-z0-9_.-]+", "-", self._task)[:40].strip("-.") or "task"
        self.name = f"hermes-{word}-{os.urandom(4).hex()}"
        self.count += 1

    def argv(self, words: Sequence[str], *, tty: bool = False, first: bool = False) -> list[str]:
        """The engine's command line: the first shell starts a container, the others join it."""
        if first:
            return [
                *self._engine,
                *run_arguments(
                    self.settings,
                    name=self.name,
                    labels=labels(self._task),
                    workspace=self.workspace,
                    user=self.user,
                ),
            ]
        flags = ["--interactive", "--tty"] if tty else ["--interactive"]
        joining = [*self._engine, "exec", *flags, self.name, "/bin/sh", "-c", " ".join(words)]
        # The client allocates a terminal inside only if it has one itself.
        return [sys.executable, "-I", "-S", "-c", _ON_TERMINAL, *joining] if tty else joining

    @property
    def user(self) -> str:
        """The user that commands run as."""
        if not self._user:
            self._user = user_of(self.settings, self.workspace)
        return self._user

    def explain(self, errors: str, code: int | None) -> BackendError:
        """The error for a shell that did not start."""
        program = os.path.basename(self._engine[-1]) if self._engine else "docker"
        return explain_error(
            errors,
            code,
            program=program,
            image=self.settings.image,
            seconds=self.settings.start_seconds,
        )

    def info(self) -> Isolation:
        """The isolation that the engine enforces, and settings that reduce it."""
        settings = self.settings
        missing = []
        if self.user.partition(":")[0] in ("0", "root"):
            missing.append("another user: commands are root, without any capability")
        if settings.network != "none":
            missing.append(f"network: {settings.network} was configured")
        if settings.extra:
            missing.append(f"whatever these arguments change: {' '.join(settings.extra)}")
        shown = [volume.target for volume in settings.volumes if volume.writable]
        seen = ", ".join([*([self.workspace] if self.workspace else []), *shown])
        return Isolation(
            "docker",
            files=f"an image of its own; of this machine only {seen}" if seen else "an image alone",
            network="none" if settings.network == "none" else "",
            processes=f"a pid namespace of its own, no capabilities, at most {settings.pids}",
            memory=f"{settings.memory // 1_000_000} MB for everything together",
            not_enforced=tuple(missing),
        )

    def close(self) -> None:
        """Remove the container."""
        if not self.name:
            return

        name, self.name = self.name, ""
        with suppress(BackendError):
            remove(self._engine, name)
        if self._user == f"{CONTAINER_USER}:{CONTAINER_USER}" and not self._shared_with_others():
            revoke_access(self.workspace)

    def _shared_with_others(self) -> bool:
        """Whether another live container may use the same workspace."""
        try:
            return any(not container.stale for container in containers(self._engine))
        except BackendError:
            return True


_KILLED = 137


class DockerEnvironment(RemoteShellEnvironment):
    """Runs commands in one container, which is started with the first command.

    The workspace is mounted under its own name, so that a path means the same inside and out.
    Raises `ConfigError` at once for invalid settings.
    """

    def __init__(
        self,
        cwd: str = "",
        settings: DockerSettings | None = None,
        *,
        shared: SharedSettings | None = None,
    ) -> None:
        settings = settings or DockerSettings()
        shared = shared or SharedSettings()
        self.workspace = workspace_of(cwd or os.getcwd()) if settings.mount_workspace else ""
        self._container = DockerTransport(settings, workspace=self.workspace, task=shared.task)
        super().__init__(
            self._container,
            self.workspace or cwd or "/",
            shared=shared,
        )
        # Whether the workspace inside is the folder on this machine.
        self.persistent: bool | None = None
        self._probed = 0
        self._killed = 0

    @property
    def disk(self) -> ShellDisk | SharedFolderDisk:
        """The files inside; a mounted workspace is accessed directly."""
        self.open()
        if self.persistent:
            return SharedFolderDisk(self.workspace, self.workspace, self._disk)
        return self._disk

    def open(self) -> list[str]:
        """Start the container, if need be; notes for the model."""
        notes = super().open()
        if self._probed != self._container.count:
            self._probed = self._container.count
            self._killed = self._out_of_memory()
            self._probe()
            if not self.persistent:
                notes.append(
                    "the workspace is not persistent: files written inside are not seen outside, "
                    "and go with the container"
                )
        return notes

    def _run(self, request: CommandRequest) -> CommandResult:
        try:
            result = super()._run(request)
        except ContainerGoneError:
            self._connection.drop()
            result = super()._run(request)
            result.notes.append(self._reconnected)
        if result.exit_code == _KILLED:
            killed = self._out_of_memory()
            if killed > self._killed:
                limit = self._container.settings.memory // 1_000_000
                result.notes.append(f"it was killed: out of memory (the limit is {limit} MB)")
            self._killed = max(killed, self._killed)
        return result

    def run_script(self, text: str, data: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run an internal script there: its exit code, stdout and stderr."""
        try:
            return super().run_script(text, data)
        except ContainerGoneError:
            self._connection.drop()
            return super().run_script(text, data)

    def _probe(self) -> None:
        """Test whether the workspace inside is the folder on this machine, by a file."""
        self.persistent = False
        if not self.workspace:
            return
        word = os.urandom(8).hex()
        path = os.path.join(self.workspace, f".hermes-probe-{word}")
        with suppress(BrokenChannelError, OSError):
            self._connection.ask(f"echo {word} >{quote(path)}")
            try:
                with open(path, encoding="ascii") as file:
                    self.persistent = file.read().strip() == word
            finally:
                self._connection.ask(f"rm -f {quote(path)}")

    def _out_of_memory(self) -> int:
        """The number of processes in the container that the OOM killer has ended."""
        try:
            events = self._connection.ask(
                "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control "
                "2>/dev/null"
            )
        except BrokenChannelError:
            return 0
        for line in events.splitlines():
            words = line.split()
            if len(words) == 2 and words[0] == b"oom_kill":
                return int(words[1])
        return 0


_GONE = ("no such container", "is not running", "container state improper")


class ContainerGoneError(BackendError):
    """The container was removed, or has ended."""


# (text in the engine's message, its meaning, command to check)
_COMPLAINTS = (
    ("permission denied while trying to connect", "this user may not use the engine", "{p} info"),
    ("Cannot connect to the Docker daemon", "the engine does not run", "{p} info"),
    ("error during connect", "the engine can't be reached", "{p} info"),
    ("Cannot connect to Podman", "the engine does not run", "{p} info"),
    ("connection refused", "nothing listens where the engine should be", "{p} info"),
    ("no such host", "the engine's host was not found", "{p} info"),
    ("no such file or directory: unix", "the engine's socket is not there", "{p} info"),
    ("No such image", "the image {image} is not here", "{p} pull {image}"),
    ("Unable to find image", "the image {image} is not here", "{p} pull {image}"),
    ("image not known", "the image {image} is not here", "{p} pull {image}"),
    ("pull access denied", "the image {image} can't be pulled", "{p} pull {image}"),
    ("manifest unknown", "the image {image} has no such tag", "{p} pull {image}"),
    ("invalid reference format", "{image} is no name of an image", "{p} image ls"),
    ("port is already allocated", "a port is taken already", "{p} ps"),
    ("address already in use", "a port is taken already", "{p} ps"),
    ("bind source path does not exist", "a folder to mount is not there", "{p} info"),
    ("mounts denied", "the engine may not mount that folder", "{p} info"),
    ("invalid mount", "a mount can't be made", "{p} info"),
    ("network", "the network mode is not known to the engine", "{p} network ls"),
    ("no space left", "the engine's disk is full", "{p} system df"),
    ("executable file not found", "the image has no /bin/sh", "{p} run --rm {image} sh -c true"),
    ("no such file or directory", "the image has no /bin/sh", "{p} run --rm {image} sh -c true"),
    ("unknown flag", "an argument in terminal.docker.extra_args is not known", "{p} run --help"),
    ("Conflict", "the name of the container is taken", "{p} ps --all"),
)  # fmt: skip
_FULL = ("OCI runtime exec failed", "resource temporarily unavailable", "can't fork")


def explain_error(
    errors: str, code: int | None, *, program: str, image: str, seconds: float
) -> BackendError:
    """The error for a shell that did not start in the container."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    # Usage lines do not help here.
    lines = [
        line for line in lines if not line.startswith(("Run '", "See '", "Usage:", "WARNING:"))
    ]
    last = " ".join(lines).removeprefix("docker: ")[-400:]
    lowered = errors.lower()
    if any(word.lower() in lowered for word in _FULL) and code == 126:
        return BackendError(
            f"the container can't start another process: {last}",
            hint="The limit on processes is reached; end some, or raise terminal.docker.pids.",
        )
    if any(words in lowered for words in _GONE):
        return ContainerGoneError(f"the container is gone: {last}", hint="Try again.")
    for words, cause, check in _COMPLAINTS:
        if words.lower() in lowered:
            where = {"p": program, "image": image}
            return BackendError(
                f"no container: {cause.format(**where)} ({last})",
                hint=f"Check with: {check.format(**where)}",
            )
    if code is None:
        cause = f"nothing came up within {seconds:g} s"
    elif code == 137:
        cause = "it was killed (out of memory, or stopped from outside)"
    else:
        cause = f"{program} ended with {code}"
    return BackendError(
        f"no container: {cause}{f' ({last})' if last else ''}", hint=f"Check with: {program} info"
    )


_FORMAT = "\t".join(
    ["{{.ID}}", *(f'{{{{.Label "{name}"}}}}' for name in (PID, STARTED, MACHINE, TASK))]
)


class ListedContainer(NamedTuple):
    """A container that a Hermes made."""

    id: str
    task: str
    pid: int
    # Whether the program that made it is gone.
    stale: bool


def containers(engine: Sequence[str], *, seconds: float = 10.0) -> list[ListedContainer]:
    """The containers of all Hermes programs that use the engine; raises `BackendError`."""
    listed = _engine([*engine, "ps", "--all", "--no-trunc", "--filter", f"label={PID}",
                      "--format", _FORMAT], seconds)  # fmt: skip
    found = []
    for line in listed.splitlines():
        words = line.split("\t")
        if len(words) != 5 or not words[1].isdigit():
            continue
        id_, pid, started, machine, task = words
        stale = is_stale({PID: pid, STARTED: started, MACHINE: machine})
        found.append(ListedContainer(id_, task, int(pid), stale))
    return found


def prune(engine: Sequence[str], *, seconds: float = 10.0) -> list[ListedContainer]:
    """Remove the orphaned containers; the removed ones."""
    stale = [one for one in containers(engine, seconds=seconds) if one.stale]
    if stale:
        _engine([*engine, "rm", "--force", "--volumes", *(one.id for one in stale)], seconds)
    return stale


def _engine(argv: Sequence[str], seconds: float) -> str:
    env = {os.fsencode(k): os.fsencode(v) for k, v in inherited_variables().items()}
    code, out, err = run_to_end(
        guardian, [os.fsencode(word) for word in argv], env=env, seconds=seconds
    )
    if code:
        raise BackendError(err.decode("utf-8", "replace").strip()[-400:] or f"exit code {code}")
    return out.decode("utf-8", "replace")


def remove(engine: Sequence[str], name: str, *, seconds: float = 10.0) -> None:
    """Remove a container, if it is there."""
    _engine([*engine, "rm", "--force", "--volumes", name], seconds)
