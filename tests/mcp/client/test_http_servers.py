"""Servers on the network: reached, logged in to, and lost."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.mcp.client.conftest import Desk, eventually, tool
from tests.mcp.servers.web import Web

from hermes.core.errors import HermesError
from hermes.mcp.client.auth import tokens as bearer
from hermes.mcp.client.auth.headless_login import device_login
from hermes.mcp.client.auth.login import LoginError, login
from hermes.mcp.client.auth.tokens import Bearer, Tokens, load_tokens, renewal_lock
from hermes.mcp.client.http_client import url_problem
from hermes.mcp.client.settings import Server


@pytest.fixture
def web() -> Iterator[Web]:
    made = Web()
    yield made
    made.close()


async def visit(address: str) -> str:
    """What a browser does, without one."""
    async with httpx2.AsyncClient() as client:
        return (await client.get(address)).headers["location"]


def logged_in(web: Web) -> Tokens:
    server = Server("web", {"url": web.url, "auth": "oauth"}, "test")
    return asyncio.run(login(server, lambda _: None, visit=visit))


def test_a_server_over_http_is_called_with_its_headers(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = Web(login=False)
    monkeypatch.setenv("TEAM_KEY", "k-1")
    try:
        desk.open(web={"url": web.url, "headers": {"X-Team": "${TEAM_KEY}"}})

        assert desk.call("mcp-web:whoami") == "nobody"
        assert web.headers[-1]["X-Team"] == "k-1"
        desk.close()
    finally:
        web.close()


def test_a_server_that_was_started_anew_is_connected_anew(desk: Desk) -> None:
    web = Web(login=False)
    try:
        servers = desk.open(web={"url": web.url})
        assert desk.call("mcp-web:whoami") == "nobody"
        web.sessions.clear()

        first = desk.outcome("mcp-web:whoami")
        link = servers.states["web"].connection
        assert link is not None
        eventually(lambda: link.connects == 2)
        second = desk.outcome("mcp-web:whoami")

        assert first.status == "error"
        assert second.ok
        desk.close()
    finally:
        web.close()


def test_a_forgotten_session_is_told_as_what_it_is_by_whichever_number(desk: Desk) -> None:
    web = Web(login=False)
    # The number that stands for a request that was not answered in time, elsewhere.
    web.forgotten = {"code": -32001, "message": "Session not found"}
    try:
        desk.open(web={"url": web.url})
        assert desk.call("mcp-web:whoami") == "nobody"
        web.sessions.clear()

        outcome = desk.outcome("mcp-web:whoami")

        assert outcome.status == "error"
        assert "was lost during whoami" in str(outcome.error)
        assert "Session not found" in str(outcome.error)
        desk.close()
    finally:
        web.close()


def test_a_server_that_does_not_let_go_is_left_all_the_same(desk: Desk) -> None:
    web = Web(login=False)
    web.lets_go.clear()
    try:
        desk.open(web={"url": web.url})
        desk.close()

        assert "hermes-mcp" not in [thread.name for thread in threading.enumerate()]
    finally:
        web.lets_go.set()
        web.close()


def test_without_a_login_it_says_so_at_once_and_others_go_on(desk: Desk, web: Web) -> None:
    begun = time.monotonic()
    servers = desk.open(web={"url": web.url, "auth": "oauth"}, box=desk.peer(tool("echo")))

    assert servers.states["web"].state == "needs_reauth"
    assert "hermes mcp login web" in servers.states["web"].reason
    assert servers.states["box"].state == "connected"
    assert time.monotonic() - begun < 15
    # Nobody was registered, and nothing was opened.
    assert not [path for _, path in web.seen if path in ("/register", "/authorize")]


def test_a_login_in_the_browser_gives_a_token_for_its_owner_alone(
    desk: Desk, web: Web, home: Path
) -> None:
    logged_in(web)
    desk.open(web={"url": web.url, "auth": "oauth"})

    place = home / "mcp-tokens" / "web.json"

    assert desk.call("mcp-web:whoami") == "access-1"
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700


def test_a_login_by_code_needs_no_browser(desk: Desk, web: Web) -> None:
    server = Server("web", {"url": web.url, "auth": "oauth"}, "test")
    shown: list[tuple[str, str]] = []

    asyncio.run(device_login(server, lambda address, code: shown.append((address, code))))
    desk.open(web={"url": web.url, "auth": "oauth"})

    assert shown == [(f"{web.base}/activate", "ABCD-EFGH")]
    assert desk.call("mcp-web:whoami") == "access-1"


def test_a_renewal_without_a_refresh_token_keeps_the_old_one(desk: Desk, web: Web) -> None:
    tokens = logged_in(web)
    web.valid.clear()
    web.refresh_without_token = True

    desk.open(web={"url": web.url, "auth": "oauth"})

    assert desk.call("mcp-web:whoami") == "access-2"
    kept = load_tokens("web", web.url)
    assert kept is not None
    assert (kept.access_token, kept.refresh_token) == ("access-2", tokens.refresh_token)


def test_a_token_is_renewed_before_it_expires(desk: Desk, web: Web) -> None:
    web.expires_in = 10
    logged_in(web)
    web.expires_in = 3600

    desk.open(web={"url": web.url, "auth": "oauth"})

    assert desk.call("mcp-web:whoami") == "access-2"


def test_two_programs_that_renew_at_once_renew_once(web: Web, home: Path) -> None:
    web.rotates = True
    tokens = logged_in(web)
    tokens.expires_at = 1.0
    tokens.save("web")
    hello = {"jsonrpc": "2.0", "method": "notifications/initialized"}

    async def asked() -> int:
        async with httpx2.AsyncClient(auth=Bearer("web", web.url)) as client:
            return (await client.post(web.url, json=hello)).status_code

    async def together() -> list[int]:
        return await asyncio.gather(*(asked() for _ in range(4)))

    assert asyncio.run(together()) == [202] * 4
    assert sum(body.get("grant_type") == "refresh_token" for body in web.bodies) == 1


def test_a_login_server_that_says_nothing_keeps_nobody_waiting_for_ever(
    web: Web, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bearer, "_RENEW_SECONDS", 0.1)
    tokens = logged_in(web)
    tokens.expires_at = 1.0

    async def work(silent: socket.socket) -> None:
        tokens.token_endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}/token"
        tokens.save("web")
        async with httpx2.AsyncClient(auth=Bearer("web", web.url), timeout=60) as client:
            with pytest.raises(httpx2.ReadTimeout):
                await client.get(web.url)
        # Whoever comes next may try.
        async with renewal_lock("web"):
            pass

    with socket.create_server(("127.0.0.1", 0)) as silent:
        asyncio.run(asyncio.wait_for(work(silent), 60))


def test_a_login_server_that_is_away_asks_for_no_login(desk: Desk, web: Web) -> None:
    tokens = logged_in(web)
    tokens.expires_at = 1.0
    tokens.save("web")
    web.token_status = 503
    servers = desk.open(wait=False, web={"url": web.url, "auth": "oauth"})
    servers.connect(now=True)
    eventually(lambda: "HTTP 503" in servers.states["web"].reason)
    assert servers.states["web"].state in ("waiting", "connecting", "failed")

    web.token_status = 0

    eventually(lambda: servers.states["web"].state == "connected", 30)


@pytest.mark.parametrize("interval", [-1, 1e9, "nan", "1e400"])
def test_a_login_by_code_ends_in_time_whatever_the_server_says_of_it(
    web: Web, interval: object
) -> None:
    web.device = {"interval": interval}
    web.pending = 1_000_000
    server = Server("web", {"url": web.url, "auth": "oauth"}, "test")

    with pytest.raises(LoginError, match="in time"):
        asyncio.run(device_login(server, lambda *_: None, seconds=0.2))


@pytest.mark.parametrize("answer", [[], "token", 5, {"access_token": ""}])
def test_an_answer_that_is_no_token_is_a_failed_login(web: Web, answer: object) -> None:
    web.odd_token = answer
    server = Server("web", {"url": web.url, "auth": "oauth"}, "test")

    with pytest.raises(LoginError):
        asyncio.run(device_login(server, lambda *_: None, seconds=5))


@pytest.mark.parametrize("odd", ["https://a.example", 5, {"a": 1}, [5, None]])
def test_login_servers_that_are_none_are_passed_over(web: Web, odd: object) -> None:
    web.login_servers = odd
    web.pending = 0
    server = Server("web", {"url": web.url, "auth": "oauth"}, "test")

    assert asyncio.run(device_login(server, lambda *_: None)).access_token == "access-1"


def test_a_token_that_cant_be_renewed_asks_for_a_login_and_stays(
    desk: Desk, web: Web, home: Path
) -> None:
    logged_in(web)
    before = (home / "mcp-tokens" / "web.json").read_bytes()
    web.valid.clear()
    web.refreshes.clear()

    servers = desk.open(web={"url": web.url, "auth": "oauth"})

    assert servers.states["web"].state == "needs_reauth"
    assert (home / "mcp-tokens" / "web.json").read_bytes() == before


def test_a_failed_login_leaves_the_old_tokens(web: Web, home: Path) -> None:
    logged_in(web)
    before = (home / "mcp-tokens" / "web.json").read_bytes()
    web.valid.clear()
    web.refuse_token = True

    with pytest.raises(LoginError, match="failed"):
        logged_in(web)

    assert (home / "mcp-tokens" / "web.json").read_bytes() == before


def test_a_token_is_never_sent_to_another_address(desk: Desk, web: Web) -> None:
    logged_in(web)
    other = Web()
    try:
        desk.open(web={"url": other.url, "auth": "oauth"})

        assert not any("Authorization" in seen for seen in other.headers)
        desk.close()
    finally:
        other.close()


@pytest.mark.parametrize(
    "endpoint",
    [
        "file:///etc/passwd",
        "a:$(touch canary)",
        "https://example.com/" + "x" * 100_000,
        "javascript:alert(1)",
        "https://example.com/$(touch canary)",
        "http://example.com/authorize",
    ],
)
def test_a_login_address_that_is_none_is_refused(web: Web, endpoint: str, tmp_path: Path) -> None:
    web.metadata = {"authorization_endpoint": endpoint}
    opened: list[str] = []
    server = Server("web", {"url": web.url, "auth": "oauth"}, "test")

    with pytest.raises(HermesError):
        asyncio.run(login(server, opened.append, seconds=5))

    assert not opened


@pytest.mark.parametrize("endpoint", ["http://169.254.169.254/token", "https://10.0.0.1/token", "http://example.com/t"])  # fmt: skip
def test_a_token_address_elsewhere_is_refused_for_a_public_server(endpoint: str) -> None:
    assert url_problem(endpoint, server_url="https://mcp.example.com/mcp")


def test_plain_http_is_for_this_machine_alone() -> None:
    here, away = "http://127.0.0.1:9/mcp", "https://mcp.example.com/mcp"

    assert not url_problem("http://127.0.0.1:9/authorize", server_url=here)
    assert url_problem("http://127.0.0.1:9/authorize", server_url=away)
    assert not url_problem("https://login.example.com/a?b=c", server_url=away)
    assert url_problem("https://user:pass@example.com/", server_url=away)


def test_a_browser_is_opened_without_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hermes.mcp.client.http_client import open_in_browser

    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {seen}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    monkeypatch.setattr("webbrowser._tryorder", None)
    monkeypatch.setattr("webbrowser._browsers", {})

    open_in_browser("https://example.com/?a=1&b='2';touch%20canary")

    eventually(lambda: seen.exists() and seen.read_text())
    assert seen.read_text() == "https://example.com/?a=1&b='2';touch%20canary\n"


def test_a_dead_address_is_given_up_on_with_the_reason(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.mcp.client.connection.PAUSE_SECONDS", 0.05)

    servers = desk.open(web={"url": "http://127.0.0.1:9/mcp"})

    assert servers.states["web"].state == "failed"
    assert "connect" in servers.states["web"].reason.lower()


def test_tokens_say_no_secret_in_a_broken_file(home: Path) -> None:
    place = home / "mcp-tokens" / "web.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({"access_token": "s3cret"}))

    with pytest.raises(HermesError) as caught:
        load_tokens("web", "https://x")

    assert "s3cret" not in str(caught.value)
