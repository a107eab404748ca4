"""Connection to a model server: POST requests with a timeout for each wait; errors, and whether to
retry.

Connections are kept open between requests, per event loop. Requests go through `Http1Client`, or
through httpx2 where a proxy is configured.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import msgspec

from hermes.core.model_protocol import ModelError, WindowError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping
    from typing import Any, Protocol


_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
# Longest wait that a server may ask for.
_MAX_WAIT_SECONDS = 120.0

# Text patterns, compiled when an error occurs: compiling costs time at start-up.
_TOO_LONG = (
    r"context[ _-]?(?:length|window|size)|maximum context|prompt (?:is )?too long|too many tokens"
    r"|exceeds? (?:the )?(?:available )?context|input (?:is )?too long|reduce the length"
    r"|exceeds the (?:maximum|limit).{0,40}tokens|request_too_large|string_above_max_length"
)
_NO_CREDIT = (
    r"insufficient[ _](?:quota|balance|credits?|funds)|credit balance|billing|payment|exceeded your"
    r" current quota|out of credits"
)
_NO_MODEL = r"model.{0,80}(?:not (?:found|exist)|does not exist|unknown|invalid)"


class RetryLater(Exception):  # noqa: N818 - not an error yet
    """A request failed before the answer began and can be retried, after `wait` seconds if set."""

    def __init__(self, error: ModelError, wait: float | None = None, *, tries: int = 5) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait = wait
        self.tries = tries


class BrokenStream(Exception):  # noqa: N818 - not an error yet
    """A stream that broke off, stalled, or is invalid."""


def response_error(
    status: int, headers: Mapping[str, str], body: bytes, *, where: str, model: str
) -> ModelError | RetryLater:
    """The error for a response with an error status."""
    text, code = _body_fields(body)
    return _error(status, text, code, headers, where=where, model=model)


def stream_error(
    event: dict[str, Any], *, where: str, model: str
) -> ModelError | RetryLater | None:
    """The error that an event of a stream reports; None for any other event."""
    error = event.get("error")
    if not error and event.get("type") == "response.failed":
        error = (event.get("response") or {}).get("error")
    if not error and event.get("type") == "error":
        error = event
    if not error:
        return None
    text, code = _error_fields(error)
    numbers = {"rate_limit_error": 429, "rate_limit_exceeded": 429, "overloaded_error": 529}
    numbers |= {"api_error": 500, "server_error": 500, "invalid_request_error": 400}
    numbers |= {"authentication_error": 401, "permission_error": 403, "timeout_error": 504}
    status = int(code) if code.isdecimal() and len(code) == 3 else numbers.get(code, 500)
    return _error(status, text, code, {}, where=where, model=model)


def _error(
    status: int, text: str, code: str, headers: Mapping[str, str], *, where: str, model: str
) -> ModelError | RetryLater:
    """Classify an error by its status and text."""
    reason = _redacted_line(text)
    message = f"{where} answered {status}" + (f": {reason}" if reason else "")
    if status == 413 or (status in (400, 422, 500) and _matches(_TOO_LONG, f"{code} {text}")):
        return WindowError(
            f"the conversation is too long for {model}: {reason or status}",
            hint="Compress the conversation, or choose a model with a larger window.",
            status=status,
        )
    if status == 402 or (status in (400, 403, 429) and _matches(_NO_CREDIT, f"{code} {text}")):
        return ModelError(message, hint="Add credit there, or choose another model.", status=status)
    if status in (401, 403):
        return ModelError(message, hint="Look at the key: hermes setup.", status=status)
    if status == 404 or (status == 400 and _matches(_NO_MODEL, text)):
        return ModelError(
            message,
            hint=f"Look at the model's name ({model}) and the address: hermes model.",
            status=status,
        )
    if 300 <= status < 400:
        target = headers.get("location", "elsewhere")
        hint = f"The address leads to {target[:200]}: set model.base_url to it."
        return ModelError(message, hint=hint, status=status)
    if status not in _TRANSIENT or headers.get("x-should-retry") == "false":
        return ModelError(
            message,
            hint=None if reason else "The server gave no reason; its log may.",
            status=status,
        )
    error = ModelError(message, hint="Try again later.", retryable=True, status=status)
    wait = retry_after(headers)
    if wait is not None and wait > _MAX_WAIT_SECONDS:
        error.hint = f"It asks to wait for {wait:.0f} s. Try again then, or use another model."
        return error
    return RetryLater(error, wait)


def _matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from the response headers; None if there is no such header."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) * scale
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return _seconds_until(headers.get("retry-after", ""))


def _seconds_until(date: str) -> float | None:
    import time
    from email.utils import mktime_tz, parsedate_tz

    parsed = parsedate_tz(date) if date else None
    try:
        return None if parsed is None else max(mktime_tz(parsed) - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None


def _body_fields(body: bytes) -> tuple[str, str]:
    """Text and code of an error body: JSON of several shapes, HTML or plain text."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = body.decode("utf-8", "replace")
        # An HTML page of a proxy: its title is enough.
        title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
        return (title.group(1) if title else text), ""
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict):
        return _error_fields(value.get("error") or value.get("errors") or value)
    return str(value), ""


def _error_fields(error: Any) -> tuple[str, str]:
    if isinstance(error, list) and error:
        error = error[0]
    if not isinstance(error, dict):
        return str(error), ""
    text = error.get("message") or error.get("detail") or error.get("msg") or ""
    inner = error.get("metadata")
    if isinstance(inner, dict) and inner.get("raw"):
        # A gateway quotes the error of the provider behind it.
        text = f"{text}: {inner['raw']}"
    if not isinstance(text, str):
        text = msgspec.json.encode(text).decode()
    code = error.get("code") or error.get("type") or error.get("status") or ""
    return text or msgspec.json.encode(error).decode(), str(code)


def _redacted_line(text: str) -> str:
    """An error text as one line without secrets: some servers repeat the rejected key."""
    from hermes.safety import redact

    line = " ".join(redact(text).split())
    return line if len(line) <= 400 else f"{line[:400]}…"


if TYPE_CHECKING:

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
