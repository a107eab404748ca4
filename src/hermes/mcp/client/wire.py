"""What passes between a server and the SDK, looked at and mended on the way.

The SDK takes a whole answer or none: one odd tool among three hundred would cost all of them, one
odd block of a result the result. So lists of tools are kept as they came, for us to judge tool by
tool, and the SDK is shown only what it is sure to take.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import mcp_types as types

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from mcp.client._transport import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage

_MENDED = ("initialize", "tools/list", "tools/call")
# What a block of each type can't be without.
_BLOCKS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource": (),
    "resource_link": ("uri", "name"),
}


class Wire:
    """One connection's messages."""

    def __init__(self) -> None:
        self._asked: dict[Any, str] = {}
        # What the SDK says with each request about who asks, in the newer protocol.
        self.meta: dict[str, Any] = {}
        self._tools: list[Any] = []

    def take_tools(self) -> list[Any]:
        """The tools of the lists that came since this was last asked, as the server wrote them."""
        found, self._tools = self._tools, []
        return found

    def going(self, message: Any) -> None:
        """Note what is asked, to know what the answer is."""
        if isinstance(message, types.JSONRPCRequest) and message.method in _MENDED:
            self._asked[str(message.id)] = message.method
            said = (message.params or {}).get("_meta")
            if isinstance(said, dict):
                self.meta = {key: value for key, value in said.items() if key != "progressToken"}

    def came(self, message: Any) -> None:
        """Mend an answer in place."""
        if not self._asked or not isinstance(message, (types.JSONRPCResponse, types.JSONRPCError)):
            return
        method = self._asked.pop(str(message.id), None)
        if method is None or not isinstance(message, types.JSONRPCResponse):
            return
        if method == "tools/list":
            self._keep_tools(message.result)
        elif method == "tools/call":
            mend_result(message.result)
        else:
            _mend_greeting(message.result)

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
        if not isinstance(result.get("nextCursor"), str):
            result.pop("nextCursor", None)


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
        """Pass a message on."""
        self._wire.going(item.message)
        await self._stream.send(item)

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


def _mend_greeting(result: dict[str, Any]) -> None:
    if not isinstance(result.get("capabilities"), dict):
        result["capabilities"] = {}
    info = result.get("serverInfo")
    info = info if isinstance(info, dict) else {}
    result["serverInfo"] = {
        name: info[name] if isinstance(info.get(name), str) else "unknown"
        for name in ("name", "version")
    }
    if not isinstance(result.get("instructions", ""), str):
        del result["instructions"]
