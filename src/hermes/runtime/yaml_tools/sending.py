"""Sends one request, hop by hop: every address is checked first, and is the one connected to.

One client per event loop is kept, so that connections are used again. It keeps no cookies, reads
no proxy from the environment, and is closed with its loop.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from hermes.core.errors import ToolError
from hermes.runtime.yaml_tools.response import Body

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx2

    from hermes.runtime.yaml_tools.request import Request

MOST_BYTES = 10_000_000
MOST_HOPS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
# What another host may be told of us.
_HARMLESS = frozenset(("accept", "accept-language", "user-agent"))


class Answer:
    """What came back. `what` names the request for people, without its query."""

    __slots__ = ("body", "reason", "status", "what")

    def __init__(self, status: int, reason: str, body: Body, what: str) -> None:
        self.status = status
        self.reason = reason
        self.body = body
        self.what = what


async def send(request: Request) -> Answer:
    """The answer to a request, after at most five redirects."""
    import httpx2

    client = await _client()
    method, url, headers, body = request.method, request.url, request.headers, request.body
    for _ in range(MOST_HOPS + 1):
        try:
            async with client.stream(
                method,
                url,
                headers=[(name.encode(), value.encode()) for name, value in headers.items()],
                content=body,
            ) as response:
                target = response.headers.get("location", "")
                if response.status_code not in _REDIRECTS or not target:
                    content = await _content(response)
                    kind = response.headers.get("content-type", "")
                    what = _named(method, url)
                    return Answer(
                        response.status_code, response.reason_phrase, Body(content, kind), what
                    )
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            detail = str(error) or type(error).__name__
            raise ToolError(f"{_named(method, url)} failed: {detail}") from None
        before, url = url, urljoin(url, target)
        if response.status_code not in (307, 308) and method != "HEAD":
            method, body = "GET", None
        if _origin(url) != _origin(before):
            if body is not None:
                raise ToolError(
                    f"{_named(method, before)} wants the data sent on to another host: {_site(url)}"
                )
            headers = {name: v for name, v in headers.items() if name.lower() in _HARMLESS}
    raise ToolError(f"{_named(request.method, request.url)} redirects more than {MOST_HOPS} times")


async def _content(response: httpx2.Response) -> bytes:
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > MOST_BYTES:
            raise ToolError(
                f"the answer of {_site(str(response.url))} is larger than {MOST_BYTES} bytes",
                hint="Ask for less at once.",
            )
    return bytes(content)


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return (
        parts.scheme,
        parts.hostname or "",
        parts.port or {"http": 80, "https": 443}.get(parts.scheme),
    )


def _site(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _named(method: str, url: str) -> str:
    return f"{method} {_site(url)}{urlsplit(url).path}"


_clients: dict[asyncio.AbstractEventLoop, tuple[httpx2.AsyncClient, object]] = {}


async def _client() -> httpx2.AsyncClient:
    loop = asyncio.get_running_loop()
    kept = _clients.get(loop)
    if kept is None:
        life = _lived()
        client = await anext(life)
        kept = _clients[loop] = (client, life)
    return kept[0]


async def _lived() -> AsyncGenerator[httpx2.AsyncClient, None]:
    """A client that is closed with its loop: closing a loop ends the generators it has begun."""
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    import httpx2

    loop = asyncio.get_running_loop()
    client = httpx2.AsyncClient(
        transport=None,
        # The runtime has the one limit that counts, on the whole call.
        timeout=None,
        follow_redirects=False,
        trust_env=False,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
    )
    try:
        yield client
    finally:
        _clients.pop(loop, None)
        await client.aclose()
