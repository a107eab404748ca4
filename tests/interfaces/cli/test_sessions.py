"""`hermes sessions list` after an agent had others work for it."""

from __future__ import annotations

import json

import pytest
from tests.conftest import CommandLine

from hermes.testing import Call, ScriptedModel, Turn


@pytest.fixture
def delegated(hermes: CommandLine) -> CommandLine:
    """A home in which one session had two agents work for it."""
    tasks = [{"goal": "count the files"}, {"goal": "count the folders"}]
    script = [Turn(calls=[Call("delegate_task", {"tasks": tasks})]), "None.", "None.", "All empty."]
    with ScriptedModel(script) as model:
        env = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-x", "HERMES_MODEL": "gpt-4o"}
        done = hermes("run", "what is here", env=env)
    assert done.stdout == "All empty.\n", done.stderr
    return hermes


def test_agents_that_worked_for_a_session_are_not_listed(delegated: CommandLine) -> None:
    (only,) = delegated("sessions").stdout.splitlines()
    (info,) = json.loads(delegated("sessions", "list", "--json").stdout)

    assert only.endswith("what is here")
    assert (info["title"], info["relation"]) == ("what is here", "")


def test_all_lists_them_with_whom_they_worked_for(delegated: CommandLine) -> None:
    own = json.loads(delegated("sessions", "list", "--json").stdout)[0]["id"]

    lines = delegated("sessions", "list", "--all").stdout.splitlines()

    assert len(lines) == 3
    assert sum(f"↳ for {own}: count the" in line for line in lines) == 2


def test_skipping_counts_only_what_is_listed(delegated: CommandLine) -> None:
    done = delegated("sessions", "list", "--skip", "1")

    assert (done.stdout, done.stderr.strip()) == ("", "no more sessions")
