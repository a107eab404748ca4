"""Scripted model: an HTTP server on loopback that answers from a script, for tests."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from hermes.testing.scripted_turns import NAME, WIRES, Turn, error_body

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Any


def serve(model: ScriptedModel, port: int) -> ThreadingHTTPServer:
    """A server that answers with a model's script; the caller runs it."""

    class Bound(_Handler):
        pass

    Bound.model = model
    server = _Server(("127.0.0.1", port), Bound)
    server.daemon_threads = True
    return server


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away, which tests do on purpose."""
        import sys

        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    model: ScriptedModel
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def setup(self) -> None:
        super().setup()
        self.model.connected(self.connection)

    def finish(self) -> None:
        self.model.disconnected(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Keep quiet."""

    def do_GET(self) -> None:
        if self.path.endswith("/models"):
            self._json(200, {"object": "list", "data": [{"id": NAME, "object": "model"}]})
        else:
            self._json(404, {"error": {"message": f"nothing is at {self.path}"}})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        wire = next((end for end in WIRES if path.endswith(end)), None)
        try:
            request = json.loads(body)
        except ValueError:
            request = None
        if wire is None or not isinstance(request, dict):
            self._json(404 if wire is None else 400, {"error": {"message": f"what is {path}?"}})
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        number, turn = self.model.take(path, headers, body, request)
        if turn.stall_after == 0:
            self._stall()
        elif turn.break_after == 0:
            self.close_connection = True
        elif turn.status != 200:
            self._json(turn.status, error_body(path, turn), turn.headers)
        elif request.get("stream"):
            self._stream(turn, number, wire)
        else:
            time.sleep(turn.delay)
            whole = WIRES[wire][1](turn, self.model.usage(turn, number), number)
            self._json(200, _parsed_inputs(whole), turn.headers)

    def _stream(self, turn: Turn, number: int, wire: str) -> None:
        events: list[Any] = list(turn.raw or ())
        if turn.raw is None:
            events = list(WIRES[wire][0](turn, self.model.usage(turn, number), number))
        cut = turn.stall_after if turn.stall_after is not None else turn.break_after
        if turn.error_after is not None:
            events = [*events[: turn.error_after], error_body(wire, turn)]
        elif cut is not None:
            events = events[:cut]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        for name, value in turn.headers.items():
            self.send_header(name, value)
        self.end_headers()
        for event in events:
            if turn.delay:
                self.wfile.flush()
                if self.model.closing.wait(turn.delay):
                    break
            self._chunk(_spelled(event))
        if turn.stall_after is not None:
            self._stall()
        elif turn.break_after is not None:
            # Without the last chunk the client can tell that something is missing.
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _stall(self) -> None:
        """Say nothing until the client goes or the test ends."""
        self.close_connection = True
        self.wfile.flush()
        self.connection.settimeout(0.05)
        while not self.model.closing.is_set():
            try:
                if not self.connection.recv(1):
                    return
            except TimeoutError:
                continue
            except OSError:
                return

    def _json(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)


def _spelled(event: Any) -> bytes:
    """An event as a server sends it; a text with line ends of its own goes out as it is."""
    if isinstance(event, str):
        return event.encode() if "\n" in event else f"data: {event}\n\n".encode()
    kind = f"event: {event['type']}\n" if "type" in event else ""
    return f"{kind}data: {json.dumps(event)}\n\n".encode()


def _parsed_inputs(whole: dict[str, Any]) -> dict[str, Any]:
    """Anthropic sends the input of a call as an object where it is one."""
    for block in whole.get("content", ()):
        if block.get("type") == "tool_use":
            with contextlib.suppress(ValueError):
                block["input"] = json.loads(block["input"])
    return whole


if TYPE_CHECKING:
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
