"""How much a server on the network may send us at once, and how long it may take to let us go.

Compressed answers are not taken: a few bytes of them can be any number of bytes for us. What comes
as a stream of events is limited event by event, by the SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MOST_BYTES = 64 * 1024 * 1024
GOODBYE_SECONDS = 1.0
# Sent with each request.
HEADERS = {"Accept-Encoding": "identity"}


async def hasten(request: httpx2.Request) -> None:
    """A hook for requests: a goodbye is said, and not waited for long."""
    if request.method == "DELETE":
        request.extensions["timeout"] = dict.fromkeys(
            ("connect", "read", "write", "pool"), GOODBYE_SECONDS
        )


async def limit(response: httpx2.Response) -> None:
    """A hook for responses, before anything of their content is read."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise httpx2.DecodingError(
            f"it sends what is compressed ({encoding[:40]}), which was not asked for",
            request=response.request,
        )
    if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        response.stream = _Limited(response.stream, response.request)  # type: ignore[arg-type]


class _Limited(httpx2.AsyncByteStream):
    """The bytes of a response, up to a limit."""

    def __init__(self, stream: httpx2.AsyncByteStream, request: httpx2.Request) -> None:
        self._stream = stream
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > MOST_BYTES:
                raise httpx2.ReadError(
                    f"an answer grew past {MOST_BYTES >> 20} MiB", request=self._request
                )
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
