"""HTTP transport that connects only to addresses the URL rules allowed, resolved once (no DNS
rebinding).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpcore2
import httpx2

from hermes.core.errors import ToolError
from hermes.safety.hostnames import HostError
from hermes.safety.urls import Decision, check_host, split_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hermes.safety.urls import Resolve, UrlRules

    Rules = UrlRules | Mapping[str, Any] | None


# The pool's own ten would let a few hung requests block every other host.
_CONNECTIONS = 100


class UrlRefusedError(ToolError):
    """A request was not sent because the rules don't allow its place."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"not fetched: {reason}", hint="Use a public http or https address.")
        self.url = url
        self.reason = reason


class PinnedTransport(httpx2.HTTPTransport):
    """The transport for `httpx2.Client`; refused places raise `UrlRefusedError`."""

    def __init__(
        self, *, rules: Rules = None, resolve: Resolve | None = None, verify: Any = True
    ) -> None:
        context = httpx2.create_ssl_context(verify=verify)
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore2.ConnectionPool(
            ssl_context=context,
            max_connections=_CONNECTIONS,
            network_backend=_PinnedBackend(rules, resolve),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        _check_form(request)
        return super().handle_request(request)


class AsyncPinnedTransport(httpx2.AsyncHTTPTransport):
    """The transport for `httpx2.AsyncClient`; refused places raise `UrlRefusedError`."""

    def __init__(
        self, *, rules: Rules = None, resolve: Resolve | None = None, verify: Any = True
    ) -> None:
        context = httpx2.create_ssl_context(verify=verify)
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=_CONNECTIONS,
            network_backend=_AsyncPinnedBackend(rules, resolve),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        _check_form(request)
        return await super().handle_async_request(request)


def _check_form(request: httpx2.Request) -> None:
    """Refuse a URL that other programs would read differently, before anything is sent."""
    url = str(request.url)
    try:
        split_url(url)
    except HostError as error:
        raise UrlRefusedError(url, str(error)) from None


def _addresses(decision: Decision, host: str) -> tuple[str, ...]:
    if not decision.allowed:
        raise UrlRefusedError(host, decision.reason)
    return decision.addresses


class _PinnedBackend(httpcore2.NetworkBackend):
    """Dials checked addresses."""

    def __init__(self, rules: Rules, resolve: Resolve | None) -> None:
        self._rules = rules
        self._resolve = resolve
        self._inner = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        decision = check_host(host, port, rules=self._rules, resolve=self._resolve)
        *others, last = _addresses(decision, host)
        for address in others:
            try:
                return self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return self._inner.connect_tcp(last, port, timeout, local_address, socket_options)

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


class _AsyncPinnedBackend(httpcore2.AsyncNetworkBackend):
    """Dials checked addresses; names are resolved in a worker thread, within the timeout."""

    def __init__(self, rules: Rules, resolve: Resolve | None) -> None:
        self._rules = rules
        self._resolve = resolve
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the backend's signature)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        *others, last = _addresses(await self._check(host, port, timeout), host)
        for address in others:
            try:
                return await self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await self._inner.connect_tcp(last, port, timeout, local_address, socket_options)

    async def _check(self, host: str, port: int, limit: float | None) -> Decision:
        import anyio
        from anyio.to_thread import run_sync

        def check() -> Decision:
            return check_host(host, port, rules=self._rules, resolve=self._resolve)

        try:
            with anyio.fail_after(limit):
                return await run_sync(check, abandon_on_cancel=True)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"{host} was not resolved in time") from error

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)
