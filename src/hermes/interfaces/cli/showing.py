"""A call in one line, for people who watch."""

from __future__ import annotations

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# The argument that says most about a call, the first of these that it has.
_TELLING = (
    "path",
    "command",
    "pattern",
    "url",
    "query",
    "question",
    "goal",
    "tasks",
    "action",
    "archive",
    "name",
)


def telling(arguments: Mapping[str, Any] | None) -> str:
    """The argument that says most, as one line; empty when none does."""
    given = arguments or {}
    named = [_several(given[name]) for name in _TELLING if given.get(name)]
    texts = [value for value in given.values() if isinstance(value, str) and value.strip()]
    told = str((named or texts or [""])[0])
    return " ".join("".join(c if c.isprintable() else " " for c in told[:2_000]).split())


def _several(value: Any) -> Any:
    """What a list of objects is about: the goal of each, where they have one."""
    if not isinstance(value, list):
        return value
    goals = [one["goal"] for one in value if isinstance(one, dict) and one.get("goal")]
    return f"{len(goals)}: {'; '.join(map(str, goals))}" if goals else value


def call_line(tool: str, emoji: str, arguments: Mapping[str, Any] | None) -> str:
    """A call: its sign, its name, and the argument that says most."""
    told = telling(arguments)
    short = told if len(told) <= 60 else f"{told[:59]}…"
    return f"{emoji or ''} {tool} {short}".strip()
