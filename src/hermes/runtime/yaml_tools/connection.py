"""The HTTP client of each event loop, which connects to checked addresses only.

It is kept, so that connections are used again, and made anew when the `network` settings change,
so that none is used that they no longer allow. It keeps no cookies and is closed with its loop.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, cast

import httpx2

from hermes.core.config import Config
from hermes.core.home import home_path
from hermes.safety.connect import AsyncPinnedTransport

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, AsyncIterator
    from typing import Any


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
async def client() -> AsyncIterator[httpx2.AsyncClient]:
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
