"""Fast path: `tools/call` over stdio without the SDK's session."""

from __future__ import annotations

import asyncio
import itertools
import math
from typing import TYPE_CHECKING

import anyio
import msgspec
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

from mcp import MCPError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from hermes.mcp.client.stdio_client import Pipes

    Report = Callable[[float, float | None, str | None], None]

_encoded = msgspec.json.Encoder().encode
_PREFIX = "hermes-"


class Direct:
    """The calls under way on one connection."""

    def __init__(self, pipes: Pipes) -> None:
        self._pipes = pipes
        self._ids = itertools.count(1)
        self._open: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._reports: dict[str, Report] = {}

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        seconds: float,
        meta: Mapping[str, Any],
        report: Report | None,
    ) -> dict[str, Any]:
        """The result of one call. Raises `MCPError`; given up, the server is told to stop."""
        ident = f"{_PREFIX}{next(self._ids)}"
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if report is not None:
            params["_meta"] = {**meta, "progressToken": ident}
            self._reports[ident] = report
        elif meta:
            params["_meta"] = meta
        request = {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}
        loop = asyncio.get_running_loop()
        future = self._open[ident] = loop.create_future()
        timer = loop.call_later(seconds, self._expire, future)
        try:
            self._send(request)
            answer = await future
        except asyncio.CancelledError:
            self._stop(ident, "cancelled")
            raise
        except TimeoutError:
            self._stop(ident, "timed out")
            raise MCPError(REQUEST_TIMEOUT, f"no answer within {seconds:g} s") from None
        finally:
            timer.cancel()
            self._open.pop(ident, None)
            self._reports.pop(ident, None)
        if "error" in answer:
            raise _error(answer["error"])
        if "result" not in answer:
            raise MCPError(0, "it answered with neither a result nor an error")
        result = answer["result"]
        return result if isinstance(result, dict) else {"content": [] if result is None else result}

    def takes(self, message: dict[str, Any]) -> bool:
        """Whether a message that came is for one of these calls."""
        ident = message.get("id")
        if isinstance(ident, str) and ident.startswith(_PREFIX) and "method" not in message:
            future = self._open.get(ident)
            # One that was given up is answered late: nobody wants to know any more.
            if future is not None and not future.done():
                future.set_result(message)
            return True
        if message.get("method") == "notifications/progress":
            return self._takes_progress(message.get("params"))
        return False

    def end(self) -> None:
        """Nothing will come any more."""
        for future in self._open.values():
            if not future.done():
                future.set_exception(MCPError(CONNECTION_CLOSED, "Connection closed"))

    def _takes_progress(self, params: Any) -> bool:
        token = params.get("progressToken") if isinstance(params, dict) else None
        report = self._reports.get(token) if isinstance(token, str) else None
        if report is None:
            return False
        done, total = _number(params.get("progress")), _number(params.get("total"))
        said = params.get("message")
        if done is not None:
            report(done, total, said if isinstance(said, str) else None)
        return True

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._pipes.write(_encoded(message) + b"\n")
        except anyio.BrokenResourceError:
            raise MCPError(CONNECTION_CLOSED, "Connection closed") from None

    def _stop(self, ident: str, why: str) -> None:
        told = {"method": "notifications/cancelled", "params": {"requestId": ident, "reason": why}}
        try:
            self._pipes.write(_encoded({"jsonrpc": "2.0", **told}) + b"\n")
        except anyio.BrokenResourceError:
            return

    @staticmethod
    def _expire(future: asyncio.Future[dict[str, Any]]) -> None:
        if not future.done():
            future.set_exception(TimeoutError())


def _number(said: Any) -> float | None:
    """A number that can be reckoned with."""
    try:
        found = float(said) if type(said) in (int, float) else math.nan
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _error(said: Any) -> MCPError:
    said = said if isinstance(said, dict) else {"message": str(said)}
    code, message = said.get("code"), said.get("message")
    return MCPError(
        code if type(code) is int else 0, message if isinstance(message, str) else str(said)[:500]
    )
