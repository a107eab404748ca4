"""One connection of a client over HTTP, which does not wait for ever for what it will ask.

Uvicorn limits how long a connection may rest between two requests, and the guard how long the body
of one may take. Between the two lies the head: whoever sends it too slowly, or not at all, would
keep a place that somebody else needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

# How long the head of a request may take, from the connection or from its first byte.
HEAD_SECONDS = 10.0


class Connection(H11Protocol):
    """A connection that is ended when the head of a request does not come in time."""

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody came."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Something came."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """They have gone."""
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Have the time run while the head of a request is awaited."""
        if not self._awaits():
            self._forget()
        elif self._limit is None:
            self._limit = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def _awaits(self) -> bool:
        # Resting between two requests has a limit of its own.
        return self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is None

    def _forget(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def _too_slow(self) -> None:
        self._limit = None
        if self._awaits():
            self.transport.close()
