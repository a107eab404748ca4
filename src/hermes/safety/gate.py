"""The gate: one ruling on one call, from rights, paths, addresses and commands together.

It judges what the call would do (`acts`), in the folder it would do it in. What only reads and is
limited by no profile passes at once. The rest is ruled on by the strictest of: the profiles in
their layers, the guards on paths and addresses, the analysis of commands. A reason to ask that was
approved before asks no more; what is refused stays refused in every mode.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.jsontext import to_json
from hermes.safety.acts import acts_of
from hermes.safety.approval import Approvals, call_grant, command_grant
from hermes.safety.denials import Denials, signals_us, targets
from hermes.safety.permissions.profiles import covers
from hermes.safety.policy import Ruling

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Literal

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry
    from hermes.safety.acts import Act
    from hermes.safety.approval import Grant
    from hermes.safety.permissions import PermissionChecker

    Mode = Literal["strict", "standard", "relaxed", "off"]

MODES = ("strict", "standard", "relaxed", "off")
_READS = Ruling("allow", rule="effect:read")
_PASSES = Ruling("allow", rule="gate")
_MAY = {
    "write": "may change files or settings",
    "execute": "may run code",
    "network": "may send data over the network",
    "message": "may reach other people",
}


class Gate:
    """The policy of a running Hermes."""

    def __init__(
        self,
        permissions: PermissionChecker,
        *,
        approvals: Approvals | None = None,
        mode: Mode = "standard",
        url_rules: Mapping[str, Any] | None = None,
        home: str | None = None,
    ) -> None:
        self.permissions = permissions
        self.approvals = approvals or Approvals()
        self.mode: Mode = mode
        self._denials = Denials()
        self._url_rules = dict(url_rules or {})
        self._home = home or os.path.expanduser("~")

    def judge(self, entry: ToolEntry, arguments: Mapping[str, Any], context: ToolContext) -> Ruling:
        """The ruling on one call."""
        if (
            entry.effect == "read"
            and not entry.acts
            and not context.profiles
            and self.permissions.unrestricted(entry)
        ):
            return _READS
        acts = acts_of(entry, arguments, context)
        asked: list[Ruling] = []
        for ruling in self._rulings(entry, arguments, context, acts):
            if ruling.action == "refuse":
                self.denied(ruling, context)
                return ruling
            if ruling.action == "ask":
                asked.append(ruling)
        if not asked or self.mode == "off":
            return _PASSES
        return self._still_asked(asked, context)

    def remember(
        self, ruling: Ruling, answer: Literal["session", "always"], context: ToolContext
    ) -> None:
        """Note an approval that is meant to last."""
        self.approvals.give(ruling.grants, context.session_id, always=answer == "always")

    def denied(self, ruling: Ruling, context: ToolContext) -> None:
        """Note that a person, or the gate itself, said no."""
        self._denials.note(ruling.targets, context.session_id)

    def session_ended(self, session_id: str) -> None:
        """Forget what was approved for one session only."""
        self.approvals.end_session(session_id)

    def _still_asked(self, asked: list[Ruling], context: ToolContext) -> Ruling:
        """What is left to ask about, less what was approved before."""
        open_ = [r for r in asked if not self.approvals.cover(r.grants, context.session_id)]
        if not open_:
            return Ruling("allow", reason="approved before", rule=asked[0].rule)
        first = open_[0]
        reasons = "; ".join(dict.fromkeys(ruling.reason for ruling in open_))
        grants = tuple(grant for ruling in open_ for grant in ruling.grants)
        about = frozenset[str]().union(*(ruling.targets for ruling in open_))
        return Ruling("ask", reason=reasons, rule=first.rule, grants=grants, targets=about)

    def _rulings(
        self,
        entry: ToolEntry,
        arguments: Mapping[str, Any],
        context: ToolContext,
        acts: Sequence[Act],
    ) -> Iterator[Ruling]:
        def granted(ruling: Ruling) -> Ruling:
            grant = call_grant(
                ruling.rule, entry, to_json(arguments), acts=acts, workspace=context.workspace
            )
            return Ruling(ruling.action, reason=ruling.reason, rule=ruling.rule, grants=(grant,))

        right = self.permissions.judge(entry, arguments, context, acts)
        yield granted(right) if right.action == "ask" else right
        for act in acts:
            if act.kind == "execute":
                yield from self._of_command(act.value, context)
            elif act.kind == "fetch":
                yield self._of_url(act.value)
            else:
                ruling = self._of_path(act, context)
                yield granted(ruling) if ruling.action == "ask" else ruling
        effect = entry.effect_of(arguments)
        blind = effect != "read" and not acts and not self._named(entry)
        if blind or (self.mode == "strict" and effect != "read"):
            # Nothing is known of what it does but that it does something.
            reason = f"{entry.name} {_MAY[effect]}"
            yield granted(Ruling("ask", reason=reason, rule=f"effect:{effect}"))

    def _named(self, entry: ToolEntry) -> bool:
        """Whether a profile allows this tool's rights by name, and not by a mere `*`."""
        return bool(entry.permissions) and all(
            any(
                pattern != "*" and covers(pattern, name)
                # The person's own profile: a project's can only take away.
                for profile in self.permissions.layers[:1]
                for pattern in profile.allow
            )
            for name in entry.permissions
        )

    def _of_command(self, command: str, context: ToolContext) -> Iterator[Ruling]:
        from hermes.safety.shell import detect_dangerous_command

        verdict = detect_dangerous_command(command, cwd=context.workspace, home=self._home)
        cwd = context.workspace
        if signals_us(verdict.commands):
            yield Ruling("refuse", reason="that process guards this call", rule="gate:own-process")
        for finding in verdict.findings:
            if finding.severity == "ask" and self.mode == "relaxed" and not finding.human_only:
                continue
            grants: tuple[Grant, ...] = ()
            if finding.severity == "ask":
                grants = (
                    command_grant(
                        finding.rule,
                        command,
                        verdict.commands,
                        cwd=cwd,
                        env=context.task.env,
                    ),
                )
            action: Literal["ask", "refuse"] = "refuse" if finding.severity == "refuse" else "ask"
            reason = f"{finding.description}: {finding.command}"
            about = targets(finding.command.split(), cwd)
            yield Ruling(action, reason=reason, rule=finding.rule, grants=grants, targets=about)
        if self._denials.repeats(verdict.commands, context.session_id, cwd):
            yield Ruling(
                "refuse", reason="the same target was refused just before", rule="gate:repeated"
            )

    def _of_url(self, url: str) -> Ruling:
        from hermes.safety.urls import check_url

        decision = check_url(url, rules=self._url_rules, resolve=_resolved_later)
        return _PASSES if decision.allowed else Ruling("refuse", reason=decision.reason, rule="url")

    def _of_path(self, act: Act, context: ToolContext) -> Ruling:
        from hermes.safety.paths import check_path

        mode = "read" if act.kind == "read" else "write"
        everywhere = {"allow_read": ["/**"], "allow_write": ["/**"], "deny": []}
        guarded = check_path(
            act.value, mode, rules=everywhere, cwd=context.workspace, home=self._home
        )
        if not guarded.allowed:
            return Ruling("refuse", reason=guarded.reason, rule="path:guard")
        if mode == "read":
            return _PASSES
        inside = {"allow_write": [f"{context.workspace}/**", context.workspace], "deny": []}
        if check_path(
            act.value, mode, rules=inside, cwd=context.workspace, home=self._home
        ).allowed:
            return _PASSES
        reason = f"{act.value} is outside the workspace"
        return Ruling("ask", reason=reason, rule="path:outside")


def _resolved_later(host: str, port: int) -> tuple[str, ...]:  # noqa: ARG001
    """Stands for any public address: the real one is checked when the connection is made."""
    return ("1.1.1.1",)
