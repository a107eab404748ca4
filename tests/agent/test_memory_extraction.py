"""A long conversation puts up what is worth keeping, and a person decides."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.agent import Agent
from hermes.runtime.app import App
from hermes.runtime.reviews import Reviews
from hermes.stores.memory import Memory
from hermes.testing import ScriptedModel, Turn

FACTS = "user: prefers tabs\n- memory: the harbour opens at six\nSo much for that."


class Model:
    """Answers requests plainly, and distils when it is asked to."""

    def __init__(self, facts: str | Turn = FACTS) -> None:
        self.facts = facts
        self.asked: list[str] = []

    def __call__(self, request: dict[str, Any]) -> Turn | str:
        last = request["messages"][-1]["content"]
        if "end of record" not in last:
            return "yes"
        self.asked.append(last)
        return self.facts


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def talk(model: Model, turns: int, monkeypatch: pytest.MonkeyPatch, every: int = 4) -> Any:
    """Some turns of a conversation; the requests, and what the person was told."""
    told: list[str] = []
    (home := Path(os.environ["HERMES_HOME"])).mkdir()
    (home / "config.yaml").write_text(f"memory: {{distill_every: {every}}}\n")
    app = App()
    with ScriptedModel(then=model) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")

        def on_event(event: Any) -> None:
            if type(event).__name__ == "Noted":
                told.append(event.text)

        with Agent("openai/gpt-4o", app=app, on_event=on_event) as agent:
            for number in range(turns):
                assert agent.run(f"request {number}") == "yes"
    app.close()
    return server, told


def test_every_so_many_turns_facts_wait_for_review(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model()
    _, told = talk(model, 10, monkeypatch)

    assert len(model.asked) == 2
    assert "request 3" in model.asked[0]
    assert "request 4" not in model.asked[0]
    assert "request 3" not in model.asked[1]
    waiting = {review.arguments["content"] for review in Reviews().pending()}
    assert waiting == {"prefers tabs", "the harbour opens at six"}
    assert "2 facts" in told[0]
    assert "hermes memory review" in told[0]
    # Nothing is remembered before the person has looked at it.
    assert Memory("user").entries() == []
    assert Memory("memory").entries() == []


def test_the_conversation_itself_stays_as_it_was(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = talk(Model(), 10, monkeypatch)

    asked = [b"end of record" in body for body in server.bodies]
    kept = [server.prefix_bytes(n) for n, distils in enumerate(asked) if not distils]
    assert len(kept) == 10
    for before, after in itertools.pairwise(kept):
        assert after.startswith(before)


@pytest.mark.parametrize("facts", ["nothing", "", Turn(status=400, error="no")])
def test_nothing_learnt_and_a_model_that_fails_hold_nothing_up(
    place: Path, monkeypatch: pytest.MonkeyPatch, facts: str | Turn
) -> None:
    model = Model(facts)
    _, told = talk(model, 6, monkeypatch)

    assert len(model.asked) == 1
    assert Reviews().pending() == []
    assert told == []


def test_it_can_be_switched_off(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    talk(model, 6, monkeypatch, every=0)
    assert model.asked == []
