"""Containers whose Hermes is gone: found by their labels, and removed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from hermes.environments.local.answering import answer
from hermes.environments.local.owner import guardian
from hermes.environments.owning import MACHINE, PID, STARTED, TASK, is_stale
from hermes.environments.results import PlaceError
from hermes.environments.variables import passed_variables

if TYPE_CHECKING:
    from collections.abc import Sequence

_FORMAT = "\t".join(
    ["{{.ID}}", *(f'{{{{.Label "{name}"}}}}' for name in (PID, STARTED, MACHINE, TASK))]
)


class Found(NamedTuple):
    """A container that some Hermes made."""

    id: str
    task: str
    pid: int
    # Whether the program that made it is gone.
    stale: bool


def containers(engine: Sequence[str], *, seconds: float = 10.0) -> list[Found]:
    """The containers that a Hermes made, wherever it ran; raises `PlaceError`."""
    listed = _engine([*engine, "ps", "--all", "--no-trunc", "--filter", f"label={PID}",
                      "--format", _FORMAT], seconds)  # fmt: skip
    found = []
    for line in listed.splitlines():
        words = line.split("\t")
        if len(words) != 5 or not words[1].isdigit():
            continue
        id_, pid, started, machine, task = words
        stale = is_stale({PID: pid, STARTED: started, MACHINE: machine})
        found.append(Found(id_, task, int(pid), stale))
    return found


def prune(engine: Sequence[str], *, seconds: float = 10.0) -> list[Found]:
    """Remove the containers whose Hermes is gone; those that were."""
    stale = [one for one in containers(engine, seconds=seconds) if one.stale]
    if stale:
        _engine([*engine, "rm", "--force", "--volumes", *(one.id for one in stale)], seconds)
    return stale


def _engine(argv: Sequence[str], seconds: float) -> str:
    env = {os.fsencode(k): os.fsencode(v) for k, v in passed_variables().items()}
    code, out, err = answer(
        guardian, [os.fsencode(word) for word in argv], env=env, seconds=seconds
    )
    if code:
        raise PlaceError(err.decode("utf-8", "replace").strip()[-400:] or f"exit code {code}")
    return out.decode("utf-8", "replace")


def remove(engine: Sequence[str], name: str, *, seconds: float = 10.0) -> None:
    """Remove a container, if it is there."""
    _engine([*engine, "rm", "--force", "--volumes", name], seconds)
