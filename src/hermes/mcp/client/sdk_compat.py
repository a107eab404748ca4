"""Compatibility layer over the SDK's client: odd responses are repaired, nothing is dropped.

The SDK validates a response as a whole: one odd tool among three hundred would cost all of them,
one odd block of a result the result. `CompatDispatcher` is the SDK's JSON-RPC dispatcher; it
repairs raw results before the SDK validates them, and keeps tool definitions as the server wrote
them. `CompatSession` finds out quickly which protocol a server speaks, and returns raw tool
results.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

import anyio
import mcp_types as types
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import METHOD_NOT_FOUND
from pydantic import ValidationError

from mcp import Client, ClientSession, MCPError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AsyncExitStack

    from mcp.shared.dispatcher import CallOptions, ProgressFnT
    from mcp.shared.message import MessageMetadata
    from mcp_types import RequestId

# Lists other than tools: the key of the items, and the field that each item needs.
_LISTS = {
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
    "prompts/list": ("prompts", "name"),
}
_CAPABILITIES = ("tools", "resources", "prompts", "logging", "completions")
# The required fields of each type of content block.
_BLOCKS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource": (),
    "resource_link": ("uri", "name"),
}
# Time limit for one write. Over HTTP, a message that the server does not accept blocks all others.
_SEND_SECONDS = 30.0
# Protocol probe: silence before a ping is sent, wait after the ping's answer, and the total limit.
_PING_AFTER_SECONDS = 0.5
_AFTER_PING_SECONDS = 0.25
_PROBE_SECONDS = 3.0


class CompatDispatcher(JSONRPCDispatcher[TransportContext]):
    """The SDK's dispatcher; repairs results and limits the time of a write."""

    def __init__(self, read_stream: Any, write_stream: Any) -> None:
        super().__init__(read_stream, write_stream)
        self._tools: list[Any] = []

    def take_tools(self) -> list[Any]:
        """The tool definitions received since the last call, as the server wrote them."""
        tools, self._tools = self._tools, []
        return tools

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: RequestId | None = None,
    ) -> dict[str, Any]:
        """Send a request; its result, repaired."""
        result = await super().send_raw_request(
            method, params, opts, _related_request_id=_related_request_id
        )
        self.repair(method, result)
        return result

    async def _write(self, message: types.JSONRPCMessage, metadata: MessageMetadata = None) -> None:
        try:
            async with asyncio.timeout(_SEND_SECONDS):
                await super()._write(message, metadata)
        except TimeoutError:
            raise anyio.BrokenResourceError from None

    def repair(self, method: str, result: dict[str, Any]) -> None:
        """Change a result in place so that the SDK accepts it."""
        if method == "tools/call":
            repair_result(result)
        elif method == "tools/list":
            self._keep_tools(result)
        elif method in _LISTS:
            _repair_list(result, *_LISTS[method])
        elif method == "initialize":
            _repair_handshake(result)
        elif method == "server/discover":
            _repair_capabilities(result)

    def _keep_tools(self, result: dict[str, Any]) -> None:
        tools = result.get("tools")
        tools = tools if isinstance(tools, list) else []
        self._tools += tools
        valid: dict[str, dict[str, Any]] = {}
        for tool in tools:
            name = tool.get("name") if isinstance(tool, dict) else None
            if isinstance(name, str) and name:
                schema = tool.get("inputSchema")
                is_object = isinstance(schema, dict) and schema.get("type") == "object"
                valid[name] = {
                    "name": name,
                    "inputSchema": schema if is_object else {"type": "object"},
                }
        result["tools"] = list(valid.values())
        _repair_cursor(result)


class CompatSession(ClientSession):
    """The SDK's session with a short protocol probe and raw tool results."""

    async def send_discover(self, version: str) -> dict[str, Any]:
        """Probe for the newer protocol; `METHOD_NOT_FOUND` for a server that stays silent.

        The SDK waits ten seconds for `server/discover`. Some servers of the older protocol never
        answer it. After half a second of silence a `ping` is sent, which both protocols allow: a
        server that answers the ping only speaks the older protocol. A server that answers neither
        may be starting up; it gets a little longer and the older handshake then. If it speaks the
        newer protocol after all, it says so in its error, and the SDK probes again.
        """
        probe = asyncio.ensure_future(super().send_discover(version))
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                await asyncio.wait([probe], timeout=_PING_AFTER_SECONDS)
                if not probe.done():
                    # The ping is not cancelled: a cancellation is one more message to understand.
                    ping = asyncio.ensure_future(self._ping())
                    await asyncio.wait([probe, ping], return_when=asyncio.FIRST_COMPLETED)
                    await asyncio.wait([probe], timeout=_AFTER_PING_SECONDS)
        except TimeoutError:
            pass
        finally:
            answered = probe.done()
            probe.cancel()
        if answered:
            return probe.result()
        raise MCPError(METHOD_NOT_FOUND, "server/discover was not answered")

    async def _ping(self) -> None:
        try:
            await self.send_request(types.PingRequest(), types.EmptyResult)
        except (MCPError, ValidationError, RuntimeError, anyio.ClosedResourceError):
            return

    async def validate_tool_result(self, name: str, result: types.CallToolResult) -> None:
        """Nothing: `results.py` checks the output schema and keeps a result that violates it."""

    async def call_raw(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        seconds: float,
        on_progress: ProgressFnT | None,
    ) -> dict[str, Any]:
        """The result of `tools/call` as JSON, without the SDK's models."""
        request = {"method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        options: CallOptions = {"timeout": seconds}
        if on_progress is not None:
            options["on_progress"] = on_progress
        self._stamp(request, options)
        return await self._dispatcher.send_raw_request(
            "tools/call", cast("dict[str, Any]", request["params"]), options
        )


class CompatClient(Client):
    """The SDK's client with our session; `server` is a context manager of a dispatcher."""

    async def _build_session(self, exit_stack: AsyncExitStack) -> ClientSession:
        dispatcher = await exit_stack.enter_async_context(cast("Any", self.server))
        return CompatSession(
            dispatcher=dispatcher,
            sampling_callback=self.sampling_callback,
            list_roots_callback=self.list_roots_callback,
            logging_callback=self.logging_callback,
            message_handler=self.message_handler,
            client_info=self.client_info,
            elicitation_callback=self.elicitation_callback,
        )

    @property
    def session(self) -> CompatSession:
        """The session of a connected client."""
        return cast("CompatSession", super().session)


def repair_result(result: dict[str, Any]) -> None:
    """Make a tool result valid; content of unknown shape becomes text."""
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
    required = _BLOCKS.get(kind) if isinstance(kind, str) else None
    if (
        required is not None
        and all(isinstance(block.get(name), str) for name in required)
        and (kind != "resource" or _is_resource(block.get("resource")))
    ):
        # Optional fields are left out: an invalid one would cost the block.
        return {name: block[name] for name in ("type", *required, "resource") if name in block}
    text = block if isinstance(block, str) else json.dumps(block, ensure_ascii=False, default=str)
    return {"type": "text", "text": text}


def _is_resource(resource: Any) -> bool:
    return (
        isinstance(resource, dict)
        and isinstance(resource.get("uri"), str)
        and any(isinstance(resource.get(name), str) for name in ("text", "blob"))
    )


def _repair_cursor(result: dict[str, Any]) -> None:
    if not isinstance(result.get("nextCursor"), str):
        result.pop("nextCursor", None)


def _repair_list(result: dict[str, Any], key: str, required: str) -> None:
    """Keep the items that have the required field, with the fields that are shown."""
    items = result.get(key)
    kept = []
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and isinstance(item.get(required), str):
            names = ("name", "title", "description", "mimeType", required)
            fields = {name: item[name] for name in names if isinstance(item.get(name), str)}
            arguments = item.get("arguments")
            valid = [
                {"name": argument["name"]}
                for argument in (arguments if isinstance(arguments, list) else ())
                if isinstance(argument, dict) and isinstance(argument.get("name"), str)
            ]
            kept.append({"name": fields[required], **fields, "arguments": valid})
    result[key] = kept
    _repair_cursor(result)


def _repair_capabilities(result: dict[str, Any]) -> None:
    capabilities = result.get("capabilities")
    try:
        types.ServerCapabilities.model_validate(capabilities, by_name=False)
    except ValidationError:
        declared = capabilities if isinstance(capabilities, dict) else {}
        result["capabilities"] = {
            name: {flag: on for flag, on in declared[name].items() if isinstance(on, bool)}
            if isinstance(declared[name], dict)
            else {}
            for name in _CAPABILITIES
            if declared.get(name) is True or isinstance(declared.get(name), dict)
        }


def _repair_handshake(result: dict[str, Any]) -> None:
    _repair_capabilities(result)
    info = result.get("serverInfo")
    info = info if isinstance(info, dict) else {}
    result["serverInfo"] = {
        name: info[name] if isinstance(info.get(name), str) else "unknown"
        for name in ("name", "version")
    }
    if not isinstance(result.get("instructions", ""), str):
        del result["instructions"]
