"""Effects of a call (files, commands, addresses), read from its arguments; the gate judges these,
not tool names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry

    Kind = Literal["read", "write", "delete", "execute", "fetch"]

KINDS = ("read", "write", "delete", "execute", "fetch")


class Act(NamedTuple):
    """One thing done: a path read, written or deleted, a command run, an address fetched."""

    kind: Kind
    value: str
    cwd: str = ""  # where a command runs, when that is not where the task is


def acts_of(entry: ToolEntry, arguments: Mapping[str, Any], context: ToolContext) -> list[Act]:
    """Everything a call would do that its tool has a word for."""
    said = entry.acts
    if callable(said):
        return [Act(kind, str(value), *where) for kind, value, *where in said(arguments, context)]
    reads = entry.effect_of(arguments) == "read"
    return [
        Act("read" if reads and kind in ("write", "delete") else kind, value)
        for parameter, kind in said.items()
        for value in _texts(arguments.get(parameter))
    ]


def _texts(value: Any) -> list[str]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]
