"""The pinned transports, against real servers on loopback."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import anyio
import httpx2
import pytest

from hermes.safety.pinned_http import AsyncPinnedTransport, PinnedTransport, UrlRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator


class Handler(BaseHTTPRequestHandler):
    seen: list[tuple[str, str]]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.seen.append((self.headers["Host"], self.path))
        target = self.path.partition("?to=")[2]
        self.send_response(302 if target else 200)
        if target:
            self.send_header("Location", target)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args: object) -> None:
        pass


class Server:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        handler = type("SeenHandler", (Handler,), {"seen": self.seen})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.http.daemon_threads = True
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()


def loopback(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


def test_the_name_stays_in_the_request_while_the_address_is_dialled(server: Server) -> None:
    transport = PinnedTransport(rules={"allow_hosts": ["app.example"]}, resolve=loopback)

    with httpx2.Client(transport=transport) as client:
        response = client.get(f"http://app.example:{server.port}/x")

    assert response.text == "ok"
    assert server.seen == [(f"app.example:{server.port}", "/x")]


def test_nothing_is_sent_to_a_private_place_by_default(server: Server) -> None:
    with httpx2.Client(transport=PinnedTransport(resolve=loopback)) as client:
        for host in ("app.example", "127.0.0.1", "localhost"):
            with pytest.raises(UrlRefusedError):
                client.get(f"http://{host}:{server.port}/")

    assert server.seen == []


@pytest.mark.parametrize(
    "target",
    ["http://127.0.0.1:{port}/secret", "http://other.example:{port}/secret", "http://2130706433:{port}/secret",
     "http://169.254.169.254/latest/", "http://[::1]:{port}/secret", "http://0x7f.1:{port}/", "file:///etc/passwd"],
)  # fmt: skip
def test_a_redirect_to_a_forbidden_place_is_not_followed(server: Server, target: str) -> None:
    transport = PinnedTransport(rules={"allow_hosts": ["app.example"]}, resolve=loopback)
    url = f"http://app.example:{server.port}/?to=" + target.format(port=server.port)

    with (
        httpx2.Client(transport=transport, follow_redirects=True) as client,
        pytest.raises((UrlRefusedError, httpx2.UnsupportedProtocol)),
    ):
        client.get(url)

    assert len(server.seen) == 1


def test_a_redirect_to_an_allowed_place_is_followed(server: Server) -> None:
    transport = PinnedTransport(rules={"allow_hosts": [".app.example"]}, resolve=loopback)
    url = f"http://a.app.example:{server.port}/?to=http://b.app.example:{server.port}/there"

    with httpx2.Client(transport=transport, follow_redirects=True) as client:
        assert client.get(url).text == "ok"

    assert [path for _, path in server.seen][1:] == ["/there"]


def test_a_resolver_that_changes_its_answer_gains_nothing(server: Server) -> None:
    answers = iter([["93.184.216.34"], ["127.0.0.1"], ["127.0.0.1"]])
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return next(answers)

    transport = PinnedTransport(resolve=rebinding)
    with httpx2.Client(transport=transport, timeout=0.3) as client:
        # The first answer is public and is what gets dialled; nothing answers there from here.
        with pytest.raises(httpx2.TransportError):
            client.get(f"http://rebind.example:{server.port}/")
        with pytest.raises(UrlRefusedError):
            client.get(f"http://rebind.example:{server.port}/")

    assert server.seen == []
    assert asked == ["rebind.example"] * 2


def test_the_next_address_is_tried_when_the_first_does_not_answer(server: Server) -> None:
    transport = PinnedTransport(
        rules={"allow_private": True}, resolve=lambda *_: ["127.0.0.99", "127.0.0.1"]
    )

    with httpx2.Client(transport=transport) as client:
        assert client.get(f"http://app.example:{server.port}/").text == "ok"


def test_the_same_holds_for_async_clients(server: Server) -> None:
    async def run() -> None:
        rules = {"allow_hosts": ["app.example"]}
        transport = AsyncPinnedTransport(rules=rules, resolve=loopback)
        async with httpx2.AsyncClient(transport=transport, follow_redirects=True) as client:
            good = await client.get(f"http://app.example:{server.port}/x")
            assert good.text == "ok"
            with pytest.raises(UrlRefusedError):
                await client.get(
                    f"http://app.example:{server.port}/?to=http://127.0.0.1:{server.port}/"
                )
            with pytest.raises(UrlRefusedError):
                await client.get(f"http://other.example:{server.port}/")

    anyio.run(run)

    assert server.seen[0][1] == "/x"
    assert len(server.seen) == 2


def test_an_async_client_does_not_wait_for_a_slow_resolver_past_its_timeout() -> None:
    release = threading.Event()

    def slow(host: str, port: int) -> list[str]:
        release.wait(5)
        return ["93.184.216.34"]

    async def run() -> None:
        transport = AsyncPinnedTransport(resolve=slow)
        async with httpx2.AsyncClient(transport=transport, timeout=0.1) as client:
            with pytest.raises(httpx2.ConnectTimeout):
                await client.get("http://app.example/")
        release.set()

    anyio.run(run)


def test_tls_asks_for_the_name_and_not_for_the_address() -> None:
    import socket
    import ssl

    names: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = lambda _, name, __: names.append(name)
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        connection, _ = listener.accept()
        with connection, pytest.raises(ssl.SSLError):
            context.wrap_socket(connection, server_side=True)

    thread = threading.Thread(target=accept)
    thread.start()
    transport = PinnedTransport(rules={"allow_hosts": ["app.example"]}, resolve=loopback)
    with (
        httpx2.Client(transport=transport, timeout=2) as client,
        pytest.raises(httpx2.TransportError),
    ):
        client.get(f"https://app.example:{listener.getsockname()[1]}/")
    thread.join()
    listener.close()

    assert names == ["app.example"]
