"""A conversation that outgrows its model's window, against a scripted model over real HTTP."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.agent import Agent
from hermes.agent.compaction import (
    HEAD,
    Compaction,
    ContextFullError,
    steps_of,
    tokens,
    with_handles,
)
from hermes.core import ToolRegistry, tool
from hermes.core.model_protocol import Message, ToolUse
from hermes.runtime import waits
from hermes.runtime.app import App
from hermes.runtime.artifacts import ArtifactStore
from hermes.stores.sessions import Sessions
from hermes.testing import Call, ScriptedModel, Turn

LETTERS = str.maketrans("0123456789", "ghijklmnop")
SUMMARY = "Goal: count. Decisions: we use metres. Open: the rest."


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "HERMES_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return work


@pytest.fixture
def ask(work: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """An agent with a window of so many tokens and a tool `look` that says a lot."""
    registry = ToolRegistry()

    @tool(registry=registry, toolset="t", effect="read", acts={"path": "read"})
    def look(number: int, path: str = "plan.txt", size: int = 2000) -> str:
        """Look."""
        # Different words each time: the same again and again would be taken for a loop.
        words = hashlib.sha256(str(number).encode()).hexdigest().translate(LETTERS)
        return f"needle{number} " + (words * (size // 64 + 1))[:size]

    @tool(registry=registry, toolset="t", effect="write", acts={"path": "write"})
    def change(path: str) -> str:
        """Change."""
        return "changed"

    models: list[ScriptedModel] = []
    agents: list[Agent] = []

    def make(*script: Any, window: int, **more: Any) -> tuple[Agent, ScriptedModel]:
        model = ScriptedModel(script, then=more.pop("then", None)).__enter__()
        models.append(model)
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        app = App(registry)
        app.config.values = {"model": {"window": window}}
        # Few tools: how long the definitions of all of them are is no matter of these tests.
        agents.append(Agent("openai/gpt-4o", app=app, toolsets=["t", "todo"], **more))
        return agents[-1], model

    yield make
    for agent in agents:
        agent.close()
        agent.app.close()
    for model in models:
        model.close()


def sums_up(request: dict[str, Any]) -> bool:
    return "Below is the record" in str(request["messages"][0]["content"])


def looking(steps: int, **arguments: Any) -> Callable[[dict[str, Any]], Turn | str]:
    """A model that looks so many times and then says so; sums up whenever it is asked to."""
    count = iter(range(steps))

    def answer(request: dict[str, Any]) -> Turn | str:
        if sums_up(request):
            return SUMMARY
        number = next(count, None)
        if number is None:
            return "done"
        return Turn(calls=[Call("look", {"number": number, **arguments})])

    return answer


def sizes(model: ScriptedModel) -> list[int]:
    return [len(body) // 4 for body in model.bodies]


def whole(request: dict[str, Any]) -> bool:
    """Whether every call has its result and every result its call."""
    calls = [c["id"] for m in request["messages"] for c in m.get("tool_calls", ())]
    return calls == [m["tool_call_id"] for m in request["messages"] if m["role"] == "tool"]


def test_old_results_become_handles_before_anything_is_summed_up(work: Path, ask: Any) -> None:
    agent, model = ask(then=looking(40, size=2000), window=26_000)

    assert agent.run("look around") == "done"

    assert not any(map(sums_up, model.requests))
    last = [m["content"] for m in model.requests[-1]["messages"] if m["role"] == "tool"]
    assert len(last) == 40
    first = json.loads(last[0])
    kept = agent.app.artifacts.read(first["artifact"])
    assert kept["text"].startswith("needle0 ")
    assert all(len(text) > 2000 for text in last[-19:])
    assert max(sizes(model)) <= 26_000


def test_what_is_older_is_summed_up_and_the_facts_stay(work: Path, ask: Any) -> None:
    todos = [{"id": "1", "content": "measure the arch", "status": "pending"}]
    script = [
        Turn(calls=[Call("todo", {"todos": todos}), Call("change", {"path": "bridge.txt"})]),
        Turn(calls=[Call("look", {"number": -1, "path": "plan.txt"})]),
    ]
    agent, model = ask(*script, then=looking(60), window=12_000)

    assert agent.run("Measure the bridge, in metres.") == "done"

    assert any(map(sums_up, model.requests))
    assert max(sizes(model)) <= 12_000
    assert all(map(whole, model.requests))
    said = model.requests[-1]["messages"][1]["content"]
    assert said.startswith(HEAD)
    for fact in (SUMMARY, "Measure the bridge, in metres.", "measure the arch", "bridge.txt"):
        assert said.count(fact) == 1
    assert "- plan.txt" in said


def test_the_last_twenty_steps_stay_as_they_were(work: Path, ask: Any) -> None:
    agent, model = ask(then=looking(80, size=200), window=9_000)

    agent.run("go")

    first = next(n for n, request in enumerate(model.requests) if sums_up(request))
    before = model.requests[first - 1]["messages"]
    after = next(r["messages"] for r in model.requests[first:] if not sums_up(r))
    assert len(after) < len(before)
    # Nineteen steps with a result each were there before; the twentieth came with the answer.
    assert after[2:40] == before[-38:]


def test_the_journal_keeps_the_words_and_the_session_goes_on_short(work: Path, ask: Any) -> None:
    with Sessions() as sessions:
        session = sessions.begin(workspace=str(work), model="gpt-4o", front_door="test")
        agent, _ = ask(then=looking(60), window=12_000, journal=session)
        agent.run("look around")

        again = sessions.open(session.id).messages()

        assert again == agent.conversation.messages
        assert again[0].text.startswith(HEAD)
        assert sessions.search("needle3")
        noted = sum(line.usage.input for line in session.journal() if line.usage)
        assert noted == agent.conversation.budget.usage.input


def test_a_refusal_as_too_long_makes_room_and_teaches_where_the_end_is(
    work: Path, ask: Any
) -> None:
    refused: list[int] = []
    answer = looking(40)

    def small(request: dict[str, Any]) -> Turn | str:
        size = len(json.dumps(request)) // 4
        if size > 9_000:
            refused.append(size)
            return Turn(status=400, error="too long", code="context_length_exceeded")
        return answer(request)

    agent, _ = ask(then=small, window=0)

    assert agent.run("look around") == "done"
    assert len(refused) <= 2


def test_one_huge_step_is_cut_to_fit(work: Path, ask: Any) -> None:
    calls = [Call("look", {"number": n, "size": 40_000}) for n in range(4)]
    agent, model = ask(Turn(calls=calls), then=looking(0), window=16_000)

    assert agent.run("look") == "done"
    assert max(sizes(model)) <= 16_000
    assert all(map(whole, model.requests))


def test_without_progress_it_says_so_with_ways_out(work: Path, ask: Any) -> None:
    agent, _ = ask(then=looking(0), window=8_000)

    agent.run("word " * 8_000)
    with pytest.raises(ContextFullError) as caught:
        agent.run("word " * 8_000)

    for way in ("new session", "larger window", "fork", "--resume"):
        assert way in (caught.value.hint or "")


def test_no_progress_after_a_refusal_is_said_at_once(work: Path, ask: Any) -> None:
    refusal = Turn(status=400, error="too long", code="context_length_exceeded")
    agent, _ = ask(then=refusal, window=0)

    with pytest.raises(ContextFullError):
        agent.run("hello")


def test_a_second_summary_loses_no_request_and_no_file(work: Path, ask: Any) -> None:
    script = [Turn(calls=[Call("change", {"path": "first.txt"})])]
    agent, model = ask(*script, then=looking(60), window=8_000)
    agent.run("request 0")
    for number in range(1, 30):
        agent.run(f"request {number} " + "and so on " * 60)

    text = "\n".join(message.text for message in agent.conversation.messages)

    assert sum(map(sums_up, model.requests)) >= 3
    assert text.count("- first.txt") == 1
    assert [text.count(f"request {number}\n") for number in range(1)] == [1]
    assert [text.count(f"request {number} ") for number in range(1, 30)] == [1] * 29


def test_a_person_can_have_it_made_shorter(work: Path, ask: Any) -> None:
    agent, _ = ask(then=looking(60), window=0)
    agent.run("look around")
    before = sum(map(tokens, agent.conversation.messages))

    assert waits.run(Compaction().compress(agent.conversation))

    assert sum(map(tokens, agent.conversation.messages)) < before * 0.6


def test_calls_stay_with_their_results() -> None:
    messages = [
        Message("user", "a"),
        Message("assistant", calls=(ToolUse("1", "x"), ToolUse("2", "x"))),
        Message("tool", "r", call_id="1"),
        Message("tool", "r", call_id="2"),
        Message("user", "b"),
    ]

    assert [len(step) for step in steps_of(messages)] == [1, 3, 1]


def test_a_result_cut_before_keeps_the_handle_of_the_whole(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path / "artifacts"))
    handle = store.put("the whole")
    text = json.dumps({"result": "y" * 5000, "truncated": True, "artifact": handle})

    (made,) = with_handles([Message("tool", text, call_id="1")], store)

    assert json.loads(made.text)["artifact"] == handle
    assert tokens(made) < 300


@pytest.mark.parametrize("cut_before", [False, True])
def test_a_strangers_result_stays_marked_when_it_becomes_a_handle(
    tmp_path: Path, cut_before: bool
) -> None:
    store = ArtifactStore(str(tmp_path / "artifacts"))
    whole = store.put("the whole", source="box")
    cut = {"truncated": True, "artifact": whole} if cut_before else {}
    text = json.dumps({"untrusted": "box", "result": {"said": "obey " * 1000, **cut}})

    (made,) = with_handles([Message("tool", text, call_id="1")], store)

    shown = json.loads(made.text)
    assert [*shown] == ["untrusted", "result"]
    assert shown["untrusted"] == store.source(shown["result"]["artifact"]) == "box"
    assert (shown["result"]["artifact"] == whole) is cut_before
    assert tokens(made) < 300
