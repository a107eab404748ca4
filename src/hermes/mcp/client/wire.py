"""What passes between a server and the SDK, looked at and mended on the way.

The SDK takes a whole answer or none: one odd tool among three hundred would cost all of them, one
odd block of a result the result. So lists of tools are kept as they came, for us to judge tool by
tool, and the SDK is shown only what it is sure to take.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types

from hermes.mcp.client.mending import (
    LISTS,
    mend_abilities,
    mend_cursor,
    mend_greeting,
    mend_list,
    mend_result,
)

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from mcp.client._transport import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage

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
