"""`hermes run` and `hermes cost` together: what one says it used is what the other finds."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from tests.conftest import CommandLine

from hermes.core.model_protocol import Message
from hermes.stores.sessions import Sessions
from hermes.testing import ScriptedModel, Turn


def test_a_run_is_found_again_with_its_price(hermes: CommandLine) -> None:
    usage = {"input": 1000, "cached": 400, "output": 100, "reasoning": 30}
    with ScriptedModel([Turn("hello", usage=usage)]) as model:
        env = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "none"}
        said = json.loads(hermes("run", "--model", "openai/gpt-4o", "--json", "hi", env=env).stdout)

    assert said["usage"] == {"input": 1000, "output": 100, "cached": 400, "reasoning": 30}
    assert said["usd"] == pytest.approx(0.003)
    found = json.loads(hermes("cost", said["session"], "--by", "session,agent", "--json").stdout)
    assert found["total"]["usd"] == pytest.approx(said["usd"])
    assert [row["name"] for row in found["by"]["session"]] == [said["session"]]
    shown = hermes("cost", env={"COLUMNS": "40"}).stdout
    assert max(map(len, shown.splitlines())) <= 40


def test_an_unknown_price_is_null(hermes: CommandLine) -> None:
    with ScriptedModel(then="hello") as model:
        env = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "none"}
        done = hermes("run", "--model", "openai/nobody-knows-it", "--json", "hi", env=env)

    assert json.loads(done.stdout)["usd"] is None


def test_what_the_settings_want_deleted_is_deleted_and_said(
    hermes: CommandLine, home: Path
) -> None:
    with Sessions() as store:
        old = store.begin(workspace="/w", model="m", front_door="test")
        old.append(Message("user", "long ago"))
        with store.database.writing() as connection:
            past = int((time.time() - 90 * 86_400) * 1000)
            connection.execute("UPDATE sessions SET touched = ?", (past,))
    hermes("config", "set", "sessions.keep_days", "30")
    assert old.id in hermes("sessions", "prune").stdout
    with ScriptedModel(then="hello") as model:
        env = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "none"}
        done = hermes("run", "--quiet", "hi", env=env)

    assert done.returncode == 0
    assert old.id in done.stderr
    with Sessions() as store:
        assert [info.title for info in store.list()] == ["hi"]


@pytest.mark.parametrize("prices", ["gpt-4o", "gpt-4o 1", "gpt-4o one two", "x -1 2", "x nan 1"])
def test_a_price_that_is_none_is_refused(hermes: CommandLine, prices: str) -> None:
    done = hermes("config", "set", "model.prices", prices)

    assert done.returncode == 1
    assert "NAME INPUT OUTPUT" in done.stderr
