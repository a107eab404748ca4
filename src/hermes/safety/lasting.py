"""What is loaded by itself later: memory, skills, jobs, plugins, rules for agents.

Whoever can write there speaks in every conversation to come. So after a conversation has read what
strangers wrote, such a write is put before a person, with where the words came from; and where
nobody can be asked, it is kept until somebody reviews it, and not done.

A tool says of itself what it writes (`keeps="memory"`); files are known by their place.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.home import hermes_home
from hermes.core.jsontext import to_json
from hermes.safety.acts import acts_of
from hermes.safety.approval import call_grant
from hermes.safety.paths import PathRefusedError
from hermes.safety.policy import Ruling

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry

# Folders of the home, and of a project's own `.hermes`.
_FOLDERS = {
    "memories": "memory",
    "skills": "skills",
    "cron": "cron",
    "plugins": "plugins",
    "hooks": "hooks",
    "yaml_tools": "tools",
    "tools": "tools",
    "agents": "rules",
    "commands": "rules",
    "rules": "rules",
}
# Words to agents that stand in projects and homes, ours and those of other programs.
_FILES = frozenset((
    ".hermes.md", "hermes.md", "agents.md", "agents.override.md", "claude.md", "claude.local.md",
    "gemini.md", "qwen.md", "soul.md", ".cursorrules", ".windsurfrules", ".clinerules",
    ".goosehints", "copilot-instructions.md",
))  # fmt: skip
_RULES = frozenset((".cursor", ".claude", ".codex", ".gemini", ".windsurf", ".clinerules", ".roo"))


class Lasting(NamedTuple):
    """What a call would write for later: the kind, where, and whether the call can wait."""

    kind: str
    place: str = ""
    waits: bool = True


def lasting(
    entry: ToolEntry,
    arguments: Mapping[str, Any],
    places: Mapping[tuple[str, str], str] | None,
    context: ToolContext,
) -> Lasting | None:
    """What a call would write that is loaded by itself later; None when it is nothing such."""
    if entry.effect_of(arguments) == "read":
        return None
    if entry.keeps:
        return Lasting(entry.keeps)
    for (kind, _), place in (places or {}).items():
        if kind in ("write", "delete") and (found := kind_of(place)):
            return Lasting(found, place)
    for act in acts_of(entry, arguments, context):
        if act.kind == "execute":
            from hermes.safety.shell.recent import verdict_on

            verdict = verdict_on(act.value, cwd=act.cwd or context.cwd)
            for place in verdict.writes:
                if found := kind_of(os.path.realpath(place)):
                    # What a command does depends on when it runs.
                    return Lasting(found, place, waits=False)
    return None


def kind_of(place: str) -> str:
    """What a place is to conversations to come: `memory`, `skills`, `rules`, …; or nothing."""
    parts = [part.casefold() for part in place.split("/")]
    name = parts[-1]
    home = os.path.realpath(hermes_home())
    if place.startswith(os.path.join(home, "")):
        first = os.path.relpath(place, home).split("/")[0].casefold()
        return _FOLDERS.get(first, "")
    if ".hermes" in parts[:-1] and (found := _FOLDERS.get(parts[parts.index(".hermes") + 1])):
        return found
    if name == "skill.md":
        return "skills"
    if name in _FILES or not _RULES.isdisjoint(parts):
        return "rules"
    return ""


def check_unasked(path: str, place: str) -> None:
    """Refuse a write that a call comes upon while it runs, where a person had to be asked."""
    kind = kind_of(place)
    if kind:
        raise PathRefusedError(
            path,
            f"later conversations load it by themselves ({kind}), and this one has read what "
            "others wrote",
        )


def reviewed(
    ruling: Ruling,
    entry: ToolEntry,
    arguments: Mapping[str, Any],
    context: ToolContext,
    sources: Sequence[str],
) -> Ruling:
    """The ruling on a call of a conversation that has read what strangers wrote."""
    if ruling.action == "refuse":
        return ruling
    found = lasting(entry, arguments, ruling.places, context)
    if found is None:
        return _sending(ruling, entry, arguments, context, sources)
    rule = f"review:{found.kind}"
    where = f" ({found.place})" if found.place else ""
    reason = (
        f"it writes {found.kind}{where}, which later conversations load by themselves, after this "
        f"one has read what others wrote: {', '.join(sources[:3])}"
    )
    if ruling.action == "ask":
        reason = f"{ruling.reason}; {reason}"
    grant = call_grant(rule, entry, to_json(arguments), acts=(), workspace=context.workspace)
    return Ruling(
        "ask",
        reason=reason,
        rule=rule,
        grants=(*ruling.grants, grant),
        targets=ruling.targets,
        places=ruling.places,
        human_only=True,
        keeps=found.kind if found.waits else "",
    )


def _sending(
    ruling: Ruling,
    entry: ToolEntry,
    arguments: Mapping[str, Any],
    context: ToolContext,
    sources: Sequence[str],
) -> Ruling:
    """The ruling on a call that may carry away what the conversation knows."""
    if ruling.action != "allow":
        return ruling
    from hermes.safety.outbound import carried_away

    for why in carried_away(entry, arguments, context):
        rule = "review:outbound"
        grant = call_grant(rule, entry, to_json(arguments), acts=(), workspace=context.workspace)
        return Ruling(
            "ask",
            reason=f"{why}, after this conversation has read what others wrote: "
            f"{', '.join(sources[:3])}",
            rule=rule,
            grants=(*ruling.grants, grant),
            targets=ruling.targets,
            places=ruling.places,
            human_only=True,
        )
    return ruling
