"""What a container is to be like; whatever can't be is said before anything is started."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ConfigError
from hermes.environments.sandbox.walls import checked_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

IMAGE = "debian:stable-slim"
MEMORY = 2 * 1024**3
PIDS = 256
START_SECONDS = 30.0
_SOCKETS = ("docker.sock", "podman.sock", "containerd.sock", "crio.sock", "buildkitd.sock")
# What would undo the walls of the container altogether.
_FORBIDDEN = ("--privileged", "--pid=host", "--pid host", "--userns=host", "--userns host")


class Volume(NamedTuple):
    """Something of this machine, or a volume of the engine's, and where it is seen inside."""

    source: str
    target: str
    writable: bool

    @property
    def is_bind(self) -> bool:
        """Whether it is a file or folder here."""
        return self.source.startswith("/")


class DockerSettings:
    """A container's settings, checked. `volumes` are `SOURCE:TARGET[:ro|rw]`, as engines write it.

    Raises `ConfigError` for what is not there, is a socket of an engine, or holds a home folder.
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
        """The same from settings, by their names below `terminal.docker`."""
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
    """A folder that may be mounted: never a home, never what holds one."""
    return checked_workspace(path)


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
        checked_workspace(real)
    return Volume(real, target, writable)


def _allowed(extra: Sequence[str]) -> list[str]:
    """More arguments, as configured; refuses those that would undo the walls."""
    joined = " ".join(extra)
    for word in (*_SOCKETS, *_FORBIDDEN):
        if word in joined:
            raise ConfigError(
                f"{word} would undo the container's walls",
                hint="Take it out of terminal.docker.extra_args.",
            )
    return list(extra)
