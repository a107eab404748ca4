"""Which image, and what of this machine is seen in it; checked before anything is started."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hermes.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

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
        # A folder or image that keeps what is written; without one it is gone with the task.
        self.overlay = os.path.expanduser(overlay)
        self.network = network
        self.memory = memory
        self.pids = pids
        # A path to one of the programs, where they are not found by name.
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
        """The same from settings, by their names below `terminal.singularity`."""
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
    # The program would take a comma for the end of it.
    if "," in bind or "\n" in bind or mode not in ("", "ro", "rw"):
        raise ConfigError(f"{bind!r} can't be bound", hint="Write source:target or :ro after it.")
    real = os.path.realpath(os.path.expanduser(source))
    if not os.path.exists(real):
        raise ConfigError(f"{real} is to be bound and is not there", hint=_hint("binds"))
    home = os.path.realpath(os.path.expanduser("~"))
    if not allow_home and (home == real or home.startswith(f"{real.rstrip('/')}/")):
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
