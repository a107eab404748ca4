"""`hermes sessions`: every conversation that was kept: see, search, export and tidy them.

parsing    the options
reading    what only looks: list, search, show, export, stats
changing   what changes the store: rename, delete, fork, doctor, backup, prune
lines      times, sizes and foreign text as they are shown
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.interfaces.cli.sessions.parsing import arguments

__all__ = ["arguments"]

__getattr__ = names_from(__name__, {"arguments": "parsing"})
