"""HTTP transport: the SDK's transport with checks of request ids, disconnects and single
requests.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
from mcp_types import INVALID_REQUEST

from hermes.core.json_text import to_json
from hermes.mcp.server import sessions
from hermes.mcp.server.http_guard import BODY, answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from hermes.mcp.server.http_guard import Message, Receive, Scope, Send


class _Head(msgspec.Struct):
    id: int | str | msgspec.UnsetType = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET


_decoded = msgspec.json.Decoder(_Head).decode


class InvalidRequestIdError(Exception):
    """A request with an invalid id; `body` is the error response."""

    def __init__(self, number: int | str | None, why: str) -> None:
        super().__init__(why)
        error = {"code": INVALID_REQUEST, "message": why}
        self.body = to_json({"jsonrpc": "2.0", "id": number, "error": error}).encode()


class RequestIds:
    """The numbers under which the clients of each session wait for an answer."""

    def __init__(self) -> None:
        self._open: set[tuple[str, int | str]] = set()

    @contextmanager
    def waiting(self, session: str, body: bytes) -> Iterator[Callable[[], None]]:
        """While a request of a session is answered; raises `InvalidRequestIdError`.

        Yields a function that marks it as answered earlier.
        """
        number = _number(body)
        if number is None or not session:
            yield lambda: None
            return
        key = session, number
        if key in self._open:
            raise InvalidRequestIdError(number, "another request under that id is not answered yet")
        self._open.add(key)
        ended = False

        def answered() -> None:
            nonlocal ended
            if not ended:
                ended = True
                self._open.discard(key)

        try:
            yield answered
        finally:
            answered()


def _number(body: bytes) -> int | str | None:
    """The id of a request; None for a notification or a response."""
    try:
        head = _decoded(body)
    except (ValueError, RecursionError):
        if _is_asked_wrongly(body):
            raise InvalidRequestIdError(
                None, "an id is a number without a fraction, or a text"
            ) from None
        # No message at all, which is found out elsewhere.
        return None
    if head.method is msgspec.UNSET or head.id is msgspec.UNSET:
        return None
    return head.id


def _is_asked_wrongly(body: bytes) -> bool:
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, dict) or not isinstance(value.get("method"), str):
        return False
    number = value.get("id", 0)
    return isinstance(number, bool) or not isinstance(number, (int, str))


_SESSION = b"mcp-session-id"
# From where a stream that broke off is to go on. Nothing that was said is kept: it begins anew.
_LAST = b"last-event-id"


class HttpTransport:
    """The transport as an application; of `most` sessions, those that are away make room."""

    def __init__(
        self, manager: StreamableHTTPSessionManager, known: sessions.Sessions, *, most: int
    ) -> None:
        self._manager = manager
        self._sessions = known
        self._most = most
        self._numbers = RequestIds()
        # The sessions there are, that which was longest away first; and how many requests each
        # waits for.
        self._present: dict[str, None] = {}
        self._waiting: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = [pair for pair in scope["headers"] if pair[0] != _LAST]
        scope = {**scope, "headers": headers}
        named = next((value.decode("latin-1") for name, value in headers if name == _SESSION), "")
        if not named and b'"initialize"' in scope[BODY]:
            await self._make_room(scope)
        self._waiting[named] += 1
        statuses: list[int] = []
        try:
            await self._served(named, scope, receive, self._watched(named, statuses, send))
        finally:
            self._waiting[named] -= 1
            if not self._waiting[named]:
                del self._waiting[named]
        refused = any(status >= 400 and status != 404 for status in statuses)
        if scope["method"] == "DELETE" and named and not refused:
            self._present.pop(named, None)
            await self._sessions.close(sessions.key_of_id(named))

    async def _served(self, named: str, scope: Scope, receive: Receive, send: Send) -> None:
        key = sessions.key_of_id(named) if named else ""
        if scope["method"] == "GET" and key:
            with self._sessions.listening(key):
                await self._manager.handle_request(scope, receive, send)
            return
        try:
            with self._numbers.waiting(key, scope[BODY]) as answered:

                async def told(message: Message) -> None:
                    if message["type"] == "http.response.body" and not message.get("more_body"):
                        # Before the client knows, for then it may ask again.
                        answered()
                    await send(message)

                await self._manager.handle_request(scope, receive, told)
        except InvalidRequestIdError as error:
            await answer(400, error.body, send)

    def _watched(self, named: str, statuses: list[int], send: Send) -> Send:
        """Observe a response: it starts a session, belongs to one, or its session is unknown.

        An error response also belongs to its session.
        """

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = dict(message.get("headers") or ()).get(_SESSION, b"").decode("latin-1")
                which = named or given
                statuses.append(message["status"])
                known = given or which in self._present
                self._present.pop(which, None)
                if known and message["status"] != 404:
                    self._present[which] = None
            await send(message)

        return told

    async def _make_room(self, scope: Scope) -> None:
        """Send those off that were longest away, while there are too many."""
        while len(self._present) >= self._most:
            one = next((one for one in self._present if one not in self._waiting), None)
            if one is None:
                return
            del self._present[one]
            headers = [(_SESSION, one.encode("latin-1"))]
            await self._manager.handle_request(
                {**scope, "method": "DELETE", "headers": headers}, _nothing, _unheard
            )
            await self._sessions.close(sessions.key_of_id(one))


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(message: Message) -> None:
    """Discards a response without a waiting client."""
