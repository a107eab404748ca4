"""Connection to a model server: POST requests, with a timeout for each wait.

Connections are kept open between requests, per event loop. Requests go through `Http1Client`, or
through httpx2 where a proxy is configured.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from hermes.agent.providers.errors import BrokenStream, RetryLater
from hermes.core.model_protocol import ModelError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping
    from typing import Protocol

    class Response(Protocol):
        """A response whose body is still to be read."""

        @property
        def status_code(self) -> int: ...
        @property
        def headers(self) -> Mapping[str, str]: ...
        def chunks(self) -> AsyncGenerator[bytes, None]: ...
        async def aclose(self) -> None: ...

    class Client(Protocol):
        """Connections of one event loop."""

        async def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Response: ...
        async def aclose(self) -> None: ...


_ERROR_BYTES = 64 * 1024
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy")


class Reply:
    """A response; the methods read its body, with the idle timeout."""

    def __init__(self, response: Response, idle: float) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self._response = response
        self._idle = idle

    @property
    def streamed(self) -> bool:
        """Whether it is a stream of events, not one JSON document."""
        return "json" not in self.headers.get("content-type", "")

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives; raises `BrokenStream` if it stalls or breaks off."""
        from hermes.agent.providers.http1_client import ClosedError

        chunks = self._response.chunks()
        while True:
            try:
                async with asyncio.timeout(self._idle):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise BrokenStream(f"nothing came for {self._idle:g} s") from None
            except ClosedError as error:
                raise BrokenStream(f"the connection broke ({_reason(error)})") from None
            yield chunk

    async def error_text(self) -> bytes:
        """The first part of an error body."""
        body = b""
        with suppress(BrokenStream):
            async for chunk in self.chunks():
                body += chunk
                if len(body) > _ERROR_BYTES:
                    break
        return body[:_ERROR_BYTES]

    async def whole(self, limit: int = 64 * 1024 * 1024) -> bytes:
        """The whole body."""
        parts, size = [], 0
        async for chunk in self.chunks():
            size += len(chunk)
            if size > limit:
                raise BrokenStream(f"an answer of more than {limit:,} bytes")
            parts.append(chunk)
        return b"".join(parts)


class Connection:
    """Sends POST requests to one server, from any event loop.

    An event loop that ends, such as that of `asyncio.run`, closes its connections.
    """

    def __init__(self, base_url: str, *, name: str, idle: float, first: float) -> None:
        """Nothing is opened yet.

        Args:
            base_url: The base address of the API.
            name: The name of the service in errors.
            idle: Seconds without a byte until a response counts as stalled.
            first: Seconds until a response must begin.
        """
        self.base_url = base_url.rstrip("/")
        self.name = name
        self.idle = idle
        self.first = first
        self._clients: WeakKeyDictionary[
            asyncio.AbstractEventLoop, tuple[Client, AsyncGenerator[None, None]]
        ] = WeakKeyDictionary()

    @asynccontextmanager
    async def post(
        self, path: str, body: bytes, headers: Mapping[str, str]
    ) -> AsyncIterator[Reply]:
        """Send a request; the reply. Leaving the block closes it."""
        from hermes.agent.providers.http1_client import AddressError, ClosedError, ConnectError

        try:
            client = await self._client()
            async with asyncio.timeout(self.first):
                response = await client.post(path, body, headers)
        except TimeoutError:
            message = f"{self.name} did not begin to answer within {self.first:g} s"
            raise BrokenStream(message) from None
        except AddressError as error:
            raise self._unusable(str(error)) from None
        except ConnectError as error:
            raise RetryLater(self._unreachable(error), tries=2) from None
        except ClosedError as error:
            message = f"{self.name} closed the connection ({_reason(error)})"
            raise RetryLater(ModelError(message, hint="Try again later.", retryable=True)) from None
        try:
            yield Reply(response, self.idle)
        finally:
            await response.aclose()

    async def close(self) -> None:
        """Close the connections of all event loops."""
        here = asyncio.get_running_loop()
        for loop, (_, closer) in list(self._clients.items()):
            self._clients.pop(loop, None)
            if loop is here:
                await closer.aclose()
            elif loop.is_running():
                ended = asyncio.run_coroutine_threadsafe(_close(closer), loop)
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.wrap_future(ended), 2.0)
            elif not loop.is_closed():
                # Run it for a moment, unless its thread has just started it again.
                with suppress(RuntimeError):
                    await asyncio.to_thread(_run_close, loop, closer)

    async def _client(self) -> Client:
        loop = asyncio.get_running_loop()
        client, closer = self._clients.get(loop, (None, None))
        if client is None or closer is None:
            # A proxy leads out of this machine, not into it.
            if not is_loopback(self.base_url) and _proxy_configured():
                from hermes.agent.providers.proxy_client import ProxyClient

                client = ProxyClient(self.base_url)
            else:
                from hermes.agent.providers.http1_client import Http1Client

                client = Http1Client(self.base_url)
            closer = _closer(client)
            self._clients[loop] = (client, closer)
            await anext(closer)
        return client

    def _unreachable(self, error: Exception) -> ModelError:
        if is_loopback(self.base_url):
            hint = "Start the server, or choose another model: hermes model."
        else:
            hint = "Look at the network and at model.base_url."
        message = f"{self.name} can't be reached at {shown_url(self.base_url)} ({_reason(error)})"
        return ModelError(message, hint=hint, retryable=True)

    def _unusable(self, reason: str) -> ModelError:
        return ModelError(
            f"{shown_url(self.base_url)!r} is no address of a model ({reason[:200]})",
            hint="hermes config set model.base_url https://…",
        )


async def _closer(client: Client) -> AsyncGenerator[None, None]:
    """Closes the client when it is closed: an event loop that ends closes its generators."""
    try:
        yield
    finally:
        await client.aclose()


async def _close(closer: AsyncGenerator[None, None]) -> None:
    await closer.aclose()


def _run_close(loop: asyncio.AbstractEventLoop, closer: AsyncGenerator[None, None]) -> None:
    closing = _close(closer)
    try:
        loop.run_until_complete(closing)
    finally:
        closing.close()


def _proxy_configured() -> bool:
    if any(os.environ.get(name) or os.environ.get(name.upper()) for name in _PROXY_VARIABLES):
        return True
    if sys.platform in ("darwin", "win32"):
        from urllib.request import getproxies

        return bool(getproxies())
    return False


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    from urllib.parse import urlsplit

    try:
        host = (urlsplit(url).hostname or "").lower()
    except ValueError:
        return False
    if host.startswith("127."):
        return host.replace(".", "").isdecimal()
    return host in ("localhost", "::1") or host.endswith(".localhost")


def shown_url(url: str) -> str:
    """An address without user, password and query."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return url.partition("@")[2] or url
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
