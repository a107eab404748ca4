"""The calls of one turn: in order, side by side where they may, none lost."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

from hermes.core import ToolCall, ToolRegistry, tool
from hermes.runtime import Runtime

if TYPE_CHECKING:
    from pathlib import Path


class Gauge:
    """Counts who is inside at the same time, by key."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.order: list[str] = []

    def enter(self, *keys: str) -> None:
        with self.lock:
            for key in keys:
                self.inside[key] = self.inside.get(key, 0) + 1
                self.most[key] = max(self.most.get(key, 0), self.inside[key])

    def leave(self, *keys: str) -> None:
        with self.lock:
            for key in keys:
                self.inside[key] -= 1


class Tools:
    def __init__(self) -> None:
        self.registry = ToolRegistry()
        self.gauge = Gauge()
        gauge, registry = self.gauge, self.registry

        @tool(registry=registry, effect="read")
        async def look(n: int) -> int:
            """Look."""
            gauge.enter("any", "look")
            await asyncio.sleep(0.001)
            gauge.leave("any", "look")
            return n

        @tool(registry=registry, effect="read")
        def block(n: int) -> int:
            """Block."""
            gauge.enter("any")
            threading.Event().wait(0.001)
            gauge.leave("any")
            return n

        @tool(registry=registry, effect="execute")
        async def change(n: int) -> int:
            """Change something."""
            gauge.enter("any", "change")
            gauge.order.append(f"change {n}")
            await asyncio.sleep(0.001)
            gauge.leave("any", "change")
            return n

        @tool(registry=registry, effect="write", locks=["path"], reads_when={"action": ["read"]})
        async def edit(path: str, n: int, action: str = "write") -> int:
            """Edit a file."""
            key = f"{action} {os.path.basename(path)}"
            gauge.enter("edit", key, f"any {os.path.basename(path)}")
            gauge.order.append(f"{key} {n}")
            await asyncio.sleep(0.002)
            gauge.leave("edit", key, f"any {os.path.basename(path)}")
            return n

        @tool(registry=registry, effect="read")
        def fail(how: str = "bug") -> None:
            """Fail."""
            if how == "bug":
                raise ZeroDivisionError("x")
            if how == "exit":
                raise SystemExit(3)
            raise asyncio.CancelledError

        self.runtime = Runtime(registry, approver=lambda request: True)

    def run(self, *calls: tuple[str, dict[str, Any]], at_once: int = 16) -> list[Any]:
        asked = [ToolCall(name, args, id=f"id{n}") for n, (name, args) in enumerate(calls)]
        outcomes = self.runtime.call_many_sync(asked, at_once=at_once)
        assert [outcome.call_id for outcome in outcomes] == [call.id for call in asked]
        return outcomes


def test_ten_thousand_calls_come_back_in_their_order() -> None:
    tools = Tools()

    @tool(registry=tools.registry, effect="read")
    async def same(n: int) -> int:
        """Give it back."""
        if n % 7 == 0:
            await asyncio.sleep(0)
        return n

    outcomes = tools.run(*[("same", {"n": n}) for n in range(10_000)])

    assert [outcome.content for outcome in outcomes] == [str(n) for n in range(10_000)]


@pytest.mark.parametrize("name", ["look", "block"])
def test_no_more_run_at_once_than_was_allowed(name: str) -> None:
    tools = Tools()

    tools.run(*[(name, {"n": n}) for n in range(100)], at_once=5)

    assert tools.gauge.most["any"] == 5


def test_no_calls_give_no_outcomes() -> None:
    assert Tools().run() == []


def test_a_call_that_fails_loses_nobody_elses_result() -> None:
    tools = Tools()

    outcomes = tools.run(
        ("look", {"n": 1}),
        ("fail", {}),
        ("no_such_tool", {}),
        ("look", {"n": "not a number"}),
        ("fail", {"how": "exit"}),
        ("fail", {"how": "cancel"}),
        ("edit", {"path": "a\0b", "n": 5}),
        ("edit", {"path": "\ud800", "n": 6}),
        ("edit", {"path": "x" * 5000, "n": 7}),
        ("look", {"n": 2}),
    )

    assert [outcome.status for outcome in outcomes] == [
        "ok", "error", "error", "error", "error", "error", "ok", "ok", "ok", "ok",
    ]  # fmt: skip
    assert (outcomes[0].value, outcomes[-1].value) == (1, 2)


def test_arguments_that_are_no_object_lose_nobody_elses_result() -> None:
    tools = Tools()
    odd: list[Any] = ["{broken", "[]", 5, [1], None]
    calls = [ToolCall("change", arguments) for arguments in odd]

    outcomes = tools.runtime.call_many_sync([*calls, ToolCall("change", {"n": 1})])

    assert [outcome.status for outcome in outcomes] == ["error"] * 5 + ["ok"]


def test_calls_of_the_same_id_keep_their_own_results() -> None:
    tools = Tools()
    calls = [ToolCall("look", {"n": n}, id="same") for n in range(50)]

    outcomes = tools.runtime.call_many_sync(calls)

    assert [outcome.value for outcome in outcomes] == list(range(50))
    assert {outcome.call_id for outcome in outcomes} == {"same"}


def test_calls_that_change_things_run_alone_and_in_order() -> None:
    tools = Tools()

    tools.run(*[("change", {"n": n}) for n in range(20)], *[("look", {"n": n}) for n in range(20)])

    assert tools.gauge.most["change"] == 1
    assert tools.gauge.order == [f"change {n}" for n in range(20)]
    assert tools.gauge.most["look"] > 1


def test_one_path_is_changed_by_one_at_a_time_in_order(tmp_path: Path) -> None:
    tools = Tools()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    tools.runtime.task("main").workspace = str(tmp_path)
    spellings = ["a", "./a", str(tmp_path / "a"), "b/../a", str(tmp_path / "link")]

    tools.run(*[("edit", {"path": spellings[n % 5], "n": n}) for n in range(20)])

    assert tools.gauge.most["edit"] == 1
    assert [int(line.split()[-1]) for line in tools.gauge.order] == list(range(20))


def test_different_paths_are_changed_side_by_side(tmp_path: Path) -> None:
    tools = Tools()

    tools.run(*[("edit", {"path": str(tmp_path / f"f{n % 4}"), "n": n}) for n in range(20)])

    assert tools.gauge.most["edit"] > 1
    assert all(tools.gauge.most[f"write f{n}"] == 1 for n in range(4))


def test_readers_of_one_path_overlap_and_writers_wait_for_them(tmp_path: Path) -> None:
    tools = Tools()
    path = str(tmp_path / "f")
    read = {"path": path, "action": "read"}

    tools.run(
        *[("edit", {**read, "n": n}) for n in range(5)],
        ("edit", {"path": path, "n": 5}),
        *[("edit", {**read, "n": n}) for n in range(6, 10)],
    )

    assert tools.gauge.most["read f"] > 1
    assert tools.gauge.most["write f"] == 1
    order = tools.gauge.order
    assert order.index("write f 5") == 5


def test_what_may_change_anything_waits_for_what_changes_a_file(tmp_path: Path) -> None:
    tools = Tools()

    tools.run(
        ("edit", {"path": str(tmp_path / "f"), "n": 0}),
        ("change", {"n": 1}),
        ("edit", {"path": str(tmp_path / "f"), "n": 2}),
    )

    assert tools.gauge.order == ["write f 0", "change 1", "write f 2"]


def test_a_call_that_names_a_path_twice_does_not_wait_for_itself(tmp_path: Path) -> None:
    registry = ToolRegistry()

    @tool(registry=registry, effect="write", locks=["source", "target"])
    async def copy(source: str, target: list[str]) -> str:
        """Copy."""
        await asyncio.sleep(0)
        return "done"

    runtime = Runtime(registry, approver=lambda request: True)
    calls = [ToolCall("copy", {"source": "a", "target": ["a", "./a", "b"]}) for _ in range(3)]

    assert [outcome.value for outcome in runtime.call_many_sync(calls)] == ["done"] * 3


def test_a_cancelled_turn_ends_every_call_of_it() -> None:
    tools = Tools()
    ended: list[int] = []

    @tool(registry=tools.registry, effect="read")
    async def forever(n: int) -> None:
        """Wait."""
        try:
            await asyncio.sleep(20)
        finally:
            ended.append(n)

    async def scene() -> None:
        calls = [ToolCall("forever", {"n": n}) for n in range(8)]
        turn = asyncio.ensure_future(tools.runtime.call_many(calls, at_once=4))
        await asyncio.sleep(0.02)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn

    asyncio.run(scene())

    assert sorted(ended) == [0, 1, 2, 3]
    assert tools.runtime.running() == []


def test_turns_may_run_inside_a_running_loop_and_in_threads() -> None:
    tools = Tools()

    async def scene() -> list[Any]:
        return [outcome.value for outcome in tools.run(*[("look", {"n": n}) for n in range(20)])]

    assert asyncio.run(scene()) == list(range(20))
    seen: list[list[Any]] = []
    threads = [threading.Thread(target=lambda: seen.append(asyncio.run(scene()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [list(range(20))] * 4
