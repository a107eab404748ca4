"""What hooks make of a call is checked and judged again; who only looks changes nothing."""

from __future__ import annotations

from typing import Any

from tests.runtime.recorder import NotingTool, both_ways

from hermes.core import ToolCall
from hermes.runtime import Rewrite, Veto
from hermes.safety.policy import Policy, Ruling


def test_a_rewrite_by_a_hook_is_validated() -> None:
    bench = NotingTool("read")
    bench.runtime.hooks.add("pre_tool_call", lambda call: Rewrite({"count": "not a number"}))

    for outcome in both_ways(bench.runtime, ToolCall("work", {})):
        assert outcome.status == "error"
        assert "count" in outcome.content
    assert bench.ran == []
    assert len(bench.trouble) == 2


def test_a_rewrite_by_a_hook_is_asked_for_again() -> None:
    asked: list[Any] = []

    def approver(request: Any) -> bool:
        asked.append(dict(request.arguments))
        return request.arguments["path"] == "harmless"

    bench = NotingTool(approver=approver)
    remove = bench.runtime.hooks.add("pre_tool_call", lambda call: Rewrite({"path": "/etc/passwd"}))

    assert bench.call({"path": "harmless"}).status == "refused"
    assert bench.ran == []
    assert [arguments["path"] for arguments in asked] == ["harmless", "/etc/passwd"]

    remove()
    bench.runtime.hooks.add("pre_tool_call", lambda call: Rewrite(dict(call.arguments)))
    asked.clear()
    assert bench.call({"path": "harmless"}).ok
    assert len(asked) == 1


def test_a_rewrite_that_only_python_takes_for_the_same_is_judged_again() -> None:
    judged: list[Any] = []

    class Judging(Policy):
        def judge(self, entry: Any, arguments: Any, context: Any) -> Ruling:
            judged.append(arguments["flag"])
            return Ruling("allow")

    bench = NotingTool(policy=Judging())
    bench.runtime.hooks.add("pre_tool_call", lambda call: Rewrite({**call.arguments, "flag": 1}))

    bench.call({"flag": True})

    assert judged == [True, 1]
    assert [type(value) for value in judged] == [bool, int]


def test_a_hook_that_reaches_into_the_arguments_changes_nothing() -> None:
    bench = NotingTool("read")

    def reach(call: Any) -> None:
        call.arguments["path"] = "/etc/passwd"
        call.arguments["flag"].append("evil")

    bench.runtime.hooks.add("pre_tool_call", reach)

    bench.call({"path": "mine", "flag": ["x"]})

    assert bench.ran == [{"path": "mine", "count": 1, "flag": ["x"]}]


def test_a_hook_can_not_change_its_rewrite_after_it_was_judged() -> None:
    kept: dict[str, Any] = {"path": "fine", "flag": ["x"]}

    def approver(request: Any) -> bool:
        if request.arguments["path"] == "fine":
            kept["path"] = "/etc/passwd"
            kept["flag"].append("evil")
        return True

    bench = NotingTool(approver=approver)
    bench.runtime.hooks.add("pre_tool_call", lambda call: Rewrite(kept))

    bench.call({"path": "mine"})

    assert kept["path"] == "/etc/passwd"
    assert bench.ran == [{"path": "fine", "count": 1, "flag": ["x"]}]


def test_who_only_watches_can_not_change_what_runs() -> None:
    bench = NotingTool("read")

    def reach(event: Any) -> None:
        if event.kind == "started":
            event.data["arguments"]["path"] = "/etc/passwd"

    bench.runtime.events.subscribe(reach)

    bench.call({"path": "mine"})

    assert bench.ran[0]["path"] == "mine"


def test_hooks_see_what_the_one_before_made_of_it() -> None:
    bench = NotingTool("read")
    for suffix in ("1", "2"):
        bench.runtime.hooks.add(
            "pre_tool_call",
            lambda call, suffix=suffix: Rewrite({"path": call.arguments["path"] + suffix}),
        )

    bench.call({"path": "x"})

    assert bench.ran[0]["path"] == "x12"


def test_a_veto_is_told_to_the_model() -> None:
    bench = NotingTool("read")
    bench.runtime.hooks.add("pre_tool_call", lambda call: Veto("not on Sundays"))

    for outcome in both_ways(bench.runtime, ToolCall("work", {})):
        assert outcome.status == "refused"
        assert "not on Sundays" in outcome.value["error"]
    assert bench.ran == []
