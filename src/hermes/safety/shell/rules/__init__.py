"""The rules, as rows of data with examples that the tests run.

model.py        the shape of a row, and the language of its forms
predicates.py   tests that a form can't express
any_program.py  effects that look the same for every program: verbs, methods, addresses
local.py        unreadable text, deletes, disks, permissions, git
system.py       system files, accounts, services, packages, unread code, Hermes itself
remote.py       shared history, clouds, clusters, databases, listeners, secrets
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.safety.shell.rules.index import RULES

__all__ = ["RULES"]

__getattr__ = names_from(
    __name__,
    {
        "index": "RULES",
    },
)
