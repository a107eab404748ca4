"""One container for a task, and the shells in it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes.core.errors import UnavailableError
from hermes.environments.docker.arguments import run_arguments, user_of
from hermes.environments.docker.complaints import explained
from hermes.environments.docker.granting import AGENT, withdraw
from hermes.environments.docker.pruning import containers, prune
from hermes.environments.owning import labels
from hermes.environments.results import Isolation, PlaceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.environments.docker.settings import DockerSettings

# Where the engine is, as its own command line reads it.
_ENGINE = (
    "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY",
    "DOCKER_API_VERSION", "CONTAINER_HOST", "CONTAINERS_CONF", "XDG_RUNTIME_DIR",
)  # fmt: skip
_ON_TERMINAL = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"


def engine(settings: DockerSettings) -> list[str]:
    """The engine's program with what it needs to find the engine; raises `UnavailableError`."""
    names = (settings.program,) if settings.program else ("docker", "podman")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        raise UnavailableError(
            f"there is no {' or '.join(names)} here",
            hint="Install Docker or Podman, or choose another terminal.env_type.",
        )
    given = {name: os.environ[name] for name in _ENGINE if name in os.environ}
    if settings.host:
        given["DOCKER_HOST"] = given["CONTAINER_HOST"] = settings.host
        given.pop("DOCKER_CONTEXT", None)
    env = shutil.which("env") or "/usr/bin/env"
    return [env, *(f"{name}={value}" for name, value in given.items()), program]


class DockerLink:
    """Starts a container with its first shell; the others join it."""

    lasts = False
    gives_terminal = True

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
        """Find the engine's program, and remove what a Hermes that is gone has left."""
        self._engine = engine(self.settings)
        # What was granted for the last container was taken away with it.
        self._user = ""
        if not self._pruned:
            # Should the engine not answer, starting a container will say why.
            with suppress(PlaceError):
                prune(self._engine, seconds=min(5.0, self.start_seconds))
            self._pruned = True
        word = re.sub(r"[^A-Za-z0-9_.-]+", "-", self._task)[:40].strip("-.") or "task"
        self.name = f"hermes-{word}-{os.urandom(4).hex()}"
        self.count += 1

    def argv(self, words: Sequence[str], *, tty: bool = False, first: bool = False) -> list[str]:
        """The engine's command line: a new container for the first shell, then that one."""
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
        # The program gives a terminal inside to none but those who have one themselves.
        return [sys.executable, "-I", "-S", "-c", _ON_TERMINAL, *joining] if tty else joining

    @property
    def user(self) -> str:
        """Whom commands run as."""
        if not self._user:
            self._user = user_of(self.settings, self.workspace)
        return self._user

    def explain(self, said: str, code: int | None) -> PlaceError:
        """Why there is no shell in the container."""
        program = os.path.basename(self._engine[-1]) if self._engine else "docker"
        return explained(
            said,
            code,
            program=program,
            image=self.settings.image,
            seconds=self.settings.start_seconds,
        )

    def info(self) -> Isolation:
        """What the engine is told to enforce, and what was configured otherwise."""
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
        """Remove the container, should it still be there."""
        if not self.name:
            return
        from hermes.environments.docker.pruning import remove

        name, self.name = self.name, ""
        with suppress(PlaceError):
            remove(self._engine, name)
        if self._user == f"{AGENT}:{AGENT}" and not self._shared_with_others():
            withdraw(self.workspace)

    def _shared_with_others(self) -> bool:
        """Whether another container, of this program or another, may work in the same folder."""
        try:
            return any(not one.stale for one in containers(self._engine))
        except PlaceError:
            return True
