"""What a call borrows from its client: the model, the folders; and several questions at once."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent
from tests.mcp.server.peers import ERAS, Person, app_with, client, run

from hermes.core import ToolContext, ToolError, ToolRegistry, tool
from hermes.core.errors import HermesError
from hermes.runtime import waits

both_eras = pytest.mark.parametrize("mode", ERAS)
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}


def add(registry: ToolRegistry) -> None:
    @tool(registry=registry, toolset="t", effect="read")
    async def think(ctx: ToolContext, about: str) -> dict[str, Any]:
        """Ask the model."""
        said = [{"role": "user", "text": about}, {"role": "assistant", "text": "go on"}]
        text, model, used = await ctx.service("sample")(said, system="Be brief", max_tokens=50)
        return {"text": text, "model": model, "used": used}

    @tool(registry=registry, toolset="t", effect="read")
    def think_in_a_thread(ctx: ToolContext) -> str:
        """Ask the model from code that can't await."""
        asked = ctx.service("sample")([{"role": "user", "text": "x"}], max_tokens=5)
        text: str = waits.run(asked)[0]
        return text

    @tool(registry=registry, toolset="t", effect="read")
    async def folders(ctx: ToolContext) -> list[str]:
        """Name the folders."""
        return [root["uri"] for root in await ctx.service("client_roots")()]

    @tool(registry=registry, toolset="t", effect="read")
    async def everything(ctx: ToolContext) -> list[Any]:
        """Ask for all of it, and for two forms of one name."""
        form = ctx.service("show_form")
        said = await asyncio.gather(
            form("First?", SCHEMA, "who"),
            form("Second?", SCHEMA, "who"),
            ctx.service("sample")([{"role": "user", "text": "x"}], max_tokens=5),
            ctx.service("client_roots")(),
        )
        return list(said)


class Model:
    """What the client asks for us."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def __call__(self, context: Any, params: Any) -> CreateMessageResult:
        self.asked.append(params)
        return CreateMessageResult(
            role="assistant", content=TextContent(text="a thought"), model="theirs"
        )


async def roots(context: Any) -> ListRootsResult:
    return ListRootsResult(roots=[Root(uri="file:///work", name="work")])  # type: ignore[arg-type]


@both_eras
def test_a_tool_may_ask_the_clients_model(mode: str) -> None:
    async def work() -> None:
        model, app = Model(), app_with(add)
        async with client(app, mode, toolsets=["t"], sampling_callback=model) as c:
            result = await c.call_tool("think", {"about": "life"})
            other = await c.call_tool("think_in_a_thread", {})
        app.close()

        assert result.structured_content["text"] == "a thought"
        assert result.structured_content["model"] == "theirs"
        assert result.structured_content["used"] > 0
        first, second = model.asked
        assert (first.system_prompt, first.max_tokens) == ("Be brief", 50)
        assert [message.role for message in first.messages] == ["user", "assistant"]
        assert second.max_tokens == 5
        assert other.content[0].text == "a thought"

    run(work)


@both_eras
def test_a_tool_may_ask_for_the_clients_folders(mode: str) -> None:
    async def work() -> None:
        app = app_with(add)
        async with client(app, mode, toolsets=["t"], list_roots_callback=roots) as c:
            result = await c.call_tool("folders", {})
        app.close()

        assert "file:///work" in result.content[0].text

    run(work)


@both_eras
def test_what_a_client_does_not_offer_is_not_asked_of_it(mode: str) -> None:
    async def work() -> None:
        app = app_with(add)
        async with client(app, mode, toolsets=["t"]) as c:
            if mode == "legacy":
                result = await c.call_tool("think", {"about": "life"})
                assert result.is_error
                assert "offers no sampling" in result.content[0].text
            else:
                with pytest.raises(MCPError) as caught:
                    await c.call_tool("think", {"about": "life"})
                assert caught.value.error.code == -32021
                assert caught.value.error.data == {"requiredCapabilities": {"sampling": {}}}
        app.close()

    run(work)


@both_eras
def test_several_questions_are_open_at_once_and_none_is_taken_for_another(mode: str) -> None:
    async def work() -> None:
        person, app = Person({"name": "one"}, {"name": "two"}), app_with(add)
        options = {"elicitation_callback": person, "sampling_callback": Model()}
        async with client(app, mode, toolsets=["t"], list_roots_callback=roots, **options) as c:
            result = await c.call_tool("everything", {})
        app.close()

        assert not result.is_error, result
        told = result.content[0].text
        assert [asked.message for asked in person.asked] == ["First?", "Second?"]
        assert told.index("one") < told.index("two") < told.index("a thought")
        assert "file:///work" in told

    run(work)


@both_eras
def test_a_tool_that_goes_on_without_the_client_fails_in_its_own_words(mode: str) -> None:
    def summarising(registry: ToolRegistry) -> None:
        @tool(registry=registry, toolset="t", effect="read")
        async def summarise(ctx: ToolContext) -> str:
            """Summarise, with the client's model if it has one."""
            with contextlib.suppress(HermesError):
                await ctx.service("sample")([{"role": "user", "text": "x"}], max_tokens=5)
            raise ToolError("the disk is full")

    async def work() -> str:
        app = app_with(summarising)
        async with client(app, mode, toolsets=["t"]) as peer:
            answer = await peer.call_tool("summarise", {})
        app.close()
        return str(answer.content[0].text)  # type: ignore[union-attr]

    assert "the disk is full" in run(work)


def test_questions_that_end_together_leave_room_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    (tmp_path / "config.yaml").write_text("tools:\n  parallel: 1\n")
    form = {"type": "object", "properties": {"name": {"type": "string"}}}

    def asking(registry: ToolRegistry) -> None:
        @tool(registry=registry, toolset="t", effect="read")
        async def ask_twice(ctx: ToolContext) -> list[Any]:
            """Ask something, and something else while the first answer comes."""
            show = ctx.service("show_form")

            async def later() -> Any:
                await asyncio.sleep(0.15)
                return await show("Second?", form, "b")

            return list(await asyncio.gather(show("First?", form, "a"), later()))

        @tool(registry=registry, toolset="t", effect="read")
        async def nap() -> str:
            """Sleep."""
            await asyncio.sleep(0.5)
            return "slept"

    async def person(context: Any, params: Any) -> ElicitResult:
        await asyncio.sleep(0.1)
        return ElicitResult(action="accept", content={"name": "x"})

    async def work() -> None:
        app = app_with(asking)
        async with client(app, "legacy", toolsets=["t"], elicitation_callback=person) as peer:
            first = asyncio.ensure_future(peer.call_tool("ask_twice", {}))
            await asyncio.sleep(0.05)
            await asyncio.gather(first, peer.call_tool("nap", {}))
            await peer.call_tool("nap", {})
        app.close()

    run(work)
