"""A server written with the SDK, which asks the person behind each call.

sdk.py stdio        at the other end of a pipe
sdk.py PORT         over HTTP
sdk.py PORT old     over HTTP, and knowing nothing of the newer protocol
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import uvicorn
from mcp.server.mcpserver import Elicit, MCPServer, Resolve, Sample
from mcp_types import CreateMessageResult, SamplingMessage, TextContent, ToolAnnotations
from pydantic import BaseModel

server = MCPServer("sdk")
READS = ToolAnnotations(read_only_hint=True)


class Answer(BaseModel):
    """What a person is asked for."""

    answer: str


def question(who: str) -> Elicit[Answer]:
    return Elicit(f"for {who}", Answer)


def thought(who: str) -> Sample:
    said = SamplingMessage(role="user", content=TextContent(text=f"for {who}"))
    return Sample([said], max_tokens=100)


@server.tool(annotations=READS)
def ask(who: str, said: Annotated[Answer, Resolve(question)]) -> str:
    """Ask the person."""
    return f"{who} was told {said.answer}"


@server.tool(annotations=READS)
def think(who: str, said: Annotated[CreateMessageResult, Resolve(thought)]) -> str:
    """Ask the model."""
    content = said.content[0] if isinstance(said.content, list) else said.content
    return f"{who} was told {getattr(content, 'text', '')}"


class Old:
    """Answers as a server does that was written before `server/discover`."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._inner(scope, receive, send)
            return
        message = await receive()
        if b'"server/discover"' in message.get("body", b""):
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        unread = [message]

        async def replay() -> Any:
            return unread.pop() if unread else await receive()

        await self._inner(scope, replay, send)


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        application: Any = server.streamable_http_app()
        uvicorn.run(
            Old(application) if "old" in sys.argv else application,
            port=int(sys.argv[1]),
            log_level="critical",
        )
