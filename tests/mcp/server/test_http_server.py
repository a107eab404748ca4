"""The server over HTTP: who may come in, and that nothing is left of who has gone."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client
from tests.mcp.server.peers import ERAS, SERVE, Person, environment, processes, run, soon, until

from mcp import Client

TOKEN = "a-token-of-the-tests-0123456789"
both_eras = pytest.mark.parametrize("mode", ERAS)


class Served:
    """A server that listens, and where."""

    def __init__(self, home: Path, work: Path, *words: str, token: str | None = TOKEN) -> None:
        work.mkdir(parents=True, exist_ok=True)
        more = {"HERMES_MCP_TOKEN": token} if token else {}
        self.process = subprocess.Popen(
            [*SERVE, "--http", "127.0.0.1:0", *words],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(home, **more),
            cwd=work,
            text=True,
        )
        assert self.process.stderr is not None
        first = self.process.stderr.readline()
        assert "serving MCP at " in first, first + self.process.stderr.read()
        self.url = first.split()[4]
        self.port = urlsplit(self.url).port or 0

    def end(self, number: int = signal.SIGTERM) -> tuple[str, str]:
        self.process.send_signal(number)
        return self.process.communicate(timeout=60)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("http")
    made = Served(folder / "home", folder / "work")
    yield made
    out, err = made.end()
    assert made.process.returncode == 0
    assert out == ""
    assert "Traceback" not in err, err


@pytest.fixture
def mark(request: pytest.FixtureRequest) -> str:
    """A number of seconds that nobody else sleeps."""
    return f"{7200 + os.getpid() % 1000}.{abs(hash(request.node.name)) % 100_000:05}"


@asynccontextmanager
async def connected(served: Served, mode: str, **options: Any) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {TOKEN}", **options.pop("headers", {})}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http_client:
        transport = streamable_http_client(served.url, http_client=http_client)
        async with Client(transport, mode=mode, **options) as c:
            yield c


def _post(
    served: Served, body: bytes = b"{}", path: str = "/mcp", method: str = "POST", **headers: str
) -> int:
    """The status of one request, with exactly these headers besides the usual ones."""
    usual = {
        "Host": f"127.0.0.1:{served.port}",
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in usual.items():
            if value:
                connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        return connection.getresponse().status
    finally:
        connection.close()


PING = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        },
    }
).encode()


@both_eras
def test_the_sdk_s_client_works_with_it(served: Served, mode: str) -> None:
    seen: list[float] = []

    async def watch(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async def work() -> None:
        person = Person({"decision": "once"}, {"answer": "blue"})
        async with connected(served, mode, elicitation_callback=person) as c:
            assert c.protocol_version == ERAS[mode]
            assert "terminal" in [tool.name for tool in (await c.list_tools()).tools]
            done = await c.call_tool("terminal", {"command": "rm -rf nothing; echo done"})
            assert done.structured_content["stdout"] == "done\n"
            said = await c.call_tool("clarify", {"question": "Which?"})
            assert said.structured_content == {"answer": "blue"}
            await c.call_tool("sleep", {"seconds": 0.5}, progress_callback=watch)
            assert seen
            large = await c.call_tool("terminal", {"command": "seq 50000"})
            read = await c.read_resource(large.content[-1].uri)
            assert read.contents[0].text.endswith("50000\n")

    run(work)


@both_eras
def test_each_client_has_a_folder_of_its_own(served: Served, mode: str) -> None:
    async def work() -> None:
        one = connected(served, mode, headers={"Hermes-Session": "one"})
        other = connected(served, mode, headers={"Hermes-Session": "other"})
        async with one as first, other as second:
            await first.call_tool("terminal", {"command": "cd /usr"})
            there = await first.call_tool("terminal", {"command": "pwd"})
            here = await second.call_tool("terminal", {"command": "pwd"})

        assert there.structured_content["stdout"] == "/usr\n"
        assert here.structured_content["stdout"].endswith("/work\n")

    run(work)


@both_eras
def test_a_client_that_vanishes_in_the_middle_ends_its_call(
    served: Served, mode: str, mark: str
) -> None:
    async def work() -> None:
        with anyio.move_on_after(60):
            async with anyio.create_task_group() as group:

                async def vanish() -> None:
                    await soon(lambda: processes(mark), "it never began")
                    group.cancel_scope.cancel()

                group.start_soon(vanish)
                async with connected(served, mode) as c:
                    await c.call_tool("terminal", {"command": f"sleep {mark}"})
        await soon(lambda: not processes(mark), "it went on")

    run(work)


def test_a_connection_that_breaks_in_the_older_era_ends_its_call(served: Served, mark: str) -> None:
    """Not cancelled, not closed: the cable is cut."""
    session = _session(served)
    call = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "terminal", "arguments": {"command": f"sleep {mark}"}},
    }
    connection = socket.create_connection(("127.0.0.1", served.port))
    connection.sendall(_raw(served, json.dumps(call).encode(), session))
    until(lambda: processes(mark), "it never began")

    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()

    until(lambda: not processes(mark), "it went on")


def test_a_session_that_is_closed_leaves_no_process(served: Served, mark: str) -> None:
    async def work() -> None:
        async with connected(served, "legacy") as c:
            await c.call_tool("terminal", {"command": f"sleep {mark}", "background": True})
            await soon(lambda: processes(mark), "it never began")
        await soon(lambda: not processes(mark), "it went on")

    run(work)


def _raw(served: Served, body: bytes, session: str = "") -> bytes:
    lines = [
        "POST /mcp HTTP/1.1",
        f"Host: 127.0.0.1:{served.port}",
        f"Authorization: Bearer {TOKEN}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version: 2025-11-25",
        f"Content-Length: {len(body)}",
        *([f"Mcp-Session-Id: {session}"] if session else []),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _session(served: Served) -> str:
    """A session of the older era, begun by hand."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    connection.request("POST", "/mcp", PING, headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    session = response.headers["mcp-session-id"]
    begun = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
    assert _post(served, begun, Mcp_Session_Id=session) == 202
    return session


def test_whoever_knows_the_token_is_let_in(served: Served) -> None:
    assert _post(served, PING) == 200
    assert _post(served, PING, Authorization=f"bearer   {TOKEN} ") == 200
    for name in ("localhost", "127.0.0.1", "[::1]", "127.8.8.8", "LOCALHOST", "localhost."):
        assert _post(served, PING, Host=name) == 200, name
        assert _post(served, PING, Host=f"{name}:9999") == 200, name
        assert _post(served, PING, Origin=f"http://{name}:5173") == 200, name


@pytest.mark.parametrize(
    "given",
    [
        "",
        TOKEN,
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}",
        f"Bearer {TOKEN.upper()}",
        "Bearer \xff\xfe",
    ],
)
def test_whoever_does_not_is_told_nothing(served: Served, given: str) -> None:
    for method, path in (
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("OPTIONS", "/mcp"),
        ("GET", "/"),
        ("GET", "/.well-known/oauth-protected-resource"),
    ):
        assert _post(served, PING, path, method, Authorization=given) == 401


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "evil.example:80@127.0.0.1",
        "8.8.8.8",
        "0.0.0.0",
        "169.254.169.254",
        "127.0.0.1:x",
        "127.0.0.1/..",
        "[::2]",
        "[::1",
        "2130706433",
        "lоcalhost".encode().decode("latin-1"),
    ],
)
def test_a_name_that_is_not_ours_is_refused(served: Served, host: str) -> None:
    assert _post(served, PING, Host=host) == 421
    assert _post(served, PING, Origin=f"http://{host}") == 403


@pytest.mark.parametrize("origin", ["null", "file://", "https://", "chrome-extension://abc", "x"])
def test_a_page_without_a_name_is_refused(served: Served, origin: str) -> None:
    assert _post(served, PING, Origin=origin) == 403


def test_two_of_what_there_must_be_one_of_is_refused(served: Served) -> None:
    for name, value in (("Host", "evil.example"), ("Authorization", "Bearer no"), ("Origin", "x")):
        head = _raw(served, PING).replace(b"\r\n", f"\r\n{name}: {value}\r\n".encode(), 1)
        if name == "Origin":
            head = head.replace(b"\r\n", b"\r\nOrigin: http://localhost\r\n", 1)
        with socket.create_connection(("127.0.0.1", served.port)) as connection:
            connection.sendall(head)
            assert connection.recv(100).split()[1] == b"400", name


def test_too_much_is_refused_whether_it_says_so_or_not(served: Served) -> None:
    told = _raw(served, b"").replace(b"Content-Length: 0", b"Content-Length: 17000000")
    with socket.create_connection(("127.0.0.1", served.port)) as connection:
        connection.sendall(told)
        assert b" 413 " in connection.recv(100)
    untold = _raw(served, b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", served.port)) as connection:
        connection.sendall(untold)
        sent = 0
        # It stops listening long before all of it has come.
        with contextlib.suppress(OSError):
            while sent < 100:
                connection.sendall(chunk)
                sent += 1
    assert sent < 60


def test_nonsense_from_somebody_who_knows_the_token_harms_nobody(served: Served) -> None:
    for body in (b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, PING * 2):
        assert 400 <= _post(served, body) < 500
        modern = _post(served, body, MCP_Protocol_Version="2026-07-28")
        assert 400 <= modern < 500
    assert _post(served, PING, path="/elsewhere") == 404
    assert _post(served, PING, Mcp_Session_Id="made-up") == 404
    early = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    assert _post(served, early) == 400
    assert _post(served, PING) == 200


def test_one_client_can_t_use_another_s_session_by_guessing(served: Served) -> None:
    assert len(_session(served)) >= 32


def test_a_token_is_made_once_and_kept_for_its_owner(tmp_path: Path) -> None:
    home = tmp_path / "home"
    kept = home / "mcp" / "server-token"
    first = Served(home, tmp_path, token=None)
    assert first.process.stderr is not None
    shown = first.process.stderr.readline()
    token = kept.read_text().strip()
    with socket.create_connection(("127.0.0.1", first.port)) as idle:
        assert idle.fileno() > 0
        _, rest = first.end(signal.SIGINT)

    assert token in shown
    assert len(token) >= 32
    assert kept.stat().st_mode & 0o777 == 0o600
    assert first.process.returncode == 0
    assert "Traceback" not in rest


@pytest.mark.parametrize("name", ["token", "access_token", "Authorization"])
def test_a_token_in_the_address_is_none(served: Served, name: str) -> None:
    assert _post(served, PING, path=f"/mcp?{name}={TOKEN}", Authorization="") == 401


def test_a_session_of_another_is_nothing_without_the_token(served: Served) -> None:
    async def work() -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        accept = {"Accept": "application/json, text/event-stream"}
        async with httpx2.AsyncClient(headers={**headers, **accept}) as http_client:
            begun = await http_client.post(served.url, json=json.loads(PING))
            mine = {"mcp-session-id": begun.headers["mcp-session-id"]}
            del http_client.headers["Authorization"]
            for method in ("POST", "GET", "DELETE"):
                answer = await http_client.request(method, served.url, headers=mine, json={})
                assert answer.status_code == 401
            ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
            still = await http_client.post(served.url, headers={**mine, **headers}, json=ping)
            guessed = {**headers, "mcp-session-id": "0" * 32}
            other = await http_client.post(served.url, headers=guessed, json=ping)
            assert (still.status_code, other.status_code) == (200, 404)

    run(work)


def test_one_number_for_two_requests_at_once_is_told(served: Served) -> None:
    async def work() -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        accept = {"Accept": "application/json, text/event-stream"}
        async with httpx2.AsyncClient(headers={**headers, **accept}, timeout=60) as http_client:
            begun = await http_client.post(served.url, json=json.loads(PING))
            mine = {"mcp-session-id": begun.headers["mcp-session-id"]}
            ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            await http_client.post(served.url, headers=mine, json=ready)
            call = {
                "jsonrpc": "2.0",
                "id": 5,
                "method": "tools/call",
                "params": {"name": "terminal", "arguments": {"command": "sleep 1; echo hi"}},
            }
            statuses: list[int] = []

            async def ask() -> None:
                answer = await http_client.post(served.url, headers=mine, json=call)
                statuses.append(answer.status_code)

            async with anyio.create_task_group() as group:
                group.start_soon(ask)
                group.start_soon(ask)
            await ask()
            assert sorted(statuses) == [200, 200, 400]

    run(work)


def test_whoever_comes_back_to_a_stream_is_given_a_new_one(served: Served) -> None:
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    try:
        connection.request("POST", "/mcp", PING, headers)
        begun = connection.getresponse()
        begun.read()
        headers["Mcp-Session-Id"] = str(begun.getheader("mcp-session-id"))
        connection.request("GET", "/mcp", headers={**headers, "Last-Event-ID": "7"})
        stream = connection.getresponse()

        assert stream.status == 200
        assert str(stream.getheader("content-type")).startswith("text/event-stream")
    finally:
        connection.close()
