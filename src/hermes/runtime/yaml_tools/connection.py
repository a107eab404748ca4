"""Connections that lead to the checked address and nowhere else; one client per event loop.

A name may resolve to another address between the check and the connection. Here it is resolved
once, by the check, and the socket is opened to what was checked; TLS still speaks to the name.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, cast

import httpcore2
import httpx2

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable
    from typing import Any

_address: contextvars.ContextVar[str] = contextvars.ContextVar("checked_address")


async def check(url: str) -> None:
    """Let this task connect to where `url` leads now; raises when the rules forbid it."""
    from hermes.safety.urls import check_url

    # Asking for the address of a name can take seconds; the loop goes on meanwhile.
    decision = await asyncio.to_thread(check_url, url, rules=_rules())
    if not decision.allowed:
        raise ToolError(
            f"not sent: {decision.reason}", hint="A person can allow it in the settings."
        )
    _address.set(str(decision.address))


_known_rules: tuple[Any, dict[str, Any]] | None = None


def _rules() -> dict[str, Any]:
    """The `network` settings, read again only when their file has changed."""
    global _known_rules
    from hermes.core.config import Config
    from hermes.core.home import home_path

    path = home_path("config.yaml")
    try:
        status = os.stat(path)
        seen: Any = (path, status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
    except OSError:
        seen = (path,)
    known = _known_rules
    if known is None or known[0] != seen:
        known = _known_rules = (seen, Config.load(path).get("network"))
    return known[1]


class _CheckedAddresses(httpcore2.AsyncNetworkBackend):
    """Opens sockets to the address that the task's last check gave, whatever the name says."""

    def __init__(self) -> None:
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,  # noqa: ARG002 - the check has resolved it
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is not ours
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        return await self._inner.connect_tcp(
            _address.get(), port, timeout, local_address, socket_options
        )

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class _Transport(httpx2.AsyncHTTPTransport):
    """The usual transport over checked addresses."""

    def __init__(self) -> None:
        context = httpx2.create_ssl_context(trust_env=False)
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=100,
            max_keepalive_connections=20,
            keepalive_expiry=30.0,
            network_backend=_CheckedAddresses(),
        )


_clients: dict[asyncio.AbstractEventLoop, tuple[httpx2.AsyncClient, object]] = {}


async def client() -> httpx2.AsyncClient:
    """The client of the running loop: no cookies, no proxies, no redirects of its own."""
    loop = asyncio.get_running_loop()
    kept = _clients.get(loop)
    if kept is None:
        for closed in [other for other in _clients if other.is_closed()]:
            del _clients[closed]
        life = _lived(loop)
        kept = _clients[loop] = (await anext(life), life)
    return kept[0]


async def _lived(loop: asyncio.AbstractEventLoop) -> AsyncGenerator[httpx2.AsyncClient, None]:
    """A client that is closed with its loop: closing a loop ends the generators it has begun."""
    one = httpx2.AsyncClient(
        transport=_Transport(),
        # The runtime has the one limit that counts, on the whole call.
        timeout=None,
        follow_redirects=False,
        trust_env=False,
        cookies=cast("Any", CookieJar(DefaultCookiePolicy(allowed_domains=[]))),
    )
    try:
        yield one
    finally:
        _clients.pop(loop, None)
        await one.aclose()
