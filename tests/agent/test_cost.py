"""What is counted: every question to a model, whoever asks it, at the prices of the settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.agent import Agent
from hermes.agent.budget import Pricing
from hermes.agent.providers.model_profiles import Prices
from hermes.core.model_protocol import Done, Message, Usage
from hermes.interfaces.cli.main import run as command
from hermes.runtime.app import App
from hermes.stores.sessions import Session, Sessions
from hermes.testing import Call, ScriptedModel, Turn

Ask = Callable[..., tuple[Agent, ScriptedModel, Session]]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ask]:
    """An agent with a journal, whose model follows a script; settings as keywords."""
    monkeypatch.chdir(tmp_path)
    ends: list[Callable[[], object]] = []

    def make(
        *script: Any,
        settings: dict[str, Any] | None = None,
        model: str = "openai/gpt-4o",
        **more: Any,
    ) -> tuple[Agent, ScriptedModel, Session]:
        server = ScriptedModel(script, then=more.pop("then", None)).__enter__()
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        store = Sessions()
        session = store.begin(workspace=str(tmp_path), model="", front_door="test")
        app = App()
        app.config.values = settings or {}
        agent = Agent(model, app=app, journal=session, **more)
        ends.extend(
            [lambda: server.__exit__(None, None, None), store.close, app.close, agent.close]
        )
        return agent, server, session

    yield make
    for end in reversed(ends):
        end()


def cost(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    assert command(["cost", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def used(**numbers: int) -> dict[str, Any]:
    return {"usage": numbers}


NUMBERS = ("input", "fresh", "cached", "written", "output", "reasoning")


def assert_adds_up(found: Any) -> None:
    for rows in found["by"].values():
        for name in NUMBERS:
            assert sum(row[name] for row in rows) == found["total"][name]
        assert sum(row["usd"] or 0 for row in rows) == pytest.approx(found["total"]["usd"] or 0)


def test_every_part_adds_up_to_what_the_provider_reported(
    ask: Ask, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("some text\n" * 50)
    agent, _, session = ask(
        Turn(
            calls=[Call("read_file", {"path": "a.txt"}), Call("system_info", {})],
            **used(input=1000, cached=300, output=41, reasoning=7),
        ),
        Turn(calls=[Call("delegate_task", {"goal": "x"})], **used(input=1500, output=20)),
        Turn("the child is done", **used(input=700, cached=100, output=13)),
        Turn("done", **used(input=1600, cached=1000, output=9)),
    )
    agent.run("go")
    capsys.readouterr()

    found = cost(capsys, "--by", "session,tool", "--by", "agent,model")

    total = found["total"]
    assert [total[name] for name in NUMBERS] == [4800, 3400, 1400, 0, 83, 7]
    assert total["usd"] == pytest.approx((3400 * 2.5 + 1400 * 1.25 + 83 * 10) / 1e6)
    assert_adds_up(found)
    assert [row["name"] for row in found["by"]["session"]] == [session.id]
    agents = {row["name"]: row["input"] for row in found["by"]["agent"]}
    assert agents["root"] == 4100
    assert sum(agents.values()) - agents["root"] == 700
    tools = {row["name"]: row for row in found["by"]["tool"]}
    assert tools["read_file"]["input"] > tools["delegate_task"]["input"]


def test_what_compaction_and_approval_ask_is_counted(
    ask: Ask, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / ".git").mkdir()

    def yes(request: dict[str, Any]) -> Turn:
        nonce = str(request["messages"][-1]["content"]).rpartition("--- end ")[2].split()[0]
        return Turn(json.dumps({"nonce": nonce, "decision": "yes"}), **used(input=70, output=8))

    agent, _, _ = ask(
        Turn(calls=[Call("terminal", {"command": "rm -rf build"})], **used(input=100, output=5)),
        yes,
        Turn("gone", **used(input=200, output=6)),
        Turn("a summary", **used(input=5000, output=50)),
        settings={"approvals": {"smart": True}},
    )
    agent.run("clean up")
    long = ["word " * 2000] * 30
    agent.conversation.messages += [Message("user", text) for text in long]
    from hermes.agent.compaction import Compaction
    from hermes.runtime import waits

    waits.run(Compaction().compress(agent.conversation))

    found = cost(capsys, "--by", "tool")

    assert found["total"]["input"] == 5370
    assert found["total"]["output"] == 69
    assert agent.budget.usage.input == 5370
    tools = {row["name"]: row["input"] for row in found["by"]["tool"]}
    assert tools["(compaction)"] == 5000
    assert tools["(approval)"] == 70
    assert_adds_up(found)


def test_prices_of_the_settings_count_for_the_budget(ask: Ask) -> None:
    looks = [Turn(calls=[Call("system_info", {})], **used(input=1000, output=10)) for _ in range(9)]
    agent, server, _ = ask(
        *looks,
        settings={"model": {"prices": ["my-model 1000 0"]}},
        model="openai/my-model",
        max_usd=1.5,
    )

    result = agent.turn("go on")

    assert result.ended == "spent"
    assert len(server.requests) == 2
    assert agent.budget.cost == pytest.approx(2.0)


def test_a_limit_in_dollars_is_not_pretended_where_the_price_is_unknown(ask: Ask) -> None:
    looks = [Turn(calls=[Call("system_info", {})], **used(input=1000, output=10)) for _ in range(9)]
    agent, server, _ = ask(*looks, model="openai/nobody-knows-it", max_usd=5.0)

    result = agent.turn("go on")

    assert result.ended == "spent"
    assert "price is not known" in result.text
    assert len(server.requests) == 1


def test_a_day_has_a_limit_for_all_sessions_together(ask: Ask) -> None:
    settings = {"budget": {"usd_per_day": 1.0}, "model": {"prices": ["gpt-4o 2500 0"]}}
    first, _, _ = ask(Turn("hi", **used(input=240, output=0)), settings=settings)
    first.run("hi")
    looks = [Turn(calls=[Call("system_info", {})], **used(input=100, output=0))] * 9
    second, server, _ = ask(*looks, settings=settings)

    result = second.turn("go on")

    assert result.ended == "spent"
    assert "a day may cost" in result.text
    assert len(server.requests) == 2
    assert second.turn("and on").ended == "spent"
    assert len(server.requests) == 2


def test_children_spend_from_the_same_purse(ask: Ask) -> None:
    agent, server, _ = ask(
        Turn(calls=[Call("delegate_task", {"goal": "x"})], **used(input=100, output=10)),
        *(Turn(calls=[Call("system_info", {})], **used(input=400_000, output=0)) for _ in range(9)),
        max_usd=1.0,
    )

    result = agent.turn("go on")

    assert result.ended == "spent"
    assert len(server.requests) == 2


def test_an_unknown_price_is_said_and_not_taken_for_nothing(
    ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    agent, _, _ = ask(Turn("hi", **used(input=10, output=2)), model="openai/nobody-knows-it")
    agent.run("hi")
    capsys.readouterr()

    found = cost(capsys)
    assert found["total"]["usd"] is None
    assert found["total"]["unpriced_tokens"] == 12
    assert found["unpriced_models"] == ["nobody-knows-it"]

    assert command(["cost"]) == 0
    shown = capsys.readouterr()
    assert "unknown" in shown.out
    assert "model.prices" in shown.err

    assert command(["config", "set", "model.prices", "nobody-* 100 1000"]) == 0
    assert cost(capsys)["total"]["usd"] == pytest.approx(0.003)


def test_since_leaves_out_what_is_older(
    ask: Ask, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, _, session = ask(*(Turn("hi", **used(input=10, output=2)) for _ in range(2)))
    agent.run("hi")
    with Sessions() as store, store.database.writing() as connection:
        connection.execute("UPDATE entries SET at = at - 8 * 86400000")
    agent.run("again")

    assert cost(capsys)["total"]["input"] == 20
    assert cost(capsys, "--since", "7d")["total"]["input"] == 10
    assert cost(capsys, "--since", "2w", session.id)["total"]["input"] == 20
    assert cost(capsys, "--since", "2001-01-01")["total"]["input"] == 20


@pytest.mark.parametrize("words", [["--by", "colour"], ["--since", "whenever"], ["--since", "xd"]])
def test_what_can_not_be_meant_is_a_line_and_a_code(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["cost", *words]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_looking_makes_no_store(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["cost"]) == 0
    assert not (home / "state.db").exists()


def _done(**fields: str) -> Done:
    return Done(Message("assistant", "hi"), "stop", **fields)


class _Model:
    name, window = "openai", 0

    def __init__(self, model: str) -> None:
        self.model = model


def test_a_model_is_counted_under_the_name_it_was_asked_by() -> None:
    pricing = Pricing(["mine 1 2"])

    def counted(done: Done, model: str) -> str:
        return pricing.counted_as(done, _Model(model))  # type: ignore[arg-type]

    assert counted(_done(model="gpt-4o-2024-08-06", asked="gpt-4o"), "gpt-4o") == "gpt-4o"
    assert counted(_done(model="/models/x.gguf", asked="mine"), "mine") == "mine"
    assert counted(_done(model="gpt-4o", asked="auto"), "auto") == "gpt-4o"
    assert counted(_done(provider="ollama", asked="gpt-oss"), "gpt-oss") == "ollama/gpt-oss"
    assert pricing.prices("ollama/gpt-oss") == Prices(0, 0, 0, 0)
    assert pricing.prices("ollama/mine") == Prices(1, 2)
    assert pricing.prices("someone/mine") == Prices(1, 2)
    assert pricing.cost("ollama/x", Usage(10, 10)) == 0
    assert pricing.cost("nobody-knows-it", Usage(10, 10)) is None
