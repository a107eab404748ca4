"""What places share that are reached through a shell: another host, a container.

    link.py         what each of them has to say for itself: `Link`
    scripts.py      the shell texts that run at the far end
    marks.py        messages from the far end, between what commands print
    channel.py      one open shell there
    connection.py   all open shells to one place, and the one that ends what we leave behind
    following.py    one command until it is over
    background.py   what runs beside
    environment.py  `FarEnvironment`, which puts it together
    sync.py         folders sent there by hash, so that only what changed travels

At the far end there is one shell that watches over the rest (the guard): when we go, in whatever
way, its input ends and it stops everything that carries the task's mark. Commands run in other
shells, which wait for the next one when nothing of the last is left.

New here? Read scripts.py, then connection.py.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.environments.far.environment import FarEnvironment
    from hermes.environments.far.link import Link
    from hermes.environments.far.sync import Synced

__all__ = ["FarEnvironment", "Link", "Synced"]

__getattr__ = names_from(
    __name__,
    {
        "FarEnvironment": "environment",
        "Link": "link",
        "Synced": "sync",
    },
)
