"""Backends: the table of environment kinds, with availability and factory of each.

Settings are read by name (`terminal.docker.image`), through a function that also has the defaults.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ConfigError
from hermes.core.paths import find_program

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from hermes.environments.environment import Environment, SharedSettings

    # The value of a setting, with a default.
    Setting = Callable[[str, Any], Any]

    class Make(Protocol):
        """Makes an environment without starting anything."""

        def __call__(
            self, workspace: str, setting: Setting, shared: SharedSettings
        ) -> Environment: ...


class Backend(NamedTuple):
    """A row of the table of backends."""

    name: str
    summary: str
    # Why it is not available; empty if it is, as far as can be seen without starting it.
    missing: Callable[[], str]
    make: Make


def backend(name: str) -> Backend:
    """The backend of a name; raises `ConfigError`."""
    found = BACKENDS.get(name)
    if found is None:
        raise ConfigError(
            f"{name!r:.60} is no kind of environment",
            hint=f"Set terminal.env_type to one of {', '.join(BACKENDS)}.",
        )
    return found


def ready(one: Backend, setting: Setting, *, chosen: bool) -> str:
    """Why a backend is not tested now; empty if it can be."""
    missing = one.missing()
    if missing:
        return missing
    wanted = _WANTED.get(one.name)
    if wanted and not setting(wanted, ""):
        return f"{wanted} is not set"
    if one.name in CLOUD and not chosen:
        return f"not tried, since it costs money: hermes environments test {one.name}"
    return ""


def _local(
    workspace: str,
    setting: Setting,
    shared: SharedSettings,
) -> Environment:
    from hermes.environments.confinement import ConfinedEnvironment, Settings

    settings = Settings(
        mode=setting("terminal.confine.mode", "auto"),
        network=setting("terminal.confine.network", "open"),
        hosts=tuple(setting("terminal.confine.hosts", ())),
        allow=tuple(setting("terminal.confine.allow", ())),
        write=tuple(setting("terminal.confine.write", ())),
        outside=tuple(setting("terminal.confine.outside", ())),
    )
    return ConfinedEnvironment(workspace, settings, shared=shared)


def _sandbox(
    workspace: str,
    setting: Setting,
    shared: SharedSettings,
) -> Environment:
    from hermes.environments.sandbox import sandbox_environment
    from hermes.environments.sandbox.sandbox_environment import SandboxEnvironment

    return SandboxEnvironment(
        workspace,
        shared=shared,
        network=setting("terminal.sandbox.network", False),
        binds=setting("terminal.sandbox.binds", []),
        memory=setting("terminal.sandbox.memory", sandbox_environment.MEMORY),
        pids=setting("terminal.sandbox.pids", sandbox_environment.PIDS),
    )


def _docker(
    workspace: str,
    setting: Setting,
    shared: SharedSettings,
) -> Environment:
    from hermes.environments.docker import DockerEnvironment, DockerSettings

    return DockerEnvironment(workspace, DockerSettings.read(setting), shared=shared)


def _ssh(
    workspace: str,  # noqa: ARG001
    setting: Setting,
    shared: SharedSettings,
) -> Environment:
    from hermes.environments.ssh import SshEnvironment, SshSettings

    # Our folders mean nothing on another host.
    cwd = setting("terminal.ssh.cwd", "")
    return SshEnvironment(SshSettings.read(setting), cwd, shared=shared)


def _singularity(
    workspace: str,
    setting: Setting,
    shared: SharedSettings,
) -> Environment:
    from hermes.environments.singularity import SingularityEnvironment, SingularitySettings

    settings = SingularitySettings.read(setting, workspace)
    return SingularityEnvironment(settings, shared=shared)


def _cloud(name: str) -> Make:
    """The factory for the environments of a cloud service."""

    def make(
        workspace: str,  # noqa: ARG001
        setting: Setting,
        shared: SharedSettings,
    ) -> Environment:
        from hermes.environments.cloud.cloud_environment import CloudEnvironment
        from hermes.environments.cloud.provider import provider_of

        # Our folders mean nothing there.
        return CloudEnvironment(
            provider_of(name, setting),
            setting(f"terminal.{name}.cwd", ""),
            image=setting(f"terminal.{name}.image", ""),
            lifetime=setting(f"terminal.{name}.lifetime", 3600.0),
            persistent=setting(f"terminal.{name}.persistent", True),
            shared=shared,
        )

    return make


def _no_library(module: str, extra: str) -> Callable[[], str]:
    def missing() -> str:
        from importlib.util import find_spec

        return "" if find_spec(module) else f"the {extra} extra is not installed"

    return missing


def _no_bubblewrap() -> str:
    if sys.platform != "linux":
        return "it needs Linux"
    return "" if find_program("bwrap") else "bubblewrap is not installed"


def _no_docker() -> str:
    found = find_program("docker") or find_program("podman")
    return "" if found else "neither docker nor podman is installed"


def _no_ssh() -> str:
    return "" if find_program("ssh") else "the OpenSSH client is not installed"


def _no_singularity() -> str:
    found = find_program("apptainer") or find_program("singularity")
    return "" if found else "neither apptainer nor singularity is installed"


# Settings without a default.
_WANTED = {"ssh": "terminal.ssh.host", "singularity": "terminal.singularity.image"}
CLOUD = frozenset({"modal", "daytona", "vercel_sandbox"})
BACKENDS = {
    one.name: one
    for one in (
        Backend("local", "this machine; processes are owned, nothing else is kept apart",
                lambda: "", _local),
        Backend("sandbox", "this machine behind walls (bubblewrap)", _no_bubblewrap, _sandbox),
        Backend("docker", "a container of its own (Docker, Podman)", _no_docker, _docker),
        Backend("ssh", "another host (OpenSSH)", _no_ssh, _ssh),
        Backend("singularity", "a container of Apptainer or Singularity", _no_singularity,
                _singularity),
        Backend("modal", "a sandbox of Modal", _no_library("modal", "modal"), _cloud("modal")),
        Backend("daytona", "a sandbox of Daytona", _no_library("daytona", "daytona"),
                _cloud("daytona")),
        Backend("vercel_sandbox", "a sandbox of Vercel", _no_library("vercel", "vercel"),
                _cloud("vercel_sandbox")),
    )
}  # fmt: skip
