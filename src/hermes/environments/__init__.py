"""Where commands run and files lie: this machine, a sandbox, a container, a host far away.

    protocol.py     `Environment`: what every such place can do
    order.py        `Order`: one command as it was asked for
    results.py      `CommandResult`, `Isolation`: how it ended, what is kept from it
    beside.py       `Background`: a command that runs while others do; how many there may be

    choosing.py     which environment a task works in
    tasks.py        the environment of a task, made at its first command
    backends.py     the kinds there are, and how one is made from the settings
    local/          this machine: shell, owned processes, the guardian
    sandbox/        this machine behind walls: bubblewrap
    docker/         a container
    ssh/            another host
    singularity/    a container of Apptainer or Singularity
    cloud/          a sandbox of Modal, Daytona or Vercel
    far/            what those share that are reached through a shell

What all of them share:

    sharing.py      what each is given: whose it is, what it may see
    owning.py       labels that say whose a container is, and whether that Hermes is gone
    idling.py       ends what nobody has used for long
    trying.py       what is really kept apart, by trying it
    variables.py    what a command sees of the environment
    shell_disk.py   files that only a shell can reach; shared_folder.py: one that both sides have
    sync.py         folders sent there by hash, so that only what changed travels
    shell_state.py  folder, variables and functions from one command to the next
    output/         what commands print, within bounds and readable
    exits.py        what exit codes mean
    prompts.py      whether somebody is being asked; unfed.py: whether a `read` would be in vain
    attending.py    a command on a terminal elsewhere, until it ends or asks
    watching.py     remarks: a full disk, a busy background
    judging.py      what the gate has to judge of a command
    reporting.py    what the model is told of a command
    handling.py     what the process tool does; listening.py: ports;
                    line_matching.py: patterns, within a time limit
    restarting.py   background commands that are started again when they fail

A command goes one way through it: `execute` makes an `Order`, the backend's `_run` carries that
out, a `CommandResult` comes back.

New here? Read protocol.py, then local/hosted.py.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.environments.for_task import disk_of, environment_of

__all__ = ["disk_of", "environment_of"]

__getattr__ = names_from(
    __name__,
    {
        "disk_of": "for_task",
        "environment_of": "for_task",
    },
)
