"""Hooks: they may look, veto, rewrite and transform, and break nothing."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from tests.corpus import each

from hermes.core import RegistrationError, ToolCall, ToolRegistry, tool
from hermes.runtime import Hooks, Runtime

release = threading.Event()


class Bench:
    def __init__(self, limit: float = 5.0) -> None:
        registry = ToolRegistry()
        self.ran = 0
        self.trouble: list[str] = []

        @tool(registry=registry, effect="read")
        def work(text: str = "x") -> dict[str, str]:
            """Work."""
            self.ran += 1
            return {"text": text}

        self.runtime = Runtime(registry, hooks=Hooks(limit_seconds=limit))
        self.runtime.events.subscribe(
            lambda e: self.trouble.append(e.data["message"]) if e.kind == "trouble" else None
        )

    def both(self) -> list[Any]:
        call = ToolCall("work", {}, id="c1")
        return [self.runtime.call_sync(call), asyncio.run(self.runtime.call(call))]


def fails(*_: Any) -> None:
    raise ValueError("hook bug")


async def fails_later(*_: Any) -> None:
    await asyncio.sleep(0)
    raise ValueError("hook bug")


def hangs(*_: Any) -> None:
    release.wait(20)


async def hangs_awaiting(*_: Any) -> None:
    await asyncio.sleep(20)


async def swallows(*_: Any) -> None:
    while True:
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            continue


async def cancels_itself(*_: Any) -> None:
    raise asyncio.CancelledError


def leaves(*_: Any) -> None:
    raise SystemExit(3)


@each("name", ["pre_tool_call", "post_tool_call", "transform_tool_result"])
@each("hook", [fails, fails_later, hangs, hangs_awaiting, swallows, cancels_itself, leaves])
def test_a_hook_that_fails_or_hangs_is_reported_and_passed_over(name: str, hook: Any) -> None:
    bench = Bench(limit=0.05)
    release.clear()
    bench.runtime.hooks.add(name, hook)

    outcomes = bench.both()
    release.set()

    assert [outcome.value for outcome in outcomes] == [{"text": "x"}] * 2
    assert bench.ran == 2
    assert len(bench.trouble) == 2
    assert all(hook.__name__ in message for message in bench.trouble)


def test_what_a_hook_returns_by_mistake_means_nothing() -> None:
    bench = Bench()
    for odd in (True, False, "veto", {"text": "y"}, 0):
        bench.runtime.hooks.add("pre_tool_call", lambda call, odd=odd: odd)

    assert [outcome.value for outcome in bench.both()] == [{"text": "x"}] * 2
    assert bench.trouble == []


def test_transforms_follow_each_other_and_none_means_no_change() -> None:
    bench = Bench()

    async def later(call: Any, value: Any) -> Any:
        await asyncio.sleep(0)
        return {**value, "two": call.tool}

    bench.runtime.hooks.add("transform_tool_result", lambda call, value: {**value, "one": 1})
    bench.runtime.hooks.add("transform_tool_result", lambda call, value: None)
    bench.runtime.hooks.add("transform_tool_result", later)

    for outcome in bench.both():
        assert outcome.value == {"text": "x", "one": 1, "two": "work"}


def test_whatever_a_transform_gives_leaves_as_json() -> None:
    bench = Bench()
    bench.runtime.hooks.add("transform_tool_result", lambda call, value: {object, 5})

    for outcome in bench.both():
        assert outcome.ok
        assert isinstance(outcome.value, list)


def test_a_post_hook_only_looks() -> None:
    bench = Bench()
    seen: list[Any] = []

    def look(call: Any, outcome: Any) -> str:
        seen.append((call.tool, call.call_id, dict(call.arguments), outcome.status))
        outcome.content = "changed"
        call.arguments.clear()
        return "ignored"

    bench.runtime.hooks.add("post_tool_call", look)

    assert [outcome.value for outcome in bench.both()] == [{"text": "x"}] * 2
    assert seen == [("work", "c1", {"text": "x"}, "ok")] * 2


def test_a_lambda_that_gives_a_coroutine_is_awaited() -> None:
    bench = Bench()

    async def change(value: Any) -> Any:
        await asyncio.sleep(0)
        return {"text": "awaited"}

    bench.runtime.hooks.add("transform_tool_result", lambda call, value: change(value))

    assert [outcome.value for outcome in bench.both()] == [{"text": "awaited"}] * 2


def test_hooks_are_taken_away_one_by_one() -> None:
    hooks = Hooks()

    def hook(*_: Any) -> None:
        return None

    first = hooks.add("session_start", hook)
    hooks.add("session_start", hook)
    first()

    assert hooks.session_start == (hook,)


def test_an_unknown_hook_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RegistrationError) as caught:
        Hooks().add("pre_tool", fails)

    assert "pre_tool_call" in str(caught.value.hint)


def test_hooks_added_from_many_threads_are_all_there() -> None:
    hooks = Hooks()
    threads = [
        threading.Thread(target=lambda: [hooks.add("session_end", fails) for _ in range(50)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(hooks.session_end) == 400


def test_a_tool_has_one_name_for_hooks_whatever_it_is_called_by() -> None:
    bench = Bench()
    bench.runtime.registry.register("other", "own", {}, lambda: "here", aliases=["else"], effect="read")  # fmt: skip
    seen: list[str] = []
    bench.runtime.hooks.add("pre_tool_call", lambda call: seen.append(call.tool))

    outcome = bench.runtime.call_sync(ToolCall("else", {}))

    assert seen == ["other"]
    assert outcome.name == "other"
