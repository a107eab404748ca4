"""Commands on this machine.

    environment.py   LocalEnvironment: this machine as it is
    hosted.py        HostedEnvironment: what it shares with a sandbox on this machine
    launching.py     puts a command before the shell: words, variables, files
    plain.py         commands that need no shell in between
    foreground.py    follows a command until it ends, is stopped, or asks something
    background.py    a command beside others, with its log; pump.py listens to all of them
    process.py       one command under way: its files, and what was heard of it
    ready.py         which files have something to read, in order
    place.py         where that is: this machine, or a sandbox on it
    shell.py         the shell itself
    stdin.py         text for a command to read
    owner.py         our side of the guardian
    guardian.py      the process that starts commands and ends them should we end
    family.py        whose each process is, for the guardian
    process_table.py what the system says of processes, for the guardian
    answering.py     a short question to a shell
    sweeping.py      ends what is left when the guardian itself was killed
    census.py        everything that runs, for `hermes ps`; noticeboard.py: what it is called
    blocked.py       whether a process waits for somebody to type

New here? Read guardian.py's head, then hosted.py.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.environments.host.host_environment import LocalEnvironment

__all__ = ["LocalEnvironment"]

__getattr__ = names_from(
    __name__,
    {
        "LocalEnvironment": "host_environment",
    },
)
