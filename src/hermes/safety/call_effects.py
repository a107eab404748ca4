"""Effects of a call (files, commands, addresses), read from its arguments; the gate judges these,
not tool names.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Literal

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry
    from hermes.core.protocols import UndoCoverage
    from hermes.safety.shell import Verdict

    Kind = Literal["read", "write", "delete", "execute", "fetch"]

KINDS = ("read", "write", "delete", "execute", "fetch")


class CallEffect(NamedTuple):
    """One thing done: a path read, written or deleted, a command run, an address fetched."""

    kind: Kind
    value: str
    cwd: str = ""  # where a command runs, when that is not where the task is
    confined: str = ""  # by which mechanism a command is confined; empty where it is not
    outside: str | None = None  # why a command is to leave confinement; None where it is not
    undo: UndoCoverage | None = None  # what undo would restore; None where it restores nothing


class Effects:
    """The effects of one call, and the analysis of its commands.

    Computed once per ruling and carried by it: the gate, taint tracking, undo and review read the
    same analysis. A command is analysed when it is first asked for.
    """

    __slots__ = ("_cwd", "_home", "_scripts", "_verdicts", "_workspace", "acts")

    def __init__(
        self, acts: Sequence[CallEffect], context: ToolContext, *, home: str | None = None
    ) -> None:
        self.acts = acts
        self._cwd, self._workspace, self._home = context.cwd, context.workspace, home
        self._verdicts: dict[CallEffect, Verdict] = {}
        # The scripts that were read, each as it was then.
        self._scripts: dict[str, object] = {}

    def cwd(self, act: CallEffect) -> str:
        """The folder that a command runs in."""
        return act.cwd or self._cwd

    def verdict(self, act: CallEffect) -> Verdict:
        """The analysis of a command."""
        verdict = self._verdicts.get(act)
        if verdict is None:
            from hermes.safety.shell import detect_dangerous_command

            verdict = self._verdicts[act] = detect_dangerous_command(
                act.value, cwd=self.cwd(act), home=self._home, workspace=self._workspace
            )
            for (path,) in verdict.scripts:
                self._scripts[path] = _state(path)
        return verdict

    def scripts_changed(self) -> bool:
        """Whether a script is no longer what was analysed."""
        return any(_state(path) != state for path, state in self._scripts.items())

    def commands(self) -> Iterator[CallEffect]:
        """The commands that the call runs."""
        return (act for act in self.acts if act.kind == "execute")

    @property
    def reads_only(self) -> bool:
        """Whether every command is known to change nothing, so that there is nothing to undo."""
        return all(self.verdict(act).reads_only for act in self.commands())


def _state(path: str) -> object:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def effects_of(
    entry: ToolEntry,
    arguments: Mapping[str, Any],
    context: ToolContext,
    *,
    home: str | None = None,
) -> Effects:
    """The effects of a call; `ToolError` where the tool finds its arguments impossible."""
    return Effects(call_effects(entry, arguments, context), context, home=home)


def call_effects(
    entry: ToolEntry, arguments: Mapping[str, Any], context: ToolContext
) -> list[CallEffect]:
    """Everything a call would do that its tool has a word for."""
    said = entry.acts
    if callable(said):
        return [
            CallEffect(kind, str(value), *where) for kind, value, *where in said(arguments, context)
        ]
    reads = entry.effect_of(arguments) == "read"
    return [
        CallEffect("read" if reads and kind in ("write", "delete") else kind, value)
        for parameter, kind in said.items()
        for value in _texts(arguments.get(parameter))
    ]


def _texts(value: Any) -> list[str]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]
