"""The SDK's transport, with an eye on who listens, who says goodbye, and who came only once.

The SDK keeps a session of the older era until its client says goodbye, or for half an hour. Many
never do: scripts, and whatever was killed. So that they lock nobody out, the one that was longest
away is sent off when a new one comes and there is no more room.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hermes.mcp.server import sessions
from hermes.mcp.server.guard import BODY, answer
from hermes.mcp.server.heads import Numbers, WrongNumberError

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from hermes.mcp.server.guard import Message, Receive, Scope, Send

_SESSION = b"mcp-session-id"
# From where a stream that broke off is to go on. Nothing that was said is kept: it begins anew.
_LAST = b"last-event-id"


class Attended:
    """The transport as an application; of `most` sessions, those that are away make room."""

    def __init__(
        self, manager: StreamableHTTPSessionManager, known: sessions.Sessions, *, most: int
    ) -> None:
        self._manager = manager
        self._sessions = known
        self._most = most
        self._numbers = Numbers()
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
        except WrongNumberError as error:
            await answer(400, error.body, send)

    def _watched(self, named: str, statuses: list[int], send: Send) -> Send:
        """Notes of an answer whether it begins a session, goes on with one, or knows of none.

        A session that is told of a mistake is there all the same.
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
    """Takes an answer that nobody waits for."""
