"""HTTP connection to a model server: one pool, a timeout for each wait."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from hermes.agent.providers.errors import BrokenStream, RetryLater
from hermes.core.model_protocol import ModelError

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    import httpx2

    Kept = tuple[httpx2.AsyncClient, AsyncGenerator[None, None]]

CONNECT_SECONDS = 20.0
_ERROR_BYTES = 64 * 1024


class Reply:
    """The beginning of an answer; the rest is read from it."""

    def __init__(self, response: httpx2.Response, idle: float) -> None:
        self.status: int = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._idle = idle

    @property
    def streamed(self) -> bool:
        """Whether events follow, and not one whole answer."""
        return "json" not in self.headers.get("content-type", "")

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The bytes as they come; raises `BrokenStream` when they stop before the end."""
        import httpx2

        chunks = self._response.aiter_bytes()
        while True:
            try:
                async with asyncio.timeout(self._idle):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise BrokenStream(f"nothing came for {self._idle:g} s") from None
            except (httpx2.TransportError, httpx2.DecodingError) as error:
                raise BrokenStream(f"the connection broke ({_reason(error)})") from None
            yield chunk

    async def error_text(self) -> bytes:
        """As much of an error's body as is worth reading."""
        found = b""
        try:
            async for chunk in self.chunks():
                found += chunk
                if len(found) > _ERROR_BYTES:
                    break
        except BrokenStream:
            pass
        return found[:_ERROR_BYTES]

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
    """Posts to one server. Connections are kept open between requests, per event loop.

    A loop that ends, such as that of `asyncio.run`, closes its own.
    """

    def __init__(self, base_url: str, *, name: str, idle: float, first: float) -> None:
        """Nothing is opened yet.

        Args:
            base_url: Where the API is.
            name: What errors call it.
            idle: How many seconds may pass without a byte in the middle of an answer.
            first: How many seconds it may take until an answer begins.
        """
        self.base_url = base_url.rstrip("/")
        self.name = name
        self.idle = idle
        self.first = first
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Kept] = WeakKeyDictionary()

    @asynccontextmanager
    async def post(
        self, path: str, body: bytes, headers: Mapping[str, str]
    ) -> AsyncIterator[Reply]:
        """Send; the answer's beginning. Leaving the block, for whatever reason, closes it."""
        import httpx2

        client = await self._client()
        try:
            request = client.build_request(
                "POST", f"{self.base_url}{path}", content=body, headers=dict(headers)
            )
        except (httpx2.InvalidURL, ValueError) as error:
            raise self._unusable(str(error)) from None
        try:
            async with asyncio.timeout(self.first):
                response = await client.send(request, stream=True)
        except TimeoutError:
            raise BrokenStream(
                f"{self.name} did not begin to answer within {self.first:g} s"
            ) from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            raise RetryLater(self._unreachable(error), tries=2) from None
        except httpx2.UnsupportedProtocol as error:
            raise self._unusable(str(error)) from None
        except httpx2.TransportError as error:
            message = f"{self.name} closed the connection ({_reason(error)})"
            raise RetryLater(ModelError(message, hint="Try again later.", retryable=True)) from None
        try:
            yield Reply(response, self.idle)
        finally:
            await response.aclose()

    async def close(self) -> None:
        """Close what is open, in whichever event loop it was opened."""
        here = asyncio.get_running_loop()
        for loop, (_, keeper) in list(self._clients.items()):
            self._clients.pop(loop, None)
            if loop is here:
                await keeper.aclose()
            elif loop.is_running():
                ended = asyncio.run_coroutine_threadsafe(_closed(keeper), loop)
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.wrap_future(ended), 2.0)
            elif not loop.is_closed():
                # It runs again for a moment, unless its thread has just taken it up.
                with suppress(RuntimeError):
                    await asyncio.to_thread(_finish, loop, keeper)

    async def _client(self) -> httpx2.AsyncClient:
        import httpx2

        loop = asyncio.get_running_loop()
        client, keeper = self._clients.get(loop, (None, None))
        if client is None or keeper is None:
            local = is_loopback(self.base_url)
            client = httpx2.AsyncClient(
                # Waits for bytes are limited where they are made.
                timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
                limits=httpx2.Limits(max_keepalive_connections=8, keepalive_expiry=60.0),
                verify=_certificates() if self.base_url.startswith("https:") else False,
                # A proxy leads out of this machine, not into it.
                trust_env=not local,
            )
            keeper = _open(client)
            self._clients[loop] = (client, keeper)
            await anext(keeper)
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


async def _open(client: httpx2.AsyncClient) -> AsyncGenerator[None, None]:
    """Open until it is closed: a loop that ends closes the generators that were begun in it."""
    try:
        yield
    finally:
        await client.aclose()


async def _closed(keeper: AsyncGenerator[None, None]) -> None:
    await keeper.aclose()


def _finish(loop: asyncio.AbstractEventLoop, keeper: AsyncGenerator[None, None]) -> None:
    closing = _closed(keeper)
    try:
        loop.run_until_complete(closing)
    finally:
        closing.close()


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
    """An address without what may be secret in it."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return url.partition("@")[2] or url
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def _reason(error: Exception) -> str:
    cause = error.__cause__ or error
    text = " ".join(str(cause).split()) or " ".join(str(error).split())
    return text[:200] or type(error).__name__


_context: ssl.SSLContext | None = None


def _certificates() -> ssl.SSLContext:
    """One for all connections: reading the certificates takes longer than a request."""
    global _context
    if _context is None:
        import httpx2

        _context = httpx2.create_ssl_context()
    return _context
