"""`@tool`: a function or a class becomes a tool and stays what it was."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import pytest

from hermes.core import BaseTool, RegistrationError, ToolContext, ToolRegistry, tool
from hermes.core.registry import owned_by
from hermes.runtime import Runtime


def test_a_function_is_registered_and_can_still_be_called() -> None:
    registry = ToolRegistry()

    @tool(toolset="math", registry=registry, effect="read", tags=["sum"], timeout_seconds=5)
    def add_up(first: int, second: int = 2) -> int:
        """Add two numbers.

        Args:
            first: The one.
            second: The other.
        """
        return first + second

    entry = registry.get("add_up")
    assert entry is not None
    assert add_up(1) == 3
    assert (entry.toolset, entry.effect, entry.tags) == ("math", "read", ("sum",))
    assert entry.timeout_seconds == 5
    assert entry.description == "Add two numbers."
    assert entry.parameters["required"] == ["first"]
    assert Runtime(registry).dispatch("add_up", {"first": "40"}) == "42"


def test_an_async_function_is_known_to_be_one() -> None:
    registry = ToolRegistry()

    @tool("later", registry=registry, effect="read", description="Wait.")
    async def wait_a_bit() -> str:
        await asyncio.sleep(0)
        return "done"

    entry = registry.get("later")
    assert entry is not None
    assert entry.is_async
    assert entry.description == "Wait."
    assert Runtime(registry).dispatch("later", {}) == '"done"'


def test_the_context_is_given_and_stays_out_of_the_schema() -> None:
    registry = ToolRegistry()

    @tool(registry=registry, effect="read")
    def who(ctx: ToolContext, loud: bool = False) -> str:
        """Say which task this is."""
        return ctx.task_id.upper() if loud else ctx.task_id

    entry = registry.get("who")
    assert entry is not None
    assert list(entry.parameters["properties"]) == ["loud"]
    runtime = Runtime(registry)
    assert runtime.dispatch("who", {"loud": True}, runtime.context("t1")) == '"T1"'


def test_it_works_without_parentheses_and_as_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = ToolRegistry()
    monkeypatch.setattr("hermes.core.tool_definition.shared", registry)

    @tool
    def bare() -> str:
        """Nothing else said."""
        return "x"

    def later() -> str:
        """Registered by a call."""
        return "y"

    more: Any = tool
    more(later, toolset="mine", effect="read")

    assert registry.names() == ["bare", "later"]
    entry = registry.get("later")
    assert entry is not None
    assert (entry.toolset, entry.effect) == ("mine", "read")


def test_a_decorator_used_twice_mixes_nothing_up() -> None:
    registry = ToolRegistry()
    mark = tool(toolset="family", registry=registry)

    @mark
    class Reader(BaseTool):
        name = "reader"
        effect = "read"

    with owned_by("plugin", "acme"):

        @mark
        class Writer(BaseTool):
            name = "writer"
            effect = "write"

    found = {entry.name: entry for entry in registry.entries()}
    assert found["reader"].effect == "read"
    assert found["writer"].effect == "write"
    assert (found["reader"].origin, found["writer"].origin) == ("custom", "plugin")


def test_what_is_defined_while_a_plugin_loads_is_the_plugins() -> None:
    registry = ToolRegistry()

    with owned_by("plugin", "acme"):

        @tool(registry=registry)
        def its_tool() -> None:
            """Do something."""

    @tool(registry=registry)
    def my_tool() -> None:
        """Do something."""

    owners = {entry.name: (entry.origin, entry.owner) for entry in registry.entries()}
    assert owners == {"its_tool": ("plugin", "acme"), "my_tool": ("custom", "")}


def test_a_class_that_is_no_tool_is_refused() -> None:
    with pytest.raises(RegistrationError, match="BaseTool"):

        @tool(registry=ToolRegistry())
        class Other:
            pass


def test_a_wrapped_async_function_still_gives_its_result() -> None:
    registry = ToolRegistry()

    async def inner(text: str) -> str:
        await asyncio.sleep(0)
        return text

    @functools.wraps(inner)
    def outer(text: str) -> Any:
        return inner(text)

    outer.__wrapped__ = None  # type: ignore[attr-defined]
    registry.register(
        "t", "own", {"properties": {"text": {"type": "string"}}}, outer, effect="read"
    )
    runtime = Runtime(registry)

    async def inside() -> str:
        from hermes.core import ToolCall

        return (await runtime.call(ToolCall("t", {"text": "b"}))).content

    assert runtime.dispatch("t", {"text": "a"}) == '"a"'
    assert asyncio.run(inside()) == '"b"'
