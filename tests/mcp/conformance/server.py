"""The server that the protocol's conformance suite is run against: our machinery, its tools.

The suite knows no token, so one is added on the way; the rest of the guard is as it always is.
Run it with a port, and point the suite at `http://127.0.0.1:PORT/mcp`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import uvicorn

from hermes.core import ToolContext, ToolRegistry, tool
from hermes.core.errors import ToolError
from hermes.core.json_text import to_json
from hermes.mcp.server.handlers import AppServer
from hermes.mcp.server.http_server import application
from hermes.runtime.app import App

TOKEN = "the-suite-does-not-know-it"
# One red pixel, and a sound of no length.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
SOUND = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="
IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}

ADDRESS = {
    "$anchor": "addressDef",
    "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
}
WHOLE_DIALECT = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": ADDRESS},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def fields(**properties: dict[str, Any]) -> dict[str, Any]:
    """A form with these fields, all of them asked for."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def asked(
    ctx: ToolContext, message: str, schema: dict[str, Any], name: str = "form"
) -> dict[str, Any]:
    """What a person filled in."""
    expand: dict[str, Any] | None = ctx.service("show_form")(message, schema, name)
    if expand is None:
        raise ToolError("nobody filled in the form")
    return expand


def add_tools(registry: ToolRegistry) -> None:
    """What the suite calls."""

    @tool(registry=registry, toolset="suite", effect="read")
    def test_simple_text() -> str:
        """Give a text."""
        return "This is a simple text response for testing."

    @tool(registry=registry, toolset="suite", effect="read")
    def test_image_content() -> dict[str, str]:
        """Give a picture."""
        return IMAGE

    @tool(registry=registry, toolset="suite", effect="read")
    def test_audio_content() -> dict[str, str]:
        """Give a sound."""
        return {"type": "audio", "data": SOUND, "mimeType": "audio/wav"}

    @tool(registry=registry, toolset="suite", effect="read")
    def test_embedded_resource() -> dict[str, Any]:
        """Give a resource."""
        text = "This is an embedded resource content."
        inner = {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": text}
        return {"type": "resource", "resource": inner}

    @tool(registry=registry, toolset="suite", effect="read")
    def test_multiple_content_types() -> list[dict[str, Any]]:
        """Give several things."""
        text = to_json({"test": "data", "value": 123})
        inner = {"uri": "test://mixed-content-resource", "mimeType": "application/json"}
        return [
            {"type": "text", "text": "Multiple content types test:"},
            IMAGE,
            {"type": "resource", "resource": {**inner, "text": text}},
        ]

    @tool(registry=registry, toolset="suite", effect="read")
    def test_error_handling() -> str:
        """Fail."""
        raise ToolError("This tool intentionally returns an error for testing")

    @tool(registry=registry, toolset="suite", effect="read")
    def test_tool_with_progress(ctx: ToolContext) -> str:
        """Tell how far it is."""
        for fraction in (0.0, 0.5, 1.0):
            ctx.progress("under way", fraction=fraction)
            time.sleep(0.05)
        return "done"

    @tool(registry=registry, toolset="suite", effect="read")
    def test_elicitation(ctx: ToolContext, message: str) -> str:
        """Ask who somebody is."""
        text = {"type": "string"}
        expand = asked(ctx, message, fields(username=text, email=text))
        return f"User response: action=accept, content={to_json(expand)}"

    @tool(registry=registry, toolset="suite", effect="read")
    def test_elicitation_sep1034_defaults(ctx: ToolContext) -> str:
        """Ask with every kind of default."""
        schema = fields(
            name={"type": "string", "default": "John Doe"},
            age={"type": "integer", "default": 30},
            score={"type": "number", "default": 95.5},
            status={
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            verified={"type": "boolean", "default": True},
        )
        expand = asked(ctx, "Please look at these", schema)
        return f"Elicitation completed: action=accept, content={to_json(expand)}"

    @tool(registry=registry, toolset="suite", effect="read")
    def test_elicitation_sep1330_enums(ctx: ToolContext) -> str:
        """Ask with every kind of choice."""
        three = ["option1", "option2", "option3"]
        titled = [
            {"const": f"value{number}", "title": f"{word} Option"}
            for number, word in enumerate(("First", "Second", "Third"), 1)
        ]
        schema = fields(
            untitledSingle={"type": "string", "enum": three},
            titledSingle={"type": "string", "oneOf": titled},
            legacyEnum={
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            untitledMulti={"type": "array", "items": {"type": "string", "enum": three}},
            titledMulti={"type": "array", "items": {"anyOf": titled}},
        )
        expand = asked(ctx, "Please choose", schema)
        return f"Elicitation completed: action=accept, content={to_json(expand)}"

    @tool(registry=registry, toolset="suite", effect="read")
    def test_input_required_result_elicitation(ctx: ToolContext) -> str:
        """Greet somebody."""
        expand = asked(ctx, "What is your name?", fields(name={"type": "string"}), "user_name")
        return f"Hello, {expand.get('name')}!"

    @tool(registry=registry, toolset="suite", effect="read")
    def test_streaming_elicitation(ctx: ToolContext) -> str:
        """Ask after something was said."""
        ctx.progress("about to ask", fraction=0.5)
        return f"confirmed: {to_json(asked(ctx, 'Go on?', fields(ok={'type': 'boolean'})))}"

    @tool(registry=registry, toolset="suite", effect="read")
    def test_tool_with_logging(ctx: ToolContext) -> str:
        """Say what it does while it does it."""
        for said in ("started", "processing data", "completed"):
            ctx.progress(f"Tool execution {said}")
            time.sleep(0.05)
        return "done"

    @tool(registry=registry, toolset="suite", effect="read")
    def test_logging_tool(ctx: ToolContext) -> str:
        """Say something, to whoever asked for it."""
        ctx.progress("under way")
        return "done"

    add_borrowers(registry)
    add_prompts(registry)
    add_resources(registry)

    @tool(registry=registry, toolset="suite", effect="read")
    def test_trigger_tool_change() -> str:
        """Add a tool."""
        name = f"test_late_{time.monotonic_ns()}"
        schema = {"description": "Came late.", "type": "object", "properties": {}}
        registry.register(name, "suite", schema, lambda: "here", effect="read")
        return name

    @tool(registry=registry, toolset="suite", effect="read")
    def test_trigger_prompt_change() -> str:
        """Add a prompt."""
        name = f"test_late_prompt_{time.monotonic_ns()}"
        schema = {"description": "Came late.", "type": "object", "properties": {}}
        registry.register(name, "prompts", schema, lambda: "here", effect="read")
        return name

    for name in ("request_state", "tampered_state"):
        registry.register(
            f"test_input_required_result_{name}",
            "suite",
            {"description": "Ask for a confirmation.", "type": "object", "properties": {}},
            _confirm,
            effect="read",
        )

    @tool(registry=registry, toolset="suite", effect="read")
    def test_input_required_result_multi_round(ctx: ToolContext) -> str:
        """Ask twice."""
        text = {"type": "string"}
        who = asked(ctx, "Step 1: What is your name?", fields(name=text))
        what = asked(ctx, "Step 2: What is your favorite color?", fields(color=text))
        return f"{who.get('name')} likes {what.get('color')}"

    registry.register(
        "json_schema_2020_12_tool",
        "suite",
        {"description": "Tool with JSON Schema 2020-12 features", **WHOLE_DIALECT},
        lambda **arguments: arguments,
        effect="read",
    )
    for name in ("", "_null"):
        region = {"type": "string", "x-mcp-header": "Region"}
        registry.register(
            f"test_custom_headers{name}",
            "suite",
            {
                "description": "Take a header.",
                "type": "object",
                "properties": {"region": region},
            },
            lambda region="": region,
            effect="read",
        )


def add_borrowers(registry: ToolRegistry) -> None:
    """Tools that use what the client has."""

    @tool(registry=registry, toolset="suite", effect="read")
    async def test_sampling(ctx: ToolContext, prompt: str) -> str:
        """Ask the client's model."""
        return f"LLM response: {await thought(ctx, prompt)}"

    @tool(registry=registry, toolset="suite", effect="read")
    async def test_missing_capability(ctx: ToolContext) -> str:
        """Do nothing without a model."""
        return await thought(ctx, "Anything")

    @tool(registry=registry, toolset="suite", effect="read")
    async def test_input_required_result_sampling(ctx: ToolContext) -> str:
        """Ask the client's model."""
        return await thought(ctx, "What is the capital of France?", "capital_question")

    @tool(registry=registry, toolset="suite", effect="read")
    async def test_input_required_result_list_roots(ctx: ToolContext) -> str:
        """Name the client's folders."""
        return to_json(await ctx.service("client_roots")("client_roots"))

    @tool(registry=registry, toolset="suite", effect="read")
    async def test_input_required_result_multiple_inputs(ctx: ToolContext) -> str:
        """Ask for several things at once."""
        form = fields(name={"type": "string"})
        answers = await asyncio.gather(
            ctx.service("show_form")("What is your name?", form, "user_name"),
            thought(ctx, "Generate a greeting", "greeting"),
            ctx.service("client_roots")("client_roots"),
        )
        return to_json(answers)

    @tool(registry=registry, toolset="suite", effect="read")
    async def test_input_required_result_capabilities(ctx: ToolContext) -> str:
        """Ask for what the client can do, and nothing else."""
        asks = [thought(ctx, "Anything")]
        if ctx.services.show_form is not None:
            asks.append(ctx.service("show_form")("Anything?", fields(said={"type": "string"})))
        return to_json(await asyncio.gather(*asks))


async def thought(ctx: ToolContext, prompt: str, name: str = "model") -> str:
    """What the client's model says."""
    sample = ctx.service("sample")
    text, _, _ = await sample([{"role": "user", "text": prompt}], max_tokens=100, name=name)
    return str(text)


def add_prompts(registry: ToolRegistry) -> None:
    """What the suite picks."""

    @tool(registry=registry, toolset="prompts", effect="read")
    def test_simple_prompt() -> str:
        """Say something simple."""
        return "This is a simple prompt for testing."

    @tool(registry=registry, toolset="prompts", effect="read")
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        """Say what was given."""
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @tool(registry=registry, toolset="prompts", effect="read")
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[dict[str, Any]]:  # noqa: N803
        """Say something about a resource."""
        text = "Embedded resource content for testing."
        inner = {"uri": resourceUri, "mimeType": "text/plain", "text": text}
        return [
            {"type": "resource", "resource": inner},
            {"type": "text", "text": "Please process the embedded resource above."},
        ]

    @tool(registry=registry, toolset="prompts", effect="read")
    def test_prompt_with_image() -> list[dict[str, Any]]:
        """Say something about a picture."""
        return [IMAGE, {"type": "text", "text": "Please analyze the image above."}]

    @tool(registry=registry, toolset="prompts", effect="read")
    def test_input_required_result_prompt(ctx: ToolContext) -> str:
        """Say something about what a person wrote."""
        about = fields(context={"type": "string"})
        expand = asked(ctx, "What context should the prompt use?", about, "user_context")
        return f"Keep in mind: {expand.get('context')}"


def add_resources(registry: ToolRegistry) -> None:
    """What the suite reads."""

    def add(name: str, uri: str, handler: Any, **properties: Any) -> None:
        schema = {
            "description": "For the suite.",
            "type": "object",
            "properties": properties,
            "x-mcp-uri": uri,
        }
        registry.register(name, "resources", schema, handler, effect="read")

    text = "This is the content of the static text resource."
    add("static_text", "test://static-text", lambda: text)
    add("static_binary", "test://static-binary", lambda: IMAGE)
    add(
        "template_data",
        "test://template/{id}/data",
        lambda id: {"id": id, "templateTest": True, "data": f"Data for ID: {id}"},  # noqa: A006
        id={"type": "string"},
    )


def _confirm(ctx: ToolContext) -> str:
    asked(ctx, "Please confirm", fields(ok={"type": "boolean"}))
    return "state-ok"


async def serve(port: int) -> None:
    """Serve until it is ended."""
    registry = ToolRegistry()
    add_tools(registry)
    door = AppServer(App(registry), toolsets=["suite", "prompts", "resources"], defer=False)
    async with application(door, TOKEN, ()) as guard:

        async def known(scope: Any, receive: Any, send: Any) -> None:
            given = (b"authorization", f"Bearer {TOKEN}".encode())
            await guard({**scope, "headers": [*scope["headers"], given]}, receive, send)

        config = uvicorn.Config(known, port=port, lifespan="off", log_config=None, ws="none")
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
