"""Prompts, resources and log messages: what there is besides tools."""

from __future__ import annotations

import time
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference
from tests.mcp.server.peers import ERAS, Person, app_with, client, run, soon

from hermes.core import ToolContext, ToolRegistry, tool
from hermes.mcp.server import sessions

both_eras = pytest.mark.parametrize("mode", ERAS)
PIXEL = "iVBORw0KGgo="
TOOLSETS = ["t", "prompts", "resources"]


def add(registry: ToolRegistry) -> None:
    @tool(registry=registry, toolset="prompts", effect="read")
    def review(language: str, tone: str = "kind") -> str:
        """Have code reviewed.

        Args:
            language: What it is written in.
        """
        return f"Review this {language}, and be {tone}."

    @tool(registry=registry, toolset="prompts", effect="read")
    def ask_first(ctx: ToolContext) -> str:
        """Ask something first."""
        schema = {"type": "object", "properties": {"said": {"type": "string"}}}
        return f"They said {ctx.service('show_form')('What?', schema)['said']}."

    @tool(registry=registry, toolset="prompts", effect="read")
    def picture() -> list[dict[str, Any]]:
        """Show a picture."""
        image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
        return [image, {"type": "text", "text": "What is this?"}]

    @tool(registry=registry, toolset="resources", effect="read")
    def notes(day: str) -> str:
        """What was noted on a day."""
        return f"noted on {day}"

    @tool(registry=registry, toolset="resources", effect="read")
    def logo() -> dict[str, Any]:
        """The logo."""
        return {"type": "image", "data": PIXEL, "mimeType": "image/png"}

    @tool(registry=registry, toolset="resources", effect="write")
    def wipe() -> str:
        """Do no reading at all."""
        return "wiped"

    @tool(registry=registry, toolset="t", effect="read")
    def talk(ctx: ToolContext) -> str:
        """Say what it does."""
        ctx.progress("beginning")
        ctx.output("a line\n")
        time.sleep(0.05)
        return "done"

    @tool(registry=registry, toolset="t", effect="read")
    def add_prompt() -> str:
        """Add a prompt."""
        registry.register("late", "prompts", {"description": "Late."}, lambda: "x", effect="read")
        return "added"

    schema = {
        "description": "Pick a colour.",
        "type": "object",
        "properties": {"colour": {"type": "string", "enum": ["red", "rose", "blue"]}},
    }
    registry.register("colours", "prompts", schema, lambda colour: colour, effect="read")


@both_eras
def test_tools_of_that_toolset_are_prompts_and_no_tools(mode: str) -> None:
    async def work() -> None:
        app = app_with(add)
        async with client(app, mode, toolsets=TOOLSETS) as c:
            prompts = {prompt.name: prompt for prompt in (await c.list_prompts()).prompts}
            tools = {entry.name for entry in (await c.list_tools()).tools}
            said = await c.get_prompt("review", {"language": "Perl"})
            shown = await c.get_prompt("picture")
            with pytest.raises(MCPError, match="language"):
                await c.get_prompt("review")
            with pytest.raises(MCPError, match="no prompt is called"):
                await c.get_prompt("talk")
            with pytest.raises(MCPError, match="no tool is called"):
                await c.call_tool("review", {"language": "Perl"})
        app.close()

        assert {"review", "ask_first", "picture", "colours"} == set(prompts)
        assert not tools & set(prompts)
        arguments = {one.name: one for one in prompts["review"].arguments or []}
        assert (arguments["language"].required, arguments["tone"].required) == (True, False)
        assert arguments["language"].description == "What it is written in."
        assert said.messages[0].content.text == "Review this Perl, and be kind."
        assert [message.content.type for message in shown.messages] == ["image", "text"]

    run(work)


@both_eras
def test_a_prompt_may_ask_the_person(mode: str) -> None:
    async def work() -> None:
        app, person = app_with(add), Person({"said": "hello"})
        async with client(app, mode, toolsets=TOOLSETS, elicitation_callback=person) as c:
            said = await c.get_prompt("ask_first")
        app.close()

        assert said.messages[0].content.text == "They said hello."

    run(work)


@both_eras
def test_the_values_of_an_argument_are_proposed(mode: str) -> None:
    async def work() -> None:
        app = app_with(add)
        async with client(app, mode, toolsets=TOOLSETS) as c:

            async def values(ref: Any, name: str, value: str) -> list[str]:
                found = await c.complete(ref, {"name": name, "value": value})
                return list(found.completion.values)

            colours = PromptReference(name="colours")
            assert await values(colours, "colour", "R") == ["red", "rose"]
            assert await values(colours, "taste", "") == []
            assert await values(PromptReference(name="nobody"), "x", "") == []
            handles = ResourceTemplateReference(uri="hermes://artifact/{handle}")
            assert await values(handles, "handle", "art_") == []
        app.close()

    run(work)


@both_eras
def test_tools_of_the_other_toolset_are_read_by_their_address(mode: str) -> None:
    async def work() -> None:
        app = app_with(add)
        async with client(app, mode, toolsets=TOOLSETS) as c:
            listed = {one.name: str(one.uri) for one in (await c.list_resources()).resources}
            templates = await c.list_resource_templates()
            shapes = {one.name: one.uri_template for one in templates.resource_templates}
            read = await c.read_resource("hermes://resource/notes/2026-11%2F16")
            logo = await c.read_resource(listed["logo"])
            for wrong in ("hermes://resource/notes/a/b", "hermes://resource/wipe", "x://y"):
                with pytest.raises(MCPError):
                    await c.read_resource(wrong)
        app.close()

        assert shapes["notes"] == "hermes://resource/notes/{day}"
        assert "wipe" not in listed
        assert read.contents[0].text == "noted on 2026-11/16"
        assert (logo.contents[0].blob, logo.contents[0].mime_type) == (PIXEL, "image/png")

    run(work)


@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
def test_what_is_watched_and_changes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_LOOK_SECONDS", 0.05)

    async def work() -> None:
        app = app_with(add)
        heard: list[Any] = []

        async def hear(message: Any) -> None:
            heard.append(message)

        async with client(app, "legacy", toolsets=TOOLSETS, message_handler=hear) as c:
            await c.session.subscribe_resource("hermes://resource/logo")
            app.registry.register(
                "logo", "resources", {"description": "New."}, lambda: "new", effect="read"
            )
            await soon(lambda: any("Updated" in type(one).__name__ for one in heard), "not told")
            await c.session.unsubscribe_resource("hermes://resource/logo")
        app.close()

    run(work)


def test_a_client_is_told_of_prompts_that_come_later() -> None:
    async def work() -> None:
        app = app_with(add)
        heard: list[str] = []

        async def hear(message: Any) -> None:
            heard.append(type(message).__name__)

        async with client(app, "legacy", toolsets=TOOLSETS, message_handler=hear) as c:
            await c.call_tool("add_prompt", {})
            await soon(lambda: "PromptListChangedNotification" in heard, "it was not told")
            assert "late" in {prompt.name for prompt in (await c.list_prompts()).prompts}
        app.close()

    run(work)


@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
@pytest.mark.parametrize(
    ("level", "said"),
    [(None, []), ("debug", ["beginning", "a line"]), ("info", ["beginning"]), ("error", [])],
)
def test_what_a_call_says_is_logged_to_a_client_that_asked(level: Any, said: list[str]) -> None:
    async def work() -> None:
        app = app_with(add)
        heard: list[str] = []

        async def hear(params: Any) -> None:
            heard.append(params.data.strip())

        async with client(app, "legacy", toolsets=TOOLSETS, logging_callback=hear) as c:
            if level is not None:
                await c.set_logging_level(level)
            await c.call_tool("talk", {})
            await c.list_tools()
        app.close()

        assert heard == said

    run(work)
