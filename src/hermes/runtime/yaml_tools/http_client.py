"""HTTP client: one per event loop, connects only to addresses that passed the URL check, re-checks
every redirect.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, cast
from urllib.parse import urljoin, urlsplit

import httpx2

from hermes.core.config import Config
from hermes.core.errors import ToolError
from hermes.core.paths import home_path
from hermes.runtime.yaml_tools.http_messages import Body
from hermes.safety.pinned_http import AsyncPinnedTransport

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, AsyncIterator, Callable
    from typing import Any

    from hermes.runtime.yaml_tools.http_messages import Request


class _Client:
    """One client, the rules it was made for, and how many calls are using it."""

    def __init__(self, rules: dict[str, Any]) -> None:
        self.rules = rules
        self.users = 0
        self.http = httpx2.AsyncClient(
            transport=AsyncPinnedTransport(rules=rules, verify=_tls()),
            # The runtime has the one limit that counts, on the whole call.
            timeout=None,
            follow_redirects=False,
            trust_env=False,
            cookies=cast("Any", CookieJar(DefaultCookiePolicy(allowed_domains=[]))),
        )


class _Kept:
    """The client of one loop; `life` ends it with the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.client: _Client | None = None
        self.life = self._lived(loop)

    async def _lived(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None, None]:
        # Closing a loop ends the generators begun in it, which is how we hear of it.
        try:
            yield
        finally:
            _kept.pop(loop, None)
            if self.client is not None:
                await self.client.http.aclose()


_kept: dict[asyncio.AbstractEventLoop, _Kept] = {}


@asynccontextmanager
async def open_client() -> AsyncIterator[httpx2.AsyncClient]:
    """The client of the running loop, for the length of one call."""
    loop = asyncio.get_running_loop()
    kept = _kept.get(loop)
    if kept is None:
        for closed in [other for other in _kept if other.is_closed()]:
            del _kept[closed]
        kept = _kept[loop] = _Kept(loop)
        await anext(kept.life)
    rules = _rules()
    if kept.client is None or kept.client.rules != rules:
        before, kept.client = kept.client, _Client(rules)
        if before is not None and not before.users:
            await before.http.aclose()
    one = kept.client
    one.users += 1
    try:
        yield one.http
    finally:
        one.users -= 1
        if not one.users and one is not kept.client:
            await one.http.aclose()


@cache
def _tls() -> ssl.SSLContext:
    # Reading the certificates takes longer than a call; all loops can share them.
    return httpx2.create_ssl_context()


_known_rules: tuple[object, dict[str, Any]] | None = None


def _rules() -> dict[str, Any]:
    """The `network` settings, read again only when their file has changed."""
    global _known_rules
    path = home_path("config.yaml")
    try:
        status = os.stat(path)
        seen: object = (path, status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
    except OSError:
        seen = path
    known = _known_rules
    if known is None or known[0] != seen:
        known = _known_rules = (seen, Config.load(path).get("network"))
    return known[1]


MOST_BYTES = 10_000_000
MOST_HOPS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
# What another host may be told of us.
_HARMLESS = frozenset(("accept", "accept-language", "user-agent"))


class Answer:
    """An HTTP response. `what` is a short name of the request, without its query."""

    __slots__ = ("body", "status", "what")

    def __init__(self, status: int, body: Body, what: str) -> None:
        self.status = status
        self.body = body
        self.what = what


async def send(request: Request, redact: Callable[[str], str]) -> Answer:
    """The answer to a request, after at most five redirects.

    A server may echo secrets of the request; `redact` masks them in error texts.
    """
    import httpx2

    what = f"{request.method} {request.url.partition('?')[0]}"
    async with open_client() as client:
        try:
            return await _follow(client, request, what)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            detail = redact(str(error)) or type(error).__name__
            raise ToolError(f"{what} failed: {detail}") from None


async def _follow(client: httpx2.AsyncClient, request: Request, what: str) -> Answer:
    method, url, headers, body = request.method, request.url, request.headers, request.body
    for _ in range(MOST_HOPS + 1):
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        async with client.stream(method, url, headers=raw, content=body) as response:
            status = response.status_code
            target = response.headers.get("location", "")
            if status not in _REDIRECTS or not target:
                kind = response.headers.get("content-type", "")
                return Answer(status, Body(await _content(response, what), kind), what)
        if status not in (307, 308) and method != "HEAD":
            method, body = "GET", None
            headers = {name: v for name, v in headers.items() if name.lower() != "content-type"}
        try:
            before, url = url, urljoin(url, target)
            leaves = _origin(url) != _origin(before)
        except ValueError:
            raise ToolError(f"{what} redirects to an address that can't be") from None
        if leaves:
            if body is not None:
                raise ToolError(f"{what} wants the data sent on to another host")
            headers = {name: v for name, v in headers.items() if name.lower() in _HARMLESS}
    raise ToolError(f"{what} redirects more than {MOST_HOPS} times")


async def _content(response: httpx2.Response, what: str) -> bytes:
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > MOST_BYTES:
            raise ToolError(
                f"the answer to {what} is larger than {MOST_BYTES} bytes",
                hint="Ask for less at once.",
            )
    return bytes(content)


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname or "", parts.port or usual
