"""What later conversations load by themselves, by tool and by place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.core.context import ToolContext
from hermes.core.entry import ToolEntry
from hermes.safety.call_effects import effects_of
from hermes.safety.policy import Ruling
from hermes.safety.taint import persistent_kind, persistent_write, review_tainted


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("{home}/memories/MEMORY.md", "memory"),
        ("{home}/skills/deploy/SKILL.md", "skills"),
        ("{home}/plugins/x.py", "plugins"),
        ("{home}/cron/jobs.json", "cron"),
        ("{home}/artifacts/x", ""),
        ("/w/AGENTS.md", "rules"),
        ("/w/sub/agents.MD", "rules"),
        ("/w/.hermes.md", "rules"),
        ("/w/.hermes/skills/x.md", "skills"),
        ("/w/.hermes/plugins/p.py", "plugins"),
        ("/w/.hermes/notes.md", ""),
        ("/w/CLAUDE.md", "rules"),
        ("/w/.cursor/rules/a.mdc", "rules"),
        ("/w/.github/copilot-instructions.md", "rules"),
        ("/w/x/SKILL.md", "skills"),
        ("/w/README.md", ""),
        ("/w/src/memory.py", ""),
        ("/w/docs/agents.txt", ""),
    ],
)
def test_a_place_is_known_whoever_writes_there(home: Path, place: str, kind: str) -> None:
    assert persistent_kind(place.format(home=home)) == kind


def entry(**fields: Any) -> ToolEntry:
    return ToolEntry("t", "tests", {}, None, **fields)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("echo x >> AGENTS.md", "rules"),
        ("cp a.md sub/CLAUDE.md", "rules"),
        ("sed -i s/a/b/ .hermes.md", "rules"),
        ("cat AGENTS.md", ""),
        ("echo x > notes.md", ""),
    ],
)
def test_a_command_is_known_by_what_it_writes(tmp_path: Path, command: str, kind: str) -> None:
    for name in ("AGENTS.md", ".hermes.md", "a.md"):
        (tmp_path / name).write_text("a\n")
    (tmp_path / "sub").mkdir()
    one = entry(effect="execute", acts={"command": "execute"})
    context = ToolContext(workspace=str(tmp_path))

    found = persistent_write(
        one, {"command": command}, None, effects_of(one, {"command": command}, context)
    )

    assert (found.kind if found else "") == kind
    # A command can't wait: what it does depends on when it runs.
    assert found is None or not found.waits


def test_what_only_reads_keeps_nothing() -> None:
    one = entry(effect="write", keeps="cron", reads_when={"action": ["list"]})

    assert (
        persistent_write(
            one, {"action": "list"}, None, effects_of(one, {"action": "list"}, ToolContext())
        )
        is None
    )
    assert persistent_write(
        one, {"action": "add"}, None, effects_of(one, {"action": "add"}, ToolContext())
    ) == ("cron", "", True)


@pytest.mark.parametrize("action", ["allow", "ask"])
def test_a_lasting_write_is_asked_of_a_person_with_the_source(action: Any) -> None:
    one = entry(effect="write", keeps="skills")
    before = Ruling(action, reason="it writes", rule="effect:write")

    ruling = review_tainted(before, one, {}, ToolContext(), ["https://a.example"])

    assert (ruling.action, ruling.rule, ruling.keeps) == ("ask", "review:skills", "skills")
    assert "https://a.example" in ruling.reason
    assert ruling.human_only


def test_what_is_refused_stays_refused_and_the_rest_is_not_touched() -> None:
    no, yes = Ruling("refuse", reason="no"), Ruling("allow")

    assert review_tainted(no, entry(effect="write", keeps="x"), {}, ToolContext(), ["a"]) is no
    assert review_tainted(yes, entry(effect="write"), {}, ToolContext(), ["a"]) is yes
