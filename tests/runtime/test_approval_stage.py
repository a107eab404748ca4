"""The gate asks, and only a clear yes to exactly what runs lets it run."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import ANY

import pytest
from tests.runtime.recorder import NotingTool, both_ways

from hermes.core import ToolCall, ToolContext, ToolRegistry
from hermes.runtime import Runtime
from hermes.safety.policy import EffectPolicy, Policy, Ruling


@pytest.mark.parametrize("effect", ["write", "execute", "network", "message"])
def test_what_does_more_than_read_asks_and_nobody_to_ask_means_no(effect: str) -> None:
    bench = NotingTool(effect)

    for outcome in both_ways(bench.runtime, ToolCall("work", {})):
        assert outcome.status == "refused"
        assert outcome.rule == f"effect:{effect}"
        assert "nobody can be asked" in outcome.value["error"]
    assert bench.ran == []


def test_what_only_reads_asks_nobody() -> None:
    asked: list[Any] = []

    assert NotingTool("read", approver=asked.append).call().ok
    assert asked == []


@pytest.mark.parametrize("said", [True, "once", "session", "always"])
def test_a_clear_yes_lets_it_run(said: Any) -> None:
    bench = NotingTool(approver=lambda request: said)

    assert [o.status for o in both_ways(bench.runtime, ToolCall("work", {}))] == ["ok", "ok"]
    assert len(bench.ran) == 2


@pytest.mark.parametrize(
    "said", [False, 1, 1.0, "yes", "True", "", "ONCE", ANY, ["once"], {"once"}, object()]
)
def test_anything_but_a_clear_yes_is_a_no(said: Any) -> None:
    bench = NotingTool(approver=lambda request: said)

    for outcome in both_ways(bench.runtime, ToolCall("work", {})):
        assert outcome.status == "refused"
        assert "said no" in outcome.value["error"]
    assert bench.ran == []


class Odd:
    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    __hash__ = None  # type: ignore[assignment]


def test_an_answer_that_can_not_be_compared_is_a_no() -> None:
    bench = NotingTool(approver=lambda request: Odd())

    assert bench.call().status == "refused"


@pytest.mark.parametrize(
    "error", [ValueError("x"), TimeoutError(), KeyError("k"), asyncio.CancelledError()]
)
def test_an_approver_that_fails_is_a_no(error: BaseException) -> None:
    async def later(request: Any) -> bool:
        await asyncio.sleep(0)
        raise error

    def now(request: Any) -> bool:
        raise error

    approvers = [later] if isinstance(error, asyncio.CancelledError) else [later, now]
    for approver in approvers:
        bench = NotingTool(approver=approver)
        for outcome in both_ways(bench.runtime, ToolCall("work", {})):
            assert outcome.status == "refused"
        assert bench.ran == []


def test_an_async_approver_is_awaited() -> None:
    async def approver(request: Any) -> str:
        await asyncio.sleep(0)
        return "once" if request.arguments["path"] == "good" else "no"

    bench = NotingTool(approver=approver)

    good = both_ways(bench.runtime, ToolCall("work", {"path": "good"}))
    bad = both_ways(bench.runtime, ToolCall("work", {"path": "bad"}))

    assert [outcome.status for outcome in good] == ["ok", "ok"]
    assert [outcome.status for outcome in bad] == ["refused", "refused"]


def test_the_approver_of_the_context_is_asked_what_will_run() -> None:
    requests: list[Any] = []

    def approver(request: Any) -> bool:
        requests.append(request)
        return True

    bench = NotingTool()
    context = bench.runtime.context(approver=approver, front_door="test", agent_path="a/b")

    bench.call('{"count": "2"}', context=context)

    (request,) = requests
    assert (request.tool, request.rule, request.call_id) == ("work", "effect:write", "c1")
    assert (request.front_door, request.agent_path) == ("test", "a/b")
    assert request.arguments["count"] == 2
    assert "may change files" in request.reason


class Failing(Policy):
    def judge(self, entry: Any, arguments: Any, context: Any) -> Ruling:
        raise KeyError("rules")


class Answering(Policy):
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __len__(self) -> int:
        return 0

    def judge(self, entry: Any, arguments: Any, context: Any) -> Any:
        return self.answer


@pytest.mark.parametrize(
    "policy",
    [
        Failing(),
        Answering(None),
        Answering("allow"),
        Answering(True),
        Answering(Ruling("maybe")),  # type: ignore[arg-type]
        Answering(Ruling("refuse", reason="never", rule="no")),
    ],
)
def test_a_policy_that_fails_or_babbles_means_refused(policy: Any) -> None:
    bench = NotingTool("read", policy=policy, approver=lambda request: True)

    for outcome in both_ways(bench.runtime, ToolCall("work", {})):
        assert outcome.status == "refused"
    assert bench.ran == []


def test_a_ruling_by_what_the_tool_declares() -> None:
    registry = ToolRegistry()
    registry.register(
        "files", "own", {"properties": {"action": {}}}, lambda action=None: None,
        effect="write", reads_when={"action": ["list"]}, origin="plugin", owner="acme",
    )  # fmt: skip
    entry: Any = registry.get("files")

    def judge(arguments: Any) -> str:
        return EffectPolicy().judge(entry, arguments, ToolContext()).action

    assert judge({"action": "list"}) == "allow"
    for arguments in ({"action": "delete"}, {}, {"action": ["list"]}, {"action": None}):
        assert judge(arguments) == "ask"


def test_whoever_is_asked_can_not_change_what_runs() -> None:
    def approver(request: Any) -> bool:
        request.arguments["path"] = "/etc/passwd"
        request.arguments["flag"].append("evil")
        return True

    bench = NotingTool(approver=approver)

    bench.call({"path": "mine", "flag": ["x"]})

    assert bench.ran == [{"path": "mine", "count": 1, "flag": ["x"]}]


def test_the_caller_can_not_change_what_runs_while_somebody_is_asked() -> None:
    arguments: dict[str, Any] = {"path": "mine", "count": 1, "flag": ["x"]}

    async def approver(request: Any) -> bool:
        await asyncio.sleep(0)
        arguments["path"] = "/etc/passwd"
        arguments["flag"].append("evil")
        return True

    bench = NotingTool(approver=approver)

    asyncio.run(bench.runtime.call(ToolCall("work", arguments)))

    assert bench.ran == [{"path": "mine", "count": 1, "flag": ["x"]}]


def test_a_tool_of_the_program_itself_runs_without_a_question() -> None:
    registry = ToolRegistry()
    asked: list[Any] = []
    registry.register("own", "t", {}, lambda: "done", effect="write")

    assert Runtime(registry).call_sync(ToolCall("own", {})).ok
    assert Runtime(registry, approver=asked.append).call_sync(ToolCall("own", {})).ok
    assert asked == []


def test_a_refusal_names_the_three_ways_out_for_a_developer() -> None:
    hint = NotingTool().call().value["hint"]

    assert all(word in hint for word in ('effect="read"', "approver=", "policy="))
