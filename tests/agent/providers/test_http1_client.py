"""The HTTP/1.1 client against a raw server: framing, keep-alive, broken bodies, TLS, proxies."""

from __future__ import annotations

import asyncio
import gzip
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.agent.providers.requests import answer

from hermes.agent.providers import http1_client
from hermes.agent.providers.http1_client import (
    AddressError,
    ClosedError,
    ConnectError,
    Http1Client,
    Response,
)
from hermes.agent.providers.http_model import HttpModel
from hermes.testing import ScriptedModel

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class RawServer:
    """Sends prepared bytes for each request; `None` closes the connection without a response."""

    def __init__(self, replies: Sequence[bytes | None]) -> None:
        self.replies = list(replies)
        self.requests: list[bytes] = []
        self.connections = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.replies:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().partition(b"content-length:")[2].split()[0])
                self.requests.append(head + await reader.readexactly(size))
                reply = self.replies.pop(0)
                if reply is None:
                    break
                writer.write(reply)
                await writer.drain()
                if b"Content-Length" not in reply and b"chunked" not in reply:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(*replies: bytes | None) -> AsyncIterator[tuple[RawServer, Http1Client]]:
    raw = RawServer(replies)
    server = await asyncio.start_server(raw.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = Http1Client(f"http://127.0.0.1:{port}/v1")
    try:
        yield raw, client
    finally:
        await client.aclose()
        server.close()
        await server.wait_closed()


async def body_of(response: Response) -> bytes:
    return b"".join([chunk async for chunk in response.chunks()])


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(scenario(), 10)

    asyncio.run(limited())


def test_a_connection_is_used_again_after_the_body_was_read() -> None:
    async def scenario() -> None:
        async with serving(OK, OK) as (server, client):
            for _ in range(2):
                response = await client.post("/chat", b"{}", {"Authorization": "Bearer k"})
                assert response.status_code == 200
                assert await body_of(response) == b"ok"
                await response.aclose()

            assert server.connections == 1
            assert server.requests[0].startswith(b"POST /v1/chat HTTP/1.1\r\n")
            assert b"Bearer k" in server.requests[0]
            assert server.requests[0].endswith(b"\r\n\r\n{}")

    run(scenario)


def test_a_connection_is_closed_where_the_body_was_not_read() -> None:
    async def scenario() -> None:
        async with serving(OK, OK) as (server, client):
            await (await client.post("/chat", b"{}", {})).aclose()
            assert await body_of(await client.post("/chat", b"{}", {})) == b"ok"

            assert server.connections == 2

    run(scenario)


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabcdef",
        b"HTTP/1.0 200 OK\r\n\r\nabcdef",
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabcdef",
    ],
)
def test_bodies_of_every_framing_are_read(reply: bytes) -> None:
    async def scenario() -> None:
        async with serving(reply) as (_, client):
            assert await body_of(await client.post("/chat", b"{}", {})) == b"abcdef"

    run(scenario)


def test_a_compressed_body_is_decompressed() -> None:
    data = gzip.compress(b"data: {}\n\n")
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(data)

    async def scenario() -> None:
        async with serving(head + data) as (_, client):
            assert await body_of(await client.post("/chat", b"{}", {})) == b"data: {}\n\n"

    run(scenario)


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nnonsense",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    ],
)
def test_a_body_that_breaks_off_is_an_error(reply: bytes) -> None:
    async def scenario() -> None:
        async with serving(reply) as (server, client):
            response = await client.post("/chat", b"{}", {})
            server.replies.clear()
            with pytest.raises(ClosedError):
                await body_of(response)
            await response.aclose()

    run(scenario)


@pytest.mark.parametrize("reply", [None, b"nonsense\r\n\r\n", b""])
def test_no_response_is_an_error(reply: bytes | None) -> None:
    async def scenario() -> None:
        async with serving(reply) as (_, client):
            with pytest.raises(ClosedError):
                await client.post("/chat", b"{}", {})

    run(scenario)


def test_a_connection_that_the_server_closed_is_replaced() -> None:
    closing = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    async def scenario() -> None:
        async with serving(closing) as (server, client):
            assert await body_of(await client.post("/chat", b"{}", {})) == b"ok"
            await asyncio.sleep(0.05)
            server.replies.append(OK)
            assert await body_of(await client.post("/chat", b"{}", {})) == b"ok"

            assert server.connections == 2

    run(scenario)


@pytest.mark.parametrize("url", ["ftp://x/v1", "http://", "nonsense", "http://x:port/v1"])
def test_an_address_without_a_server_is_refused(url: str) -> None:
    with pytest.raises(AddressError):
        Http1Client(url)


def test_a_header_that_can_not_be_sent_is_refused() -> None:
    async def scenario() -> None:
        async with serving(OK) as (_, client):
            with pytest.raises(AddressError):
                await client.post("/chat", b"{}", {"Authorization": "a\nb"})

    run(scenario)


def test_nobody_listening_is_an_error() -> None:
    async def scenario() -> None:
        async with serving() as (_, client):
            pass
        with pytest.raises(ConnectError):
            await client.post("/chat", b"{}", {})

    run(scenario)


def test_a_user_in_the_address_is_sent_as_basic_auth() -> None:
    client = Http1Client("http://me:a%20b@host/v1")

    assert client._headers["Authorization"] == "Basic bWU6YSBi"
    assert client._headers["Host"] == "host"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl for a certificate")
def test_certificates_are_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    made += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        [*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def scenario() -> None:
        server = await asyncio.start_server(RawServer([OK]).serve, "localhost", 0, ssl=context)
        client = Http1Client(f"https://localhost:{server.sockets[0].getsockname()[1]}/v1")
        monkeypatch.setattr(http1_client, "_context", None)
        with pytest.raises(ConnectError, match="certificate"):
            await client.post("/chat", b"{}", {})

        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        monkeypatch.setattr(http1_client, "_context", None)
        assert await body_of(await client.post("/chat", b"{}", {})) == b"ok"
        await client.aclose()
        server.close()
        await server.wait_closed()

    run(scenario)


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedModel(then="through the proxy") as server:
        proxy = server.url.removesuffix("/v1")
        monkeypatch.setenv("http_proxy", proxy)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)

        text = answer(HttpModel("far", "m", "http://model.invalid/v1")).message.text

    assert text == "through the proxy"
