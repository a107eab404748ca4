"""The stages of a call come in their order; names and arguments are read first."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.runtime.recorder import NotingAudit, NotingTool, both_ways

from hermes.core import ToolCall, ToolRegistry, tool
from hermes.core.context import Services
from hermes.runtime import Runtime
from hermes.safety.policy import Policy, Ruling


class NotingRedactor:
    def __init__(self, seen: list[str]) -> None:
        self.seen = seen

    def redact(self, text: str) -> str:
        self.seen.append("redact")
        return text


def test_the_twelve_stages_come_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    audit: Any = NotingAudit(seen)
    redactor: Any = NotingRedactor(seen)

    class Asking(Policy):
        def judge(self, entry: Any, arguments: Any, context: Any) -> Ruling:
            assert arguments == {"count": 3}
            seen.append("permit")
            return Ruling("ask", reason="r", rule="x")

    registry = ToolRegistry()

    @tool(registry=registry, max_result_size_chars=10)
    def work(count: int) -> str:
        """Work."""
        seen.append("run")
        return "x" * 100

    def approver(request: Any) -> bool:
        seen.append("approve")
        return True

    runtime = Runtime(registry, policy=Asking(), approver=approver, audit=audit, redactor=redactor)
    entry = registry.get("work")
    assert entry is not None
    monkeypatch.setattr(
        "hermes.runtime.result_texts.fit",
        lambda content, limit, store, source: seen.append("fit") or ('"cut"', None),
    )
    runtime.before_resolve = lambda: seen.append("resolve")
    runtime.hooks.add("pre_tool_call", lambda call: seen.append("pre"))
    runtime.hooks.add("transform_tool_result", lambda call, value: seen.append("transform"))
    runtime.hooks.add("post_tool_call", lambda call, outcome: seen.append("post"))

    outcomes = both_ways(runtime, ToolCall("work", '{"count": "3"}'))

    stages = [
        "resolve", "permit", "approve", "record", "pre", "run", "transform", "redact", "fit",
        "record", "post",
    ]  # fmt: skip
    assert seen == stages * 2
    assert [outcome.content for outcome in outcomes] == ['"cut"', '"cut"']


def test_an_unknown_tool_is_answered_with_the_nearest_names() -> None:
    outcome = NotingTool().call(name="wrok")

    assert outcome.status == "error"
    assert "wrok" in outcome.value["error"]
    assert "work" in outcome.value["hint"]


@pytest.mark.parametrize("name", ["", "x" * 1_000_000, None, 5, "a\nb", "\ud800"])
def test_an_odd_name_is_answered_too(name: Any) -> None:
    outcome = NotingTool().call(name=name)

    assert outcome.status == "error"
    assert len(outcome.content) < 1000
    json.loads(outcome.content)


def test_an_alias_is_as_good_as_the_name() -> None:
    bench = NotingTool("read")
    bench.registry.register("other", "own", {}, lambda: "here", aliases=["else"], effect="read")

    assert bench.call(name="else").value == "here"


def test_what_is_not_offered_is_not_there_and_not_suggested() -> None:
    bench = NotingTool("read")
    bench.registry.register("word", "own", {}, lambda: "here", effect="read")

    class Offer:
        reachable = frozenset({"word"})

    context = bench.runtime.context(services=Services(offer=Offer()))

    outcome = bench.call(context=context)

    assert outcome.status == "error"
    assert bench.ran == []
    assert "work" not in outcome.value["hint"]
    assert "word" in outcome.value["hint"]


@pytest.mark.parametrize(
    "arguments", ['{"path": "a', '{"path": "a", "count": ', '{"path"', "{", '{"path": "a", "cou']
)
def test_truncated_arguments_never_run(arguments: str) -> None:
    bench = NotingTool("read")

    for outcome in both_ways(bench.runtime, ToolCall("work", arguments)):
        assert outcome.status == "error"
    assert bench.ran == []


def test_arguments_are_coerced_and_every_problem_is_named() -> None:
    bench = NotingTool("read")

    assert bench.call('{"count": "5"}').ok
    assert bench.ran == [{"path": "a", "count": 5, "flag": None}]

    outcome = bench.call({"count": "many", "path": []})
    assert outcome.status == "error"
    assert "count" in outcome.content
    assert "path" in outcome.content
    assert len(bench.ran) == 1


def test_a_broken_source_of_tools_is_reported_and_stops_nobody() -> None:
    bench = NotingTool("read")

    def broken() -> None:
        raise OSError("disk")

    bench.runtime.before_resolve = broken

    assert bench.call().ok
    assert len(bench.trouble) == 1
    assert "disk" in bench.trouble[0]
