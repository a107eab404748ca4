"""HTTP client for model servers behind a proxy: httpx2, which reads the proxy settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2

from hermes.agent.providers.http1_client import (
    CONNECT_SECONDS,
    AddressError,
    ClosedError,
    ConnectError,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping


class _Response:
    def __init__(self, response: httpx2.Response) -> None:
        self.status_code: int = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response = response

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body, decompressed; raises `ClosedError`."""
        try:
            async for chunk in self._response.aiter_bytes():
                yield chunk
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise ClosedError(_reason(error)) from None

    async def aclose(self) -> None:
        await self._response.aclose()


class ProxyClient:
    """The methods of `Http1Client`, through httpx2."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._client = httpx2.AsyncClient(
            # The caller limits the wait for bytes.
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
            limits=httpx2.Limits(max_keepalive_connections=8, keepalive_expiry=60.0),
        )

    async def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> _Response:
        """Send a request; its response, with the body still to be read."""
        try:
            request = self._client.build_request(
                "POST", f"{self._base_url}{path}", content=body, headers=dict(headers)
            )
            return _Response(await self._client.send(request, stream=True))
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            raise ConnectError(_reason(error)) from None
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, ValueError) as error:
            raise AddressError(str(error)) from None
        except httpx2.TransportError as error:
            raise ClosedError(_reason(error)) from None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _reason(error: Exception) -> str:
    return str(error.__cause__ or error) or str(error) or type(error).__name__
