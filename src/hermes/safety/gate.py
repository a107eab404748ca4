"""Gate: one ruling on one call, from permissions, paths, addresses and commands."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.json_text import to_json
from hermes.core.paths import is_below
from hermes.safety.approvals import (
    Approvals,
    Denials,
    call_grant,
    command_grant,
    signals_us,
    targets,
)
from hermes.safety.call_effects import CallEffect, Effects, effects_of
from hermes.safety.permissions.checker import covers
from hermes.safety.policy import Policy, Ruling

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Literal

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry
    from hermes.core.errors import ToolError
    from hermes.core.protocols import Coverage
    from hermes.safety.approvals import Grant
    from hermes.safety.permissions import PermissionChecker
    from hermes.safety.shell.verdict import Finding, Verdict

_READS = Ruling("allow", rule="effect:read")
_PASSES = Ruling("allow", rule="gate")
# Files from this size on are looked up in what undo covers before a command writes to them.
_LARGE = 1024 * 1024
_MAY = {
    "write": "may change files or settings",
    "execute": "may run code",
    "network": "may send data over the network",
    "message": "may reach other people",
}


class Gate(Policy):
    """The policy of a running Hermes.

    Modes: `plan` only reads; `ask` asks about every change; `standard` about what a person wants to
    know; `auto`, for confined commands, not about destruction in the workspace that undo reverts;
    `off` asks nothing (no setting: a program chooses it for a runtime in a sandbox).
    """

    def __init__(
        self,
        permissions: PermissionChecker,
        *,
        approvals: Approvals | None = None,
        mode: str = "standard",
        url_rules: Mapping[str, Any] | None = None,
        home: str | None = None,
    ) -> None:
        self.permissions = permissions
        self.approvals = approvals or Approvals()
        self.mode = mode
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
        effects = effects_of(entry, arguments, context, home=self._home)
        if self.mode == "plan" and _changes(entry, arguments, effects):
            return Ruling("refuse", reason="plan mode only reads", rule="mode:plan")
        paths: dict[tuple[str, str], str] = {}
        asked: list[Ruling] = []
        for ruling in self._rulings(entry, arguments, context, effects, paths):
            if ruling.action == "refuse":
                self.denied(ruling, context)
                return ruling
            if ruling.action == "ask":
                asked.append(ruling)
        if asked and self.mode != "off":
            ruling = self._still_asked(asked, context, paths)
            ruling.effects = effects
            return ruling
        if not effects.acts:
            return _PASSES
        return Ruling("allow", rule="gate", paths=paths, effects=effects)

    def resolve_path(self, context: ToolContext, kind: Any, path: str) -> str:
        """Where a path leads that a call comes upon while it runs.

        Raises `PathRefusedError` where the call may not go, or only after asking, and a plain
        `ToolError` where no file can be.
        """
        from hermes.safety.paths import PathRefusedError

        entry = self.permissions.entry(context.tool)
        paths: dict[tuple[str, str], str] = {}
        effects = Effects((CallEffect(kind, path),), context)
        for ruling in self._rulings(entry, {}, context, effects, paths, alone=True):
            if ruling.action == "refuse":
                raise PathRefusedError(path, ruling.reason)
            if ruling.action == "ask" and self.mode != "off":
                # What was approved for a folder holds for what is in it.
                if ruling.rule == "path:outside" and _below(context, kind, paths[kind, path]):
                    continue
                raise PathRefusedError(path, ruling.reason)
        if (kind, path) not in paths:
            raise self._impossible(path, context)
        return paths[kind, path]

    def _impossible(self, path: str, context: ToolContext) -> ToolError:
        """The error for a path that no file can have."""
        from hermes.core.errors import ToolError
        from hermes.safety.paths import check_path

        decision = check_path(path, "read", rules=None, cwd=context.workspace, home=self._home)
        shown = path if len(path) <= 80 else f"{path[:80]}…"
        return ToolError(
            f"there is no such path as {shown!r}: {decision.reason}",
            hint="Send another path.",
        )

    def allows(self, right: str, context: ToolContext) -> bool:
        """Whether every layer gives a right, and none takes it away or wants to be asked."""
        return all(
            any(covers(pattern, right) for pattern in profile.allow)
            and not any(covers(p, right) for p in (*profile.deny, *profile.approval_required))
            for profile in (*self.permissions.layers, *context.profiles)
        )

    def remember(
        self, ruling: Ruling, answer: Literal["session", "always"], context: ToolContext
    ) -> None:
        """Note an approval that is meant to last."""
        self.approvals.give(ruling.grants, context.session_id, always=answer == "always")

    def approved(self, ruling: Ruling, context: ToolContext) -> bool:
        """Whether a person approved this before, for the session or for good."""
        return bool(self.approvals.covered_by(ruling.grants, context.session_id))

    def denied(self, ruling: Ruling, context: ToolContext) -> None:
        """Record that a person, or the gate itself, refused."""
        self._denials.note(ruling.targets, context.session_id)

    def session_ended(self, session_id: str) -> None:
        """Forget the approvals of one session."""
        self.approvals.end_session(session_id)

    def _still_asked(
        self, asked: list[Ruling], context: ToolContext, paths: Mapping[tuple[str, str], str]
    ) -> Ruling:
        """The open questions, without those that were approved before."""
        covers = {r: self.approvals.covered_by(r.grants, context.session_id) for r in asked}
        open_ = [ruling for ruling, by in covers.items() if not by]
        if not open_:
            return Ruling(
                "allow",
                reason="approved before",
                rule=asked[0].rule,
                paths=paths,
                by=covers[asked[0]],
            )
        first = open_[0]
        reasons = "; ".join(dict.fromkeys(ruling.reason for ruling in open_))
        grants = tuple(grant for ruling in open_ for grant in ruling.grants)
        about = frozenset[str]().union(*(ruling.targets for ruling in open_))
        return Ruling(
            "ask",
            reason=reasons,
            rule=first.rule,
            grants=grants,
            targets=about,
            paths=paths,
            human_only=any(ruling.human_only for ruling in open_),
        )

    def _rulings(
        self,
        entry: ToolEntry,
        arguments: Mapping[str, Any],
        context: ToolContext,
        effects: Effects,
        paths: dict[tuple[str, str], str],
        *,
        alone: bool = False,
    ) -> Iterator[Ruling]:
        """The ruling of each rule in turn; resolved paths are recorded in `paths`.

        Args:
            alone: Only the effects themselves; the call as a whole was judged before.
        """

        acts = effects.acts

        def granted(ruling: Ruling) -> Ruling:
            # By the place and not by the spelling: a link bent meanwhile is another thing.
            led = [act._replace(value=paths.get(act[:2], act.value)) for act in acts]
            grant = call_grant(
                ruling.rule, entry, to_json(arguments), acts=led, workspace=context.workspace
            )
            return Ruling(ruling.action, reason=ruling.reason, rule=ruling.rule, grants=(grant,))

        asks = []
        for act in acts:
            if act.kind == "execute":
                yield from self._of_command(act, effects.cwd(act), effects.verdict(act), context)
            elif act.kind == "fetch":
                yield self._of_url(act.value)
            else:
                ruling = self._of_path(act, context, paths)
                if ruling.action == "ask":
                    asks.append(ruling)
                else:
                    yield ruling
        right = self.permissions.judge(entry, arguments, context, acts)
        if right.action == "ask":
            asks.insert(0, right)
        else:
            yield right
        # Last, when it is known where every path leads.
        for ruling in asks:
            yield granted(ruling)
        if alone:
            return
        effect = entry.effect_of(arguments)
        # A tool that the program itself defines needs no question: its author put it there.
        ours = entry.origin == "custom"
        blind = effect != "read" and not acts and not ours and not self._named(entry)
        if blind or (self.mode == "ask" and _changes(entry, arguments, effects)):
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

    def _of_command(
        self, act: CallEffect, cwd: str, verdict: Verdict, context: ToolContext
    ) -> Iterator[Ruling]:
        from hermes.safety.shell.verdict import INSIDE, OUTSIDE
        from hermes.safety.taint import leaving_files

        command = act.value
        if act.outside is not None:
            why = act.outside.strip() or "no reason given"
            grant = command_grant(
                "confine:outside", command, verdict.commands, cwd=cwd, env=context.task.env
            )
            yield Ruling(
                "ask",
                reason=f"run outside of confinement, with all your rights: {why}",
                rule="confine:outside",
                grants=(grant,),
                human_only=True,
            )
        if not verdict.reads_only and not act.confined:
            yield from self._of_reach(command, cwd, verdict, context)
        destroyed = self._destroyed(act, cwd, verdict, context)
        if destroyed is not None and destroyed.uncovered:
            yield self._past_undo(command, cwd, verdict, destroyed, context)
        if not any(finding.rule.startswith("secrets.sent") for finding in verdict.findings):
            for rule, reason in leaving_files(verdict, cwd):
                grant = command_grant(
                    rule, command, verdict.commands, cwd=cwd, env=context.task.env
                )
                yield Ruling("ask", reason=reason, rule=rule, grants=(grant,), human_only=True)
        everything = [*verdict.commands, *verdict.inside]
        if signals_us(everything):
            yield Ruling("refuse", reason="that process guards this call", rule="gate:own-process")
        for finding in verdict.findings:
            if finding.severity == "ask" and act.confined:
                if finding.kind == OUTSIDE:
                    # The operating system stops it, or keeps its effect in the workspace.
                    continue
                if finding.kind == INSIDE and self._reverted(finding, verdict, destroyed):
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
            reason = f"{finding.description.rstrip('.')}: {finding.command}"
            about = targets(finding.command.split(), cwd)
            yield Ruling(
                action,
                reason=reason,
                rule=finding.rule,
                grants=grants,
                targets=about,
                human_only=finding.human_only,
            )
        if self._denials.repeats(everything, context.session_id, cwd):
            yield Ruling(
                "refuse", reason="the same target was refused just before", rule="gate:repeated"
            )

    def _destroyed(
        self, act: CallEffect, cwd: str, verdict: Verdict, context: ToolContext
    ) -> Coverage | None:
        """What undo does for the files that a command destroys; None where it destroys none."""
        from hermes.safety.shell.verdict import INSIDE

        if act.undo is None or verdict.reads_only:
            return None
        paths = {path for path in verdict.writes if _is_large(path)}
        if act.confined:
            for finding in verdict.findings:
                if finding.kind == INSIDE:
                    targets = _targets(finding, verdict)
                    if not targets and self.mode == "auto":
                        targets = [context.workspace]
                    paths.update(targets)
        return act.undo(sorted(paths), context, cwd=cwd) if paths else None

    def _reverted(self, finding: Finding, verdict: Verdict, destroyed: Coverage | None) -> bool:
        """Whether destruction in the workspace needs no question, since undo reverts it."""
        if destroyed is None or destroyed.uncovered:
            return False
        if self.mode == "auto":
            return True
        # What is missing or empty now may be filled by the command itself.
        targets = _targets(finding, verdict)
        return bool(targets) and all(
            destroyed.disposable.get(path, "empty") != "empty" for path in targets
        )

    def _past_undo(
        self, command: str, cwd: str, verdict: Verdict, destroyed: Coverage, context: ToolContext
    ) -> Ruling:
        largest, *others = destroyed.uncovered
        reason = f"undo can't restore {largest.path} ({_size(largest.size)}, {largest.reason})"
        if others or destroyed.more:
            reason += f" and {len(others) + destroyed.more} more"
        grant = command_grant(
            "undo:limit", command, verdict.commands, cwd=cwd, env=context.task.env
        )
        return Ruling("ask", reason=reason, rule="undo:limit", grants=(grant,), human_only=True)

    def _of_reach(
        self, command: str, cwd: str, verdict: Verdict, context: ToolContext
    ) -> Iterator[Ruling]:
        """Writes of a command outside the workspace, judged like the path of a file tool."""
        from hermes.safety.workspace_bounds import is_inside, outside

        def asked(reason: str) -> Ruling:
            grant = command_grant(
                "path:outside", command, verdict.commands, cwd=cwd, env=context.task.env
            )
            return Ruling("ask", reason=reason, rule="path:outside", grants=(grant,))

        workspace = context.workspace
        if not is_inside(cwd, workspace=workspace, home=self._home):
            yield asked(f"it runs in {cwd}, outside the workspace")
            return
        # A command that is asked about anyway is shown once.
        known = {finding.command for finding in verdict.findings}
        for _, line, reason in outside(verdict.writes, workspace=workspace, home=self._home):
            if line not in known:
                yield asked(f"{reason}: {line}")
                return

    def _of_url(self, url: str) -> Ruling:
        from hermes.safety.urls import check_url

        decision = check_url(url, rules=self._url_rules, resolve=_resolved_later)
        return _PASSES if decision.allowed else Ruling("refuse", reason=decision.reason, rule="url")

    def _of_path(
        self, act: CallEffect, context: ToolContext, paths: dict[tuple[str, str], str]
    ) -> Ruling:
        from hermes.safety.paths import check_path

        mode = "read" if act.kind == "read" else "write"
        everywhere = {"allow_read": ["/**"], "allow_write": ["/**"], "deny": []}
        guarded = check_path(
            act.value, mode, rules=everywhere, cwd=context.workspace, home=self._home
        )
        if not guarded.possible:
            # No file can be there, so that nothing is done; the tool says so as it comes upon it.
            return _PASSES
        if not guarded.allowed or guarded.resolved is None:
            return Ruling("refuse", reason=guarded.reason, rule="path:guard")
        paths[act[:2]] = guarded.resolved
        if mode == "read":
            return _PASSES
        workspace = os.path.realpath(context.workspace)
        if is_below(guarded.resolved, workspace):
            # A name that another system would read as a path out of here is no plain name.
            inside = {"allow_write": [f"{workspace}/**", workspace], "deny": []}
            if "\\" not in act.value or (
                check_path(
                    act.value, mode, rules=inside, cwd=context.workspace, home=self._home
                ).allowed
            ):
                return _PASSES
        reason = f"{act.value} is outside the workspace"
        return Ruling("ask", reason=reason, rule="path:outside")


def _changes(entry: ToolEntry, arguments: Mapping[str, Any], effects: Effects) -> bool:
    """Whether a call may change something: not if it only runs commands that read."""
    if entry.effect_of(arguments) == "read":
        return False
    only_runs = effects.acts and all(act.kind == "execute" for act in effects.acts)
    return not (only_runs and effects.reads_only)


def _targets(finding: Finding, verdict: Verdict) -> list[str]:
    """The paths that a finding destroys, patterns expanded; none where they are not all known."""
    from glob import glob, has_magic

    paths = [path for path, command in verdict.writes.items() if command == finding.command]
    known = finding.rule.startswith("delete.") and finding.command.split()[0] in _DELETES
    if not known or "…" in finding.command or any(map(_is_unknown, paths)):
        return []
    return [
        match
        for path in paths
        for match in (glob(path) if has_magic(path) and not os.path.lexists(path) else [path])
    ]


# Programs whose operands are all they delete.
_DELETES = frozenset({"rm", "rmdir", "unlink", "find", "truncate", "shred", "cp", ":", ">"})


def _is_unknown(path: str) -> bool:
    return any("\ue000" <= char <= "\ue0ff" for char in path)


def _is_large(path: str) -> bool:
    try:
        return os.path.isfile(path) and os.path.getsize(path) >= _LARGE
    except (OSError, ValueError):
        return False


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def _below(context: ToolContext, kind: str, place: str) -> bool:
    """Whether a place is inside one that the call named, which was judged before it began."""
    return any(
        is_below(place, judged)
        for (judged_kind, _), judged in context.paths.items()
        if judged_kind == kind
    )


def _resolved_later(host: str, port: int) -> tuple[str, ...]:  # noqa: ARG001
    """Stands for any public address: the real one is checked when the connection is made."""
    return ("1.1.1.1",)
