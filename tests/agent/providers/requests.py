"""Ask a model and collect what it says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes.agent.providers.http_model import HttpModel
from hermes.core.model_protocol import Done, Message, Request

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from hermes.core.model_protocol import Event, Provider
    from hermes.testing import ScriptedModel


def tool(name: str) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Do {name}.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        },
    }


TOOLS = (tool("read_file"), tool("write_file"), tool("terminal"))
HELLO = (Message("system", "Be brief."), Message("user", "hi"))


def remote(server: ScriptedModel, model: str = "some-model", **options: Any) -> HttpModel:
    options.setdefault("idle_timeout", 5.0)
    return HttpModel("scripted", model, server.url, **options)


async def events(
    provider: Provider, messages: Sequence[Message] = HELLO, **options: Any
) -> list[Event]:
    options.setdefault("tools", TOOLS)
    return [event async for event in provider.stream(Request(tuple(messages), **options))]


def ask(provider: Provider, messages: Sequence[Message] = HELLO, **options: Any) -> list[Event]:
    """Every event of one answer."""

    async def asking() -> list[Event]:
        try:
            return await events(provider, messages, **options)
        finally:
            await provider.close()

    return asyncio.run(asking())


def answer(provider: Provider, messages: Sequence[Message] = HELLO, **options: Any) -> Done:
    """The whole answer."""
    done = ask(provider, messages, **options)[-1]
    assert isinstance(done, Done)
    return done
