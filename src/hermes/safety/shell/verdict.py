"""Result types of the analyser: `Finding` and `Verdict`."""

from __future__ import annotations

ALLOW = "allow"
ASK = "ask"
REFUSE = "refuse"
_RANK = {ALLOW: 0, ASK: 1, REFUSE: 2}

# Kinds of effects, by who can hold them back. Confined by the operating system a command needs no
# question for OUTSIDE: the write, read or signal fails. INSIDE is content of the workspace, which
# undo covers; REMOTE reaches other people's machines; ALWAYS are refusals and Hermes' own settings.
INSIDE = "inside"
OUTSIDE = "outside"
REMOTE = "remote"
ALWAYS = "always"
KIND_RANK = {OUTSIDE: 0, INSIDE: 1, REMOTE: 2, ALWAYS: 3}


class Finding:
    """One reason to stop: the rule, its span in the text, the reason in one sentence.

    `kind` is "inside", "outside", "remote" or "always": see the constants above.
    """

    __slots__ = ("command", "description", "human_only", "kind", "rule", "severity", "span")

    def __init__(
        self,
        rule: str,
        severity: str,
        span: tuple[int, int],
        command: str,
        description: str,
        *,
        kind: str = OUTSIDE,
        human_only: bool = False,
    ) -> None:
        self.rule = rule
        self.kind = kind
        self.severity = severity
        self.span = span
        self.command = command
        self.description = description
        self.human_only = human_only

    def __repr__(self) -> str:
        return f"Finding({self.rule!r}, {self.severity!r}, {self.span!r}, {self.command!r})"


class Verdict:
    """The action for a whole command text: that of its worst finding, or "allow".

    `commands` has the words of every simple command that could run, wrappers and what they start
    alike; a part that can't be known holds private-use characters. Scripts that it runs and that
    could be read follow, each as a path alone; the commands inside them are in `inside`, and
    `typed` has those of the text itself only. `reads_only` is True when every
    one of them is known to change nothing, so that there will be nothing to undo. `writes` has the
    places that are known to be written to, as absolute paths, each with the command that does it;
    whether they are anybody's business depends on the workspace, which only the caller knows.
    """

    __slots__ = ("action", "commands", "findings", "inside", "reads_only", "typed", "writes")

    def __init__(
        self,
        findings: list[Finding],
        commands: list[list[str]] | None = None,
        *,
        inside: list[list[str]] | None = None,
        scripts: list[str] | None = None,
        reads_only: bool = False,
        writes: dict[str, str] | None = None,
    ) -> None:
        self.findings = findings
        self.writes = writes or {}
        self.reads_only = reads_only
        self.typed = commands or []
        self.commands = [*self.typed, *([path] for path in scripts)] if scripts else self.typed
        self.inside = inside or []
        self.action = worst(finding.severity for finding in findings) if findings else ALLOW

    @property
    def scripts(self) -> list[list[str]]:
        """The scripts that it runs and that could be read, each as a path alone."""
        return self.commands[len(self.typed) :]

    def __repr__(self) -> str:
        return f"Verdict({self.action!r}, {self.findings!r})"


def worst(actions: object) -> str:
    """The most severe of some actions; "allow" when there are none."""
    return max(actions, key=_RANK.__getitem__, default=ALLOW)  # type: ignore[call-overload,no-any-return]
