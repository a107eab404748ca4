"""What places share that are reached through a shell: another host, a container.

    link.py         what each of them has to say for itself: `Link`
    scripts.py      the shell texts that run at the far end
    marks.py        messages from the far end, between what commands print
    channel.py      one open shell there
    connection.py   all open shells to one place, and the one that ends what we leave behind
    requests.py     the text for one command
    running.py      one command from a worker to what it leaves; following.py: until it is over
    starting.py     one command beside others; background.py: what is known of it then
    environment.py  `FarEnvironment`, which puts it together

At the far end there is one shell that watches over the rest (the guard): when we go, in whatever
way, its input ends and it stops everything that carries the task's mark. Commands run in other
shells, which wait for the next one when nothing of the last is left.

New here? Read scripts.py, then connection.py.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.environments.remote_shell.connection import Link
    from hermes.environments.remote_shell.remote_environment import FarEnvironment

__all__ = ["FarEnvironment", "Link"]

__getattr__ = names_from(
    __name__,
    {
        "FarEnvironment": "remote_environment",
        "Link": "connection",
    },
)
