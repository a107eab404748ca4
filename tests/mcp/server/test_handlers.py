"""Tools, calls and resources, as the SDK's own client sees them, in both eras."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent
from tests.mcp.server.peers import ERAS, app_with, client, run, until

from hermes.core import ToolContext, ToolRegistry, ToolResult, tool
from hermes.core.errors import ToolError
from hermes.runtime.audit import lines

PIXEL = base64.b64encode(b"\x89PNG not really").decode()

both_eras = pytest.mark.parametrize("mode", ERAS)


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def _tools(registry: ToolRegistry) -> None:
    @tool(registry=registry, toolset="trial", effect="read", emoji="➕")
    def add_up(a: int, b: int) -> dict[str, int]:
        """Add two numbers."""
        return {"sum": a + b}

    @tool(registry=registry, toolset="trial", effect="read")
    def say(what: str) -> str:
        """Say it back."""
        return what

    @tool(registry=registry, toolset="trial", effect="read")
    def show(kind: str) -> Any:
        """Show something."""
        picture = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
        text = {"type": "text", "text": "hello"}
        note = {"type": "resource", "resource": {"uri": "note://1", "text": "inside"}}
        return {
            "alone": picture,
            "other spelling": {"type": "image", "data": PIXEL, "media_type": "image/jpeg"},
            "sound": {"type": "audio", "data": PIXEL, "mimeType": "audio/wav"},
            "beside": {"width": 3, "picture": picture, "more": [picture]},
            "mixed": [text, picture, note],
            "unlike": {"type": "image", "of": "a cat"},
        }[kind]

    @tool(registry=registry, toolset="trial", effect="read", max_result_size_chars=1_000)
    def long_text() -> str:
        """A long text."""
        return "line of text\n" * 10_000

    @tool(registry=registry, toolset="trial", effect="read")
    def fail(how: str) -> Any:
        """Fail."""
        if how == "on purpose":
            raise ToolError("it is closed", hint="Come back tomorrow.")
        if how == "by result":
            return ToolResult({"partly": 1}, error="half of it failed")
        raise KeyError("oh")

    @tool(registry=registry, toolset="trial", effect="write")
    def change(ctx: ToolContext) -> str:
        """Change something."""
        ctx.progress("a quarter", fraction=0.25)
        return "changed"


@both_eras
def test_tools_are_listed_with_schema_title_and_hints(mode: str) -> None:
    async def work() -> None:
        async with client(app_with(_tools), mode, toolsets=["trial"]) as c:
            assert c.protocol_version == ERAS[mode]
            listed = {tool.name: tool for tool in (await c.list_tools()).tools}

            assert sorted(listed) == ["add_up", "change", "fail", "long_text", "say", "show"]
            adding = listed["add_up"]
            assert adding.title == "➕ Add up"
            assert adding.description == "Add two numbers."
            assert adding.input_schema["required"] == ["a", "b"]
            assert adding.annotations is not None
            assert adding.annotations.read_only_hint is True
            assert adding.annotations.destructive_hint is False
            assert adding.annotations.idempotent_hint is True
            changing = listed["change"].annotations
            assert changing is not None
            assert (changing.read_only_hint, changing.destructive_hint) == (False, True)

    run(work)


@both_eras
def test_an_object_comes_as_text_and_as_data(mode: str) -> None:
    async def work() -> None:
        async with client(app_with(_tools), mode) as c:
            result = await c.call_tool("add_up", {"a": "1", "b": 2})

            assert result.structured_content == {"sum": 3}
            assert result.content == [TextContent(text='{"sum":3}')]
            assert not result.is_error

    run(work)


@both_eras
def test_text_comes_as_it_is(mode: str) -> None:
    async def work() -> None:
        async with client(app_with(_tools), mode) as c:
            result = await c.call_tool("say", {"what": 'a "quoted" word\nand ü'})

            assert result.content == [TextContent(text='a "quoted" word\nand ü')]
            assert result.structured_content is None

    run(work)


@both_eras
def test_pictures_and_sounds_are_blocks_of_their_own(mode: str) -> None:
    async def work() -> None:
        async with client(app_with(_tools), mode) as c:
            alone = await c.call_tool("show", {"kind": "alone"})
            other = await c.call_tool("show", {"kind": "other spelling"})
            sound = await c.call_tool("show", {"kind": "sound"})
            beside = await c.call_tool("show", {"kind": "beside"})
            mixed = await c.call_tool("show", {"kind": "mixed"})
            unlike = await c.call_tool("show", {"kind": "unlike"})

        assert alone.content == [ImageContent(data=PIXEL, mime_type="image/png")]
        assert other.content == [ImageContent(data=PIXEL, mime_type="image/jpeg")]
        assert sound.content == [AudioContent(data=PIXEL, mime_type="audio/wav")]
        assert [type(block) for block in beside.content] == [
            TextContent,
            ImageContent,
            ImageContent,
        ]
        note = {"width": 3, "picture": "(image 1: image/png)", "more": ["(image 2: image/png)"]}
        assert beside.structured_content == note
        assert PIXEL not in beside.content[0].text
        kinds = [TextContent, ImageContent, EmbeddedResource]
        assert [type(block) for block in mixed.content] == kinds
        assert unlike.structured_content == {"type": "image", "of": "a cat"}

    run(work)


@both_eras
def test_a_large_result_is_cut_and_can_be_read_whole(mode: str) -> None:
    async def work() -> None:
        async with client(app_with(_tools), mode) as c:
            assert (await c.list_resources()).resources == []

            result = await c.call_tool("long_text")
            links = [block for block in result.content if isinstance(block, ResourceLink)]
            listed = (await c.list_resources()).resources
            read = await c.read_resource(links[0].uri)

        assert [resource.uri for resource in listed] == [links[0].uri]
        assert read.contents[0].text == "line of text\n" * 10_000

    run(work)


@both_eras
def test_a_resource_that_is_not_there_is_said_not_to_be(mode: str) -> None:
    async def work() -> None:
        async with client(app_with(_tools), mode) as c:
            for uri in (
                "hermes://artifact/art_" + "0" * 24,
                "hermes://artifact/../x",
                "file:///etc/passwd",
            ):
                with pytest.raises(MCPError):
                    await c.read_resource(uri)

    run(work)


@both_eras
@pytest.mark.parametrize(
    ("how", "said"),
    [("on purpose", "it is closed"), ("by result", "half of it failed"), ("by a bug", "KeyError")],
)
def test_a_failure_is_a_result_that_says_so(mode: str, how: str, said: str) -> None:
    async def work() -> None:
        async with client(app_with(_tools), mode) as c:
            result = await c.call_tool("fail", {"how": how})

            assert result.is_error
            assert said in result.structured_content["error"]

    run(work)


@both_eras
def test_arguments_that_do_not_fit_are_a_result_that_names_them(mode: str) -> None:
    async def work() -> None:
        async with client(app_with(_tools), mode) as c:
            result = await c.call_tool("add_up", {"a": "one", "c": 3})

            assert result.is_error
            for word in ("a", "b", "c"):
                assert word in result.content[0].text

    run(work)


@both_eras
def test_an_unknown_tool_is_an_error_with_the_nearest_name(mode: str) -> None:
    async def work() -> None:
        async with client(app_with(_tools), mode) as c:
            with pytest.raises(MCPError, match="Did you mean add_up") as raised:
                await c.call_tool("addup", {"a": 1, "b": 2})

            assert raised.value.error.code == -32602

    run(work)


@both_eras
def test_a_tool_outside_of_the_toolsets_is_unknown(mode: str) -> None:
    async def work() -> None:
        async with client(app_with(_tools), mode, toolsets=["trial"]) as c:
            with pytest.raises(MCPError, match="no tool is called"):
                await c.call_tool("terminal", {"command": "touch canary"})

    run(work)
    assert not Path("canary").exists()


def test_an_odd_name_is_spelled_plainly_and_understood_either_way() -> None:
    def odd(registry: ToolRegistry) -> None:
        schema = {"type": "object", "properties": {}}
        registry.register("far:away", "odd", schema, lambda: "there", effect="read")

    async def work() -> None:
        async with client(app_with(odd), toolsets=["odd"]) as c:
            (listed,) = (await c.list_tools()).tools

            assert listed.name == "far__away"
            assert (await c.call_tool("far__away")).content[0].text == "there"
            assert (await c.call_tool("far:away")).content[0].text == "there"

    run(work)


@both_eras
def test_progress_grows_and_says_what_is_done(mode: str) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    def slow(registry: ToolRegistry) -> None:
        @tool(registry=registry, toolset="trial", effect="read")
        def count(ctx: ToolContext) -> str:
            """Count."""
            for step in (None, 0.2, 0.2, 0.1, 0.9):
                before = len(seen)
                ctx.progress(f"at {step}", fraction=step)
                until(lambda before=before: len(seen) > before, "it is not heard")
            return "counted"

    async def work() -> None:
        async def watch(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total, message))

        async with client(app_with(slow), mode) as c:
            await c.call_tool("count", progress_callback=watch)

        values = [value for value, _, _ in seen]
        assert values == sorted(set(values))
        assert all(total is None or value <= total for value, total, _ in seen)
        assert [message for _, _, message in seen] == [
            f"at {step}" for step in (None, 0.2, 0.2, 0.1, 0.9)
        ]

    run(work)


@both_eras
def test_calls_are_noted_as_coming_through_this_door(mode: str, home: Path) -> None:
    async def work() -> None:
        app = app_with(_tools)
        async with client(app, mode) as c:
            await c.call_tool("say", {"what": "hi"})
        app.close()

        noted = list(lines(str(home / "audit" / "audit.jsonl")))[-1]
        assert (noted["front_door"], noted["tool"], noted["status"]) == ("mcp", "say", "ok")
        assert noted["session"].startswith("mcp-")

    run(work)


def test_a_page_that_was_never_offered_is_refused() -> None:
    async def work() -> None:
        async with client(app_with(_tools)) as c:
            with pytest.raises(MCPError):
                await c.list_tools(cursor="2")

    run(work)
