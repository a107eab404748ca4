"""A model that says what a test wants: a real HTTP server on loopback, with a script.

    from hermes.testing import Call, ScriptedModel, Turn

    with ScriptedModel(
        [
            Turn(calls=[Call("read_file", {"path": "notes.txt"})]),
            lambda request: f"It says: {request['messages'][-1]['content']}",
        ]
    ) as model:
        ...  # point a client at model.url
    assert len(model.requests) == 2

It speaks three APIs, streamed or not, told apart by the path: OpenAI chat completions
(`/chat/completions`), OpenAI Responses (`/responses`) and Anthropic Messages (`/messages`). A turn
is a `Turn`, a text, or a function of the parsed request that returns either; each is used once, in
order. `Turn` also scripts what goes wrong: errors with `Retry-After`, streams that stall or break,
arguments that are no JSON. When the script is at its end the answer is an error, or `then`.

Unless a turn says otherwise, usage is estimated at four bytes a token, and as much of it is
reported as cached as the conversation has in common with an earlier one.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from hermes.testing.model_turns import Turn

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable
    from http.server import ThreadingHTTPServer
    from types import TracebackType
    from typing import Any

    Scripted = Turn | str | Callable[[dict[str, Any]], Turn | str]

_OVER = Turn(status=400, error="the script of this model is at its end", code="script_ended")


class ScriptedModel:
    """A scripted model behind a real address; serves while its `with` block lasts."""

    def __init__(
        self, script: Iterable[Scripted] = (), *, then: Scripted | None = None, port: int = 0
    ) -> None:
        """A model with this script; `then` is for every request after its end."""
        self._script = list(script)
        self._then = then
        self._port = port
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self._connections: set[socket.socket] = set()
        self.closing = threading.Event()
        # One entry per request, in the order of arrival: parsed, as bytes, headers, path.
        self.requests: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []

    @property
    def url(self) -> str:
        """The base address, as clients of OpenAI's API want it: it ends with `/v1`."""
        if self._server is None:
            raise RuntimeError("a ScriptedModel serves inside its `with` block")
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def add(self, *turns: Scripted) -> None:
        """More turns at the end of the script."""
        with self._lock:
            self._script += turns

    @property
    def left(self) -> int:
        """How many turns nobody has asked for yet."""
        return len(self._script)

    def prefix_bytes(self, number: int) -> bytes:
        """The conversation of a request, without its end: the next one should begin with it.

        These are the bytes of the system text and the messages as they were sent, without marks
        for caches, which move from message to message and are no part of what is cached.
        """
        return _conversation(self.bodies[number])

    # -- serving --------------------------------------------------------------------------------

    def __enter__(self) -> ScriptedModel:
        from hermes.testing.model_handler import serve

        self._server = serve(self, self._port)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="scripted-model", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving; connections still open are cut."""
        import contextlib
        import socket

        self.closing.set()
        if self._server is None or self._thread is None:
            return
        self._server.shutdown()
        with self._lock:
            open_now = list(self._connections)
        for connection in open_now:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()
        self._thread.join()
        self._server = self._thread = None

    # -- for the handler ------------------------------------------------------------------------

    def connected(self, connection: socket.socket) -> None:
        """Note a connection, to cut it at the end."""
        with self._lock:
            self._connections.add(connection)

    def disconnected(self, connection: socket.socket) -> None:
        """Forget a connection."""
        with self._lock:
            self._connections.discard(connection)

    def take(
        self, path: str, headers: dict[str, str], body: bytes, request: dict[str, Any]
    ) -> tuple[int, Turn]:
        """Note a request; its number and the turn that answers it."""
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
            self.bodies.append(body)
            self.headers.append(headers)
            self.paths.append(path)
            scripted = self._script.pop(0) if self._script else self._then
        if scripted is None:
            return number, _OVER
        said = scripted(request) if callable(scripted) else scripted
        return number, Turn(said) if isinstance(said, str) else said

    def usage(self, turn: Turn, number: int) -> dict[str, int]:
        """The tokens of a turn: as scripted, or estimated."""
        if turn.usage is not None:
            return dict(turn.usage)
        body = self.bodies[number]
        said = turn.text + turn.reasoning + "".join(c.name + c.arguments for c in turn.calls)
        return {
            "input": len(body) // 4,
            "output": max(len(said.encode("utf-8", "replace")) // 4, 1),
            "cached": min(self._in_common(number), len(body)) // 4,
            "reasoning": len(turn.reasoning) // 4,
        }

    def _in_common(self, number: int) -> int:
        """How many bytes this conversation shares with one of the last few."""
        mine = _conversation(self.bodies[number])
        earlier = self.bodies[max(number - 4, 0) : number]
        return max((_shared(mine, _conversation(body)) for body in earlier), default=0)


def _conversation(body: bytes) -> bytes:
    """System text and messages of a request, without the last closing bracket."""
    import msgspec

    try:
        parts = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return b""
    names = ("instructions", "system", "messages", "input")
    raw = b"".join(bytes(parts[name]) for name in names if name in parts)
    if b'"cache_control"' in raw:
        raw = b"".join(
            msgspec.json.encode(_unmarked(msgspec.json.decode(parts[name])))
            for name in names
            if name in parts
        )
    return raw.removesuffix(b"]")


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _unmarked(v) for k, v in value.items() if k != "cache_control"}
    return [_unmarked(item) for item in value] if isinstance(value, list) else value


def _shared(one: bytes, other: bytes) -> int:
    """The length of what two texts have in common at their beginning."""
    if one.startswith(other):
        return len(other)
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
