"""Calls of one client that would disturb each other go one after the other."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.mcp.server.peers import ERAS, accept, app_with, client, run, soon

from hermes.core import ToolContext, ToolRegistry, tool
from hermes.runtime.app import App
from hermes.runtime.parallel import Turns

both_eras = pytest.mark.parametrize("mode", ERAS)


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def yes(context: Any, params: Any) -> Any:
    """A person who lets everything happen."""
    return accept(decision="once")


class Desk:
    """A tool that writes, whose work takes as long as the test wants."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.together: set[tuple[str, ...]] = set()
        self.go_on = threading.Event()
        self._inside: list[str] = []
        self._lock = threading.Lock()

    def app(self) -> App:
        return app_with(self._tools)

    def _tools(self, registry: ToolRegistry) -> None:
        @tool(
            registry=registry,
            toolset="trial",
            effect="write",
            concurrency="resource",
            locks=["path"],
        )
        def put(ctx: ToolContext, path: str, text: str) -> str:
            """Write slowly."""
            return self._work(ctx, text)

        @tool(
            registry=registry,
            toolset="trial",
            effect="read",
            concurrency="resource",
            locks=["path"],
        )
        def peek(ctx: ToolContext, path: str, text: str) -> str:
            """Read slowly."""
            return self._work(ctx, text)

    def _work(self, ctx: ToolContext, text: str) -> str:
        with self._lock:
            self.begun.append(text)
            self._inside.append(text)
            self.together.add(tuple(sorted(self._inside)))
        try:
            while not self.go_on.wait(0.01):
                ctx.check_cancelled()
        finally:
            with self._lock:
                self._inside.remove(text)
                self.ended.append(text)
        return text


@both_eras
def test_writes_to_one_path_wait_for_each_other_and_others_do_not(mode: str) -> None:
    desk = Desk()

    async def work() -> None:
        async with (
            client(desk.app(), mode, toolsets=["trial"], elicitation_callback=yes) as made,
            anyio.create_task_group() as group,
        ):
            for path, text in (("a", "1"), ("./x/../a", "2"), ("b", "3")):
                group.start_soon(made.call_tool, "put", {"path": path, "text": text})
            await soon(lambda: len(desk.begun) == 2, "two are at work")
            # Whoever had been let in as well would be inside by now.
            await anyio.sleep(0.1)
            early = list(desk.begun)
            desk.go_on.set()
        assert len(early) == 2
        assert "3" in early

    run(work)

    assert sorted(desk.ended) == ["1", "2", "3"]
    assert not any({"1", "2"} <= set(those) for those in desk.together)


@both_eras
def test_reading_one_path_is_done_side_by_side(mode: str) -> None:
    desk = Desk()

    async def work() -> None:
        async with (
            client(desk.app(), mode, toolsets=["trial"], elicitation_callback=yes) as made,
            anyio.create_task_group() as group,
        ):
            for text in "123":
                group.start_soon(made.call_tool, "peek", {"path": "a", "text": text})
            await soon(lambda: len(desk.begun) == 3, "all are at work")
            desk.go_on.set()

    run(work)

    assert ("1", "2", "3") in desk.together


@both_eras
def test_a_call_that_is_given_up_lets_the_next_one_go_on(mode: str) -> None:
    desk = Desk()
    scopes: dict[str, anyio.CancelScope] = {}

    async def call(made: Any, text: str) -> None:
        with anyio.CancelScope() as scopes[text]:
            await made.call_tool("put", {"path": "a", "text": text})

    async def work() -> None:
        async with (
            client(desk.app(), mode, toolsets=["trial"], elicitation_callback=yes) as made,
            anyio.create_task_group() as group,
        ):
            group.start_soon(call, made, "1")
            await soon(lambda: desk.begun, "the first is at work")
            group.start_soon(call, made, "2")
            group.start_soon(call, made, "3")
            await anyio.sleep(0.1)
            scopes["2"].cancel()
            await anyio.sleep(0.1)
            scopes["1"].cancel()
            await soon(lambda: len(desk.begun) == 2, "the next is at work")
            desk.go_on.set()

    run(work)

    assert desk.begun == ["1", "3"]


@both_eras
def test_a_person_who_takes_their_time_holds_up_nobody_else(mode: str, workspace: Path) -> None:
    waiting: list[anyio.Event] = []

    async def person(context: Any, params: Any) -> Any:
        event = anyio.Event()
        waiting.append(event)
        await event.wait()
        return accept(decision="once")

    async def work() -> None:
        async with (
            client(app_with(), mode, elicitation_callback=person, toolsets=["terminal"]) as made,
            anyio.create_task_group() as group,
        ):
            group.start_soon(made.call_tool, "terminal", {"command": "rm -rf build"})
            await soon(lambda: waiting, "the person is asked")
            # `terminal` runs alone, and does not run yet.
            await made.call_tool("terminal", {"command": "echo hi > said"})
            waiting[0].set()

    run(work)

    assert (workspace / "said").read_text() == "hi\n"
    assert not (workspace / "build").exists()


def test_nothing_is_kept_of_what_nobody_uses() -> None:
    async def work() -> None:
        turns = Turns()
        first = turns.take([("*", True), ("a", False)])
        second = turns.take([("*", True), ("a", False)])
        third = turns.take([("a", True), ("b", True)])
        await first.come()
        for turn in (second, first, third):
            turn.end()
            turn.end()
        assert len(turns) == 0

    run(work)
