"""Commands on this machine.

    environment.py   LocalEnvironment: what a task works with
    foreground.py    follows a command until it ends, is stopped, or asks something
    background.py    a command beside others, with its log; pump.py listens to all of them
    process.py       one command under way: its files, and what was heard of it
    ready.py         which files have something to read, in order
    place.py         where that is: this machine, or a sandbox on it
    shell.py         the shell itself
    stdin.py         text for a command to read
    owner.py         our side of the guardian
    guardian.py      the process that starts commands and ends them should we end
    process_table.py what the system says of processes, for the guardian
    sweeping.py      ends what is left when the guardian itself was killed
    census.py        everything that runs, for `hermes ps`
    blocked.py       whether a process waits for somebody to type

New here? Read guardian.py's head, then environment.py.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.environments.local.environment import LocalEnvironment

__all__ = ["LocalEnvironment"]

__getattr__ = names_from(
    __name__,
    {
        "LocalEnvironment": "environment",
    },
)
