"""Sends one request, hop by hop; the connection checks each hop like the first."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from hermes.core.errors import ToolError
from hermes.runtime.yaml_tools.response import Body

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx2

    from hermes.runtime.yaml_tools.request import Request

MOST_BYTES = 10_000_000
MOST_HOPS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
# What another host may be told of us.
_HARMLESS = frozenset(("accept", "accept-language", "user-agent"))


class Answer:
    """What came back. `what` names the request for people, without its query."""

    __slots__ = ("body", "status", "what")

    def __init__(self, status: int, body: Body, what: str) -> None:
        self.status = status
        self.body = body
        self.what = what


async def send(request: Request, redact: Callable[[str], str]) -> Answer:
    """The answer to a request, after at most five redirects.

    Whatever a server says may hold what it was sent; `redact` goes over it before it is repeated.
    """
    import httpx2

    import hermes.runtime.yaml_tools.connection as connection

    what = f"{request.method} {request.url.partition('?')[0]}"
    async with connection.client() as client:
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
