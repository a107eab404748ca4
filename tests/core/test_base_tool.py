"""`BaseTool`: set up once, taken down at the end, whatever happens in between."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, ClassVar

import pytest

from hermes.core import BaseTool, RegistrationError, ToolCall, ToolContext, ToolRegistry, tool
from hermes.runtime import Runtime


class Noting(BaseTool):
    """Notes what happens to it."""

    name = "noting"
    effect = "read"

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.failures = 0
        self.slow: threading.Event | None = None

    def setup(self) -> None:
        self.seen.append("setup")
        if self.slow is not None:
            assert self.slow.wait(10)
        if self.failures:
            self.failures -= 1
            raise OSError("not yet")

    def run(self, params: dict[str, Any], context: ToolContext) -> Any:
        self.seen.append("run")
        return {"task": context.task_id}

    def teardown(self) -> None:
        self.seen.append("teardown")


class AsyncNoting(Noting):
    name = "noting"

    async def setup(self) -> None:
        self.seen.append("setup")
        # In a thread, as a client that opens files would.
        await asyncio.to_thread(lambda: None)
        await asyncio.sleep(0.01)
        self.loop = asyncio.get_running_loop()
        if self.failures:
            self.failures -= 1
            raise OSError("not yet")

    async def run(self, params: dict[str, Any], context: ToolContext) -> Any:
        self.seen.append("run")
        return {"task": context.task_id}

    async def teardown(self) -> None:
        await asyncio.sleep(0)
        self.seen.append("teardown")


def made(cls: type[Noting]) -> tuple[Runtime, Any]:
    registry = ToolRegistry()
    tool(registry=registry)(cls)
    entry = registry.get("noting")
    assert entry is not None
    lifecycle: Any = entry.lifecycle
    return Runtime(registry), lifecycle.instance


@pytest.mark.parametrize("cls", [Noting, AsyncNoting])
def test_nothing_is_set_up_before_the_first_call_nor_taken_down(cls: type[Noting]) -> None:
    runtime, instance = made(cls)

    runtime.close()

    assert instance.seen == []


@pytest.mark.parametrize("cls", [Noting, AsyncNoting])
def test_it_is_set_up_once_and_taken_down_once(cls: type[Noting]) -> None:
    runtime, instance = made(cls)

    with runtime:
        assert runtime.dispatch("noting", {}) == '{"task":"main"}'
        runtime.dispatch("noting", {})
    runtime.close()

    assert instance.seen == ["setup", "run", "run", "teardown"]


def test_twenty_first_calls_from_threads_set_up_once() -> None:
    runtime, instance = made(Noting)
    instance.slow = threading.Event()
    contents: list[str] = []
    threads = [
        threading.Thread(target=lambda: contents.append(runtime.dispatch("noting", {})))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()

    instance.slow.set()
    for thread in threads:
        thread.join()

    assert instance.seen == ["setup"] + ["run"] * 20
    assert contents == ['{"task":"main"}'] * 20


def test_twenty_first_calls_in_one_loop_set_up_once() -> None:
    runtime, instance = made(AsyncNoting)

    async def all_at_once() -> list[str]:
        calls = [runtime.call(ToolCall("noting", {})) for _ in range(20)]
        return [outcome.status for outcome in await asyncio.gather(*calls)]

    assert asyncio.run(all_at_once()) == ["ok"] * 20
    assert instance.seen == ["setup"] + ["run"] * 20


def test_twenty_first_calls_from_loops_in_threads_set_up_once() -> None:
    runtime, instance = made(AsyncNoting)
    contents: list[str] = []
    threads = [
        threading.Thread(target=lambda: contents.append(runtime.dispatch("noting", {})))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert instance.seen.count("setup") == 1
    assert contents == ['{"task":"main"}'] * 20


@pytest.mark.parametrize("cls", [Noting, AsyncNoting])
def test_a_failing_setup_is_tried_again_by_the_next_call(cls: type[Noting]) -> None:
    runtime, instance = made(cls)
    instance.failures = 2

    statuses = [runtime.call_sync(ToolCall("noting", {})).status for _ in range(4)]
    runtime.close()

    assert statuses == ["error", "error", "ok", "ok"]
    assert instance.seen == ["setup", "setup", "setup", "run", "run", "teardown"]


def test_those_who_waited_for_a_setup_that_failed_try_themselves() -> None:
    runtime, instance = made(AsyncNoting)
    instance.failures = 1

    async def all_at_once() -> list[str]:
        calls = [runtime.call(ToolCall("noting", {})) for _ in range(5)]
        return sorted([outcome.status for outcome in await asyncio.gather(*calls)])

    assert asyncio.run(all_at_once()) == ["error", "ok", "ok", "ok", "ok"]
    assert instance.seen.count("setup") == 2


def test_a_cancelled_first_call_does_not_lock_the_others_out() -> None:
    runtime, instance = made(AsyncNoting)

    async def scene() -> str:
        first = asyncio.ensure_future(runtime.call(ToolCall("noting", {})))
        second = asyncio.ensure_future(runtime.call(ToolCall("noting", {})))
        third = asyncio.ensure_future(runtime.call(ToolCall("noting", {})))
        await asyncio.sleep(0)
        first.cancel()
        second.cancel()
        await asyncio.wait([first, second])
        return (await third).status

    assert asyncio.run(scene()) == "ok"
    assert instance.seen.count("setup") == 2


@pytest.mark.parametrize("cls", [Noting, AsyncNoting])
def test_teardown_comes_even_after_errors(cls: type[Noting]) -> None:
    runtime, instance = made(cls)
    instance.failures = 1
    trouble: list[str] = []
    runtime.events.subscribe(lambda e: trouble.append(e.data["message"]))

    runtime.dispatch("noting", {})
    runtime.close()

    assert instance.seen == ["setup", "teardown"]


def test_a_failing_teardown_is_reported_and_keeps_no_other_from_its_own() -> None:
    registry = ToolRegistry()
    seen: list[str] = []

    class Bad(Noting):
        name = "a_bad"

        def teardown(self) -> None:
            raise OSError("stuck")

    class Good(Noting):
        name = "b_good"

        def teardown(self) -> None:
            seen.append("b_good")

    for cls in (Bad, Good):
        tool(registry=registry)(cls)
    runtime = Runtime(registry)
    trouble: list[Any] = []
    runtime.dispatch("a_bad", {})
    runtime.dispatch("b_good", {})
    runtime.events.subscribe(trouble.append)

    runtime.close()

    assert seen == ["b_good"]
    assert [(e.kind, "a_bad" in e.data["message"]) for e in trouble] == [("trouble", True)]


@pytest.mark.parametrize("leave", ["replace", "deregister"])
def test_a_tool_that_was_replaced_while_in_use_is_taken_down_too(leave: str) -> None:
    runtime, instance = made(Noting)
    runtime.dispatch("noting", {})

    if leave == "replace":
        tool(registry=runtime.registry)(Noting)
    else:
        runtime.registry.deregister("noting")
    runtime.close()

    assert instance.seen == ["setup", "run", "teardown"]


def test_async_teardown_runs_where_setup_ran() -> None:
    runtime, instance = made(AsyncNoting)
    loops = []

    async def teardown() -> None:
        loops.append(asyncio.get_running_loop())

    instance.teardown = teardown
    runtime.dispatch("noting", {})
    runtime.close()

    assert loops == [instance.loop]


def test_a_runtime_can_be_closed_inside_a_loop() -> None:
    runtime, instance = made(AsyncNoting)

    async def scene() -> None:
        await runtime.call(ToolCall("noting", {}))
        runtime.close()

    asyncio.run(scene())

    assert instance.seen == ["setup", "run", "teardown"]


def test_a_run_that_blocks_does_not_stop_the_loop_because_setup_awaits() -> None:
    registry = ToolRegistry()
    reached = threading.Event()

    @tool(registry=registry)
    class Mixed(BaseTool):
        name = "mixed"
        effect = "read"

        async def setup(self) -> None:
            await asyncio.sleep(0)

        def run(self, params: dict[str, Any], context: ToolContext) -> bool:
            return reached.wait(10)

    async def scene() -> Any:
        call = asyncio.ensure_future(Runtime(registry).call(ToolCall("mixed", {})))
        await asyncio.sleep(0.01)
        reached.set()
        return (await call).value

    assert asyncio.run(scene()) is True


def test_the_class_says_what_the_tool_is() -> None:
    registry = ToolRegistry()

    @tool(registry=registry, aliases=["search_notes"])
    class NoteSearch(BaseTool):
        """Search the notes."""

        toolset = "notes"
        parameters = {  # noqa: RUF012
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        }
        tags = ("find",)
        timeout_seconds = 3

        def run(self, params: dict[str, Any], context: ToolContext) -> Any:
            return params["query"]

    entry = registry.get("search_notes")
    assert entry is not None
    assert (entry.name, entry.toolset, entry.description) == (
        "NoteSearch",
        "notes",
        "Search the notes.",
    )
    assert (entry.tags, entry.timeout_seconds, entry.effect) == (("find",), 3, "execute")
    assert entry.parameters["required"] == ["query"]


def test_parameters_that_are_no_schema_are_refused() -> None:
    with pytest.raises(RegistrationError, match="JSON Schema"):

        @tool(registry=ToolRegistry())
        class Odd(BaseTool):
            parameters = ["query"]  # noqa: RUF012


def test_a_tool_without_run_says_so_when_called() -> None:
    registry = ToolRegistry()

    @tool(registry=registry)
    class Empty(BaseTool):
        effect = "read"

    assert "has no run()" in Runtime(registry).dispatch("Empty", {})


def test_a_class_or_an_instance_is_registered_by_itself() -> None:
    registry = ToolRegistry()

    class Greet(BaseTool):
        """Greet somebody."""

        effect = "read"
        parameters: ClassVar[Any] = {"type": "object", "properties": {"who": {"type": "string"}}}

        def __init__(self, name: str = "greet") -> None:
            self.name = name  # type: ignore[misc]

        def run(self, params: dict[str, Any], context: ToolContext) -> Any:
            return f"hello {params['who']}"

    registry.register(Greet)
    registry.register(Greet("welcome"), toolset="other")

    assert registry.names() == ["greet", "welcome"]
    assert registry.toolsets() == {"custom": ["greet"], "other": ["welcome"]}
    for name in registry.names():
        assert Runtime(registry).call_sync(ToolCall(name, {"who": "you"})).value == "hello you"
    with pytest.raises(RegistrationError, match="not a BaseTool"):
        registry.register(int)  # type: ignore[arg-type]
    with pytest.raises(RegistrationError, match="no schema"):
        registry.register("bare")
