"""Compatibility fixes for responses the SDK rejects (missing ids, wrong types); nothing is
dropped.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from pydantic import ValidationError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from mcp.client._transport import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage


# The lists besides that of tools: where their items are, and what none of them can be without.
LISTS = {
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
    "prompts/list": ("prompts", "name"),
}
_ABILITIES = ("tools", "resources", "prompts", "logging", "completions")
# What a block of each type can't be without.
_BLOCKS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource": (),
    "resource_link": ("uri", "name"),
}


def mend_result(result: dict[str, Any]) -> None:
    """Make a tool's answer one that the SDK takes, with everything in it that was in it."""
    if result.get("resultType") not in (None, "complete"):
        return
    content = result.get("content")
    if not isinstance(content, list):
        content = [] if content is None else [content]
    result["content"] = [_block(block) for block in content]
    if "structuredContent" in result and not isinstance(result["structuredContent"], dict):
        value = result.pop("structuredContent")
        if value is not None:
            result["structuredContent"] = {"result": value}
    if not isinstance(result.get("isError", False), bool):
        result["isError"] = bool(result["isError"])
    if "_meta" in result and not isinstance(result["_meta"], dict):
        del result["_meta"]


def _block(block: Any) -> dict[str, Any]:
    kind = block.get("type") if isinstance(block, dict) else None
    needed = _BLOCKS.get(kind) if isinstance(kind, str) else None
    if needed is not None and all(isinstance(block.get(name), str) for name in needed):
        if kind == "resource" and not _is_resource(block.get("resource")):
            return _as_text(block)
        # Remarks on a block that are odd are not worth losing it.
        return {name: block[name] for name in ("type", *needed, "resource") if name in block}
    return _as_text(block)


def _is_resource(resource: Any) -> bool:
    return (
        isinstance(resource, dict)
        and isinstance(resource.get("uri"), str)
        and any(isinstance(resource.get(name), str) for name in ("text", "blob"))
    )


def _as_text(block: Any) -> dict[str, Any]:
    text = block if isinstance(block, str) else json.dumps(block, ensure_ascii=False, default=str)
    return {"type": "text", "text": text}


def mend_cursor(result: dict[str, Any]) -> None:
    if not isinstance(result.get("nextCursor"), str):
        result.pop("nextCursor", None)


def mend_list(result: dict[str, Any], where: str, needed: str) -> None:
    """Keep the items that can be used, with what is ever shown of one."""
    listed = result.get(where)
    kept = []
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, dict) and isinstance(item.get(needed), str):
            names = ("name", "title", "description", "mimeType", needed)
            plain = {name: item[name] for name in names if isinstance(item.get(name), str)}
            given = item.get("arguments")
            arguments = [
                {"name": one["name"]}
                for one in (given if isinstance(given, list) else ())
                if isinstance(one, dict) and isinstance(one.get("name"), str)
            ]
            kept.append({"name": plain[needed], **plain, "arguments": arguments})
    result[where] = kept
    mend_cursor(result)


def mend_abilities(result: dict[str, Any]) -> None:
    """Read what a server says it can do as far as that can be read."""
    said = result.get("capabilities")
    try:
        types.ServerCapabilities.model_validate(said, by_name=False)
    except ValidationError:
        said = said if isinstance(said, dict) else {}
        result["capabilities"] = {
            name: {flag: on for flag, on in said[name].items() if isinstance(on, bool)}
            if isinstance(said[name], dict)
            else {}
            for name in _ABILITIES
            if said.get(name) is True or isinstance(said.get(name), dict)
        }


def mend_greeting(result: dict[str, Any]) -> None:
    mend_abilities(result)
    info = result.get("serverInfo")
    info = info if isinstance(info, dict) else {}
    result["serverInfo"] = {
        name: info[name] if isinstance(info.get(name), str) else "unknown"
        for name in ("name", "version")
    }
    if not isinstance(result.get("instructions", ""), str):
        del result["instructions"]


_MENDED = ("initialize", "server/discover", "tools/list", "tools/call", *LISTS)
# How long a message may wait to be taken. Over HTTP, one that the server does not take keeps all
# those behind it waiting.
_SEND_SECONDS = 30.0


class Wire:
    """One connection's messages."""

    def __init__(self) -> None:
        self._asked: dict[Any, str] = {}
        # What the SDK says with each request about who asks, in the newer protocol.
        self.meta: dict[str, Any] = {}
        self._tools: list[Any] = []
        # The page of tools that was asked for last; others that come were given up.
        self._page = ""

    def take_tools(self) -> list[Any]:
        """The tools of the lists that came since this was last asked, as the server wrote them."""
        found, self._tools = self._tools, []
        return found

    def going(self, message: Any) -> None:
        """Note what is asked, to know what the answer is."""
        if isinstance(message, types.JSONRPCRequest) and message.method in _MENDED:
            self._asked[str(message.id)] = message.method
            if message.method == "tools/list":
                self._page = str(message.id)
            said = (message.params or {}).get("_meta")
            # Asked for the newer protocol, a server may turn out to speak the older one.
            if isinstance(said, dict) and message.method != "server/discover":
                self.meta = {key: value for key, value in said.items() if key != "progressToken"}

    def came(self, message: Any) -> None:
        """Mend an answer in place."""
        if not self._asked or not isinstance(message, (types.JSONRPCResponse, types.JSONRPCError)):
            return
        method = self._asked.pop(str(message.id), None)
        if method is None or not isinstance(message, types.JSONRPCResponse):
            return
        if method == "tools/list":
            if str(message.id) == self._page:
                self._keep_tools(message.result)
        elif method == "tools/call":
            mend_result(message.result)
        elif method in LISTS:
            mend_list(message.result, *LISTS[method])
        elif method == "initialize":
            mend_greeting(message.result)
        else:
            mend_abilities(message.result)

    def _keep_tools(self, result: dict[str, Any]) -> None:
        tools = result.get("tools")
        listed = tools if isinstance(tools, list) else []
        self._tools += listed
        shown: dict[str, dict[str, Any]] = {}
        for tool in listed:
            name = tool.get("name") if isinstance(tool, dict) else None
            if isinstance(name, str) and name:
                schema = tool.get("inputSchema")
                whole = isinstance(schema, dict) and schema.get("type") == "object"
                shown[name] = {"name": name, "inputSchema": schema if whole else {"type": "object"}}
        result["tools"] = list(shown.values())
        mend_cursor(result)


class Reading:
    """The stream that the SDK reads from."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], wire: Wire) -> None:
        self._stream = stream
        self._wire = wire

    @property
    def last_context(self) -> Any:
        """The sender's context, where the transport keeps it."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """The next message, mended."""
        item = await self._stream.receive()
        if not isinstance(item, Exception):
            self._wire.came(item.message)
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        item = await self._stream.__anext__()
        if not isinstance(item, Exception):
            self._wire.came(item.message)
        return item

    async def aclose(self) -> None:
        """Close it."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)


class Writing:
    """The stream that the SDK writes to."""

    def __init__(self, stream: WriteStream[SessionMessage], wire: Wire) -> None:
        self._stream = stream
        self._wire = wire

    async def send(self, item: SessionMessage, /) -> None:
        """Pass a message on; a stream that stands still is as good as ended."""
        self._wire.going(item.message)
        try:
            async with asyncio.timeout(_SEND_SECONDS):
                await self._stream.send(item)
        except TimeoutError:
            raise anyio.BrokenResourceError from None

    async def aclose(self) -> None:
        """Close it."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)
