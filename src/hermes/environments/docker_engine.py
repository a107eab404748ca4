"""Container engine: error messages explained, orphaned containers removed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from hermes.environments.command import BackendError, inherited_variables
from hermes.environments.host.guardian_client import guardian
from hermes.environments.host.process import run_to_end
from hermes.environments.owner_labels import MACHINE, PID, STARTED, TASK, is_stale

if TYPE_CHECKING:
    from collections.abc import Sequence


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
