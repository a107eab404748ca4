"""The shape of a rule: which commands it is about, how bad they are, and examples of both kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.shell.verdict import ASK

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.command import Command


class Rule:
    """One kind of danger.

    Args:
        key: Stable name, `family.detail`.
        kind: INSIDE, OUTSIDE, REMOTE or ALWAYS (see `verdict`): who can hold the effect back.
        description: One sentence for the person who is asked.
        programs: Names it is about; a rule without any is reported by the code that walks the
            command (a pipe into a shell has no program of its own).
        sub: Subcommands, each a space-separated prefix of the operands; any of them matches.
        flags: Options of which at least one must be present.
        unless: Options that make the command harmless, such as `--dry-run`.
        when: A last test on the whole command.
        human_only: A model reviewing commands must never approve this one.
        matches: Commands that this rule must find.
        passes: Commands that this rule must leave alone.
    """

    __slots__ = (
        "description",
        "flags",
        "human_only",
        "key",
        "kind",
        "matches",
        "passes",
        "programs",
        "severity",
        "sub",
        "unless",
        "when",
    )

    def __init__(
        self,
        key: str,
        kind: str,
        description: str,
        *,
        programs: str = "",
        sub: tuple[str, ...] = (),
        flags: str = "",
        unless: str = "",
        when: Callable[[Command], bool] | None = None,
        severity: str = ASK,
        human_only: bool = False,
        matches: tuple[str, ...],
        passes: tuple[str, ...],
    ) -> None:
        self.key = key
        self.kind = kind
        self.description = description
        self.programs = tuple(programs.split())
        self.sub = tuple(tuple(path.split()) for path in sub)
        self.flags = tuple(flags.split())
        self.unless = tuple(unless.split())
        self.when = when
        self.severity = severity
        self.human_only = human_only
        self.matches = matches
        self.passes = passes

    def applies(self, command: Command) -> bool:
        """Whether the command is what this rule is about."""
        if self.sub and not self._has_subcommand(command):
            return False
        if self.flags and not command.has(*self.flags):
            return False
        if self.unless and command.has(*self.unless):
            return False
        return self.when is None or self.when(command)

    def _has_subcommand(self, command: Command) -> bool:
        operands = command.operands
        for path in self.sub:
            if len(operands) >= len(path) and all(
                operand.text == name for operand, name in zip(operands, path, strict=False)
            ):
                return True
        return False
