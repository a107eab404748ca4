"""Few tools listed, all within reach; and a list that changes while a client looks on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types import ToolListChangedNotification
from tests.mcp.server.peers import ERAS, app_with, client, run

from hermes.core import ToolRegistry
from hermes.core.config import set_value
from hermes.core.errors import HermesError
from hermes.mcp.server import sessions
from hermes.mcp.server.handlers import AppServer

both_eras = pytest.mark.parametrize("mode", ERAS)
NOTHING = {"type": "object", "properties": {}}


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


async def _names(c: Any) -> list[str]:
    return [tool.name for tool in (await c.list_tools()).tools]


class Ear:
    """Hears that the list of tools changed, in the way of each era."""

    def __init__(self) -> None:
        self.heard = anyio.Event()

    async def message(self, message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            self.heard.set()

    async def listen(self, c: Any, started: anyio.Event) -> None:
        async with c.listen(tools_list_changed=True) as subscription:
            started.set()
            async for _ in subscription:
                self.heard.set()


@both_eras
def test_a_search_adds_what_it_found_to_the_list_and_says_so(mode: str) -> None:
    async def work() -> None:
        ear = Ear()
        async with client(app_with(), mode, message_handler=ear.message) as c:
            async with anyio.create_task_group() as group:
                if mode == "auto":
                    started = anyio.Event()
                    group.start_soon(ear.listen, c, started)
                    await started.wait()
                first = await _names(c)
                assert "tool_search" in first
                assert "file_diff" not in first

                await c.call_tool("tool_search", {"query": "compare two files"})

                with anyio.fail_after(10):
                    await ear.heard.wait()
                then = await _names(c)
                assert then[: len(first)] == first
                assert "file_diff" in then
                group.cancel_scope.cancel()

    run(work)


@both_eras
def test_what_one_client_found_another_does_not_see(mode: str) -> None:
    async def work() -> None:
        app = app_with()
        async with client(app, mode) as one, client(app, mode) as other:
            await one.call_tool("tool_search", {"query": "select:file_diff"})

            assert "file_diff" in await _names(one)
            assert "file_diff" not in await _names(other)

    run(work)


def test_a_tool_that_is_not_listed_can_be_called_all_the_same() -> None:
    async def work() -> None:
        async with client(app_with()) as c:
            result = await c.call_tool("sleep", {"seconds": 0})

            assert not result.is_error

    run(work)


def test_every_tool_is_listed_where_that_is_asked_for_or_set() -> None:
    async def work() -> None:
        async with client(app_with(), defer=False) as c:
            valid_unicode = await _names(c)
        set_value("tools.defer_above", "500")
        async with client(app_with()) as c:
            assert await _names(c) == valid_unicode

        assert "sleep" in valid_unicode
        assert "tool_search" not in valid_unicode
        assert "delegate_task" not in valid_unicode

    run(work)


def test_the_settings_choose_toolsets_where_nobody_else_does() -> None:
    async def work() -> None:
        set_value("tools.enabled_toolsets", "discovery")
        async with client(app_with()) as c:
            assert await _names(c) == ["read_artifact"]
        async with client(app_with(), toolsets=["file"], defer=False) as c:
            assert "read_file" in await _names(c)

    run(work)


def test_an_unknown_toolset_is_said_before_anybody_is_served() -> None:
    with pytest.raises(HermesError, match="flie"):
        AppServer(app_with(), toolsets=["flie"])


@both_eras
def test_a_tool_that_comes_or_goes_is_noticed(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_LOOK_SECONDS", 0.05)

    async def work() -> None:
        ear = Ear()
        registry = ToolRegistry()
        from hermes.runtime.app import App

        app = App(registry)
        async with client(app, mode, defer=False, message_handler=ear.message) as c:
            async with anyio.create_task_group() as group:
                if mode == "auto":
                    started = anyio.Event()
                    group.start_soon(ear.listen, c, started)
                    await started.wait()
                assert "late" not in await _names(c)

                registry.register("late", "late", NOTHING, lambda: "here", effect="read")

                with anyio.fail_after(10):
                    await ear.heard.wait()
                assert "late" in await _names(c)
                assert (await c.call_tool("late")).content[0].text == "here"

                registry.deregister("late")

                assert "late" not in await _names(c)
                group.cancel_scope.cancel()

    run(work)


@both_eras
def test_one_odd_tool_costs_nobody_the_others(mode: str) -> None:
    def odd(registry: ToolRegistry) -> None:
        for name, more in {
            "true": {"properties": {"x": True}},
            "halved": {"properties": {"k\ud800": {"description": "\udfff"}}},
            "unlike": {"$schema": 7},
            "numbered": {"required": [1]},
            "endless": {"properties": {"x": {"default": float("inf")}}},
        }.items():
            schema = {"type": "object", "description": "\ud800", "properties": {}, **more}
            registry.register(name, "odd", schema, lambda **_: "ok", effect="read")
        registry.register("plain", "odd", NOTHING, lambda: "ok", effect="read")

    async def work() -> None:
        async with client(app_with(odd), mode, toolsets=["odd"]) as c:
            assert {"plain", "true", "halved", "endless"} <= set(await _names(c))

    run(work)
