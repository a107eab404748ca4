"""The engine's command line for one container."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.environments.docker.granting import AGENT, granted
from hermes.environments.sandbox.walls import hidden_below

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.environments.docker.settings import DockerSettings, Volume

NOBODY = "65534:65534"
HOME = "/hermes-home"
# The first process waits for the shell that we talk to, and takes care of orphans meanwhile.
_FIRST = "/bin/sh; exit 0"


def run_arguments(
    settings: DockerSettings, *, name: str, labels: Mapping[str, str], workspace: str, user: str
) -> list[str]:
    """What follows `docker`, to start a container that ends with our connection to it."""
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
        # Somebody whom the image does not know has no home there, and git would trust no project.
        argv += ["--tmpfs", f"{HOME}:rw,exec,mode=1777", "--env", f"HOME={HOME}"]
        argv += ["--env", "GIT_CONFIG_COUNT=1"]
        argv += ["--env", "GIT_CONFIG_KEY_0=safe.directory", "--env", "GIT_CONFIG_VALUE_0=*"]
    if settings.read_only:
        argv += ["--read-only", "--tmpfs", "/tmp:rw,exec,mode=1777"]
    for volume in settings.volumes:
        argv += ["--mount", _mount(volume)]
    if workspace:
        argv += ["--mount", _bind(workspace, workspace, writable=True), "--workdir", workspace]
        if own := hidden_below(workspace):
            argv += ["--mount", _joined(["type=tmpfs", f"target={own}"])]
    return [*argv, *settings.extra, "--entrypoint", "/bin/sh", settings.image, "-c", _FIRST]


def user_of(settings: DockerSettings, workspace: str) -> str:
    """Whom commands run as: as configured, else the owner of the workspace; never root by itself.

    Where the workspace belongs to root, a user without rights is let into it. Only on a disk that
    knows no way to do so is it root, without any capability.
    """
    if settings.user:
        return settings.user
    if not workspace:
        return NOBODY
    found = os.stat(workspace)
    if found.st_uid:
        return f"{found.st_uid}:{found.st_gid or found.st_uid}"
    return f"{AGENT}:{AGENT}" if granted(workspace) else "0:0"


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
    """Fields as the engine reads them: separated by commas, quoted where one holds a comma."""
    return ",".join(
        '"' + field.replace('"', '""') + '"' if any(c in field for c in ',"\n') else field
        for field in fields
    )
