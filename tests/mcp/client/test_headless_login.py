"""Logging in with nobody there: what is sent, to whom, and to whom it is not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.mcp.client.conftest import Desk
from tests.mcp.servers.web import Web

from hermes.core.errors import ConfigError, HermesError
from hermes.mcp.client.auth.headless_login import machine_login
from hermes.mcp.client.auth.login import LoginError
from hermes.mcp.client.auth.tokens import Tokens, load_tokens
from hermes.mcp.client.settings import Server

BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


@pytest.fixture
def web(home: Path) -> Iterator[Web]:
    made = Web()
    made.machine_grants = {"client_credentials", BEARER, EXCHANGE}
    yield made
    made.close()


def server(web: Web, **auth: str) -> Server:
    return Server("web", {"url": web.url, "auth": {"type": "oauth", **auth}}, "test")


def logged_in(web: Web, **auth: str) -> Tokens:
    return asyncio.run(machine_login(server(web, **auth)))


def test_a_program_with_a_secret_calls_tools(desk: Desk, web: Web) -> None:
    auth = {"flow": "client_credentials", "client_id": "me", "client_secret": "s-1"}
    desk.open(web={"url": web.url, "auth": auth})

    assert desk.call("mcp-web:whoami") == "access-1"
    assert web.bodies[0]["grant_type"] == "client_credentials"
    assert web.bodies[0]["resource"] == web.url
    desk.close()


def test_a_private_key_signs_for_the_login_server_alone(web: Web, tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (tmp_path / "key.pem").write_bytes(pem)

    logged_in(
        web,
        flow="client_credentials",
        client_id="me",
        private_key_file=str(tmp_path / "key.pem"),
        algorithm="ES256",
    )

    sent = web.bodies[0]
    said = jwt.decode(
        sent["client_assertion"], key.public_key(), algorithms=["ES256"], audience=web.base
    )
    assert (said["iss"], said["sub"]) == ("me", "me")
    assert "client_secret" not in sent


def test_a_workloads_token_is_read_anew_each_time(web: Web, tmp_path: Path) -> None:
    place = tmp_path / "token"
    auth = {"flow": "jwt_bearer", "client_id": "me", "assertion_file": str(place)}
    place.write_text("first\n")
    logged_in(web, **auth)
    place.write_text("second\n")
    logged_in(web, **auth)

    assert [body["assertion"] for body in web.bodies] == ["first", "second"]
    assert {body["grant_type"] for body in web.bodies} == {BEARER}


def test_an_id_token_is_exchanged_first(web: Web) -> None:
    logged_in(
        web,
        flow="identity_assertion",
        client_id="me",
        client_secret="s",
        id_token="theirs",
        idp_client_id="at-the-idp",
        idp_token_endpoint=f"{web.base}/token",
    )

    exchanged, granted = web.bodies
    assert (exchanged["grant_type"], exchanged["subject_token"]) == (EXCHANGE, "theirs")
    assert (exchanged["audience"], exchanged["resource"]) == (web.base, web.url)
    # What the exchange gave, and never the id token itself.
    assert granted["assertion"] == "access-1"
    assert "theirs" not in granted.values()


def test_a_secret_goes_to_no_other_login_server_than_the_first(web: Web) -> None:
    auth = {"flow": "client_credentials", "client_id": "me", "client_secret": "s-1"}
    thief = Web()
    thief.machine_grants = web.machine_grants
    try:
        logged_in(web, **auth)
        web.login_server = thief.base
        with pytest.raises(HermesError, match="another login server"):
            logged_in(web, **auth)
    finally:
        thief.close()

    assert thief.bodies == []
    kept = load_tokens("web", web.url)
    assert kept is not None
    assert kept.access_token == "access-1"


def test_a_login_server_that_the_settings_name_is_the_only_one(web: Web) -> None:
    auth = {"flow": "client_credentials", "client_id": "me", "client_secret": "s-1"}

    with pytest.raises(HermesError, match="another login server"):
        logged_in(web, **auth, issuer="https://login.example")

    assert web.bodies == []


def test_a_token_that_is_refused_does_not_make_the_login_server_forgotten(
    desk: Desk, web: Web
) -> None:
    auth = {"flow": "client_credentials", "client_id": "me", "client_secret": "s-1"}
    desk.open(web={"url": web.url, "auth": auth})
    web.valid.clear()
    web.machine_grants = set()

    refused = desk.outcome("mcp-web:whoami")
    kept = load_tokens("web", web.url)

    assert not refused.ok
    assert kept is not None
    assert (kept.issuer, kept.expired) == (web.base, True)
    desk.close()


@pytest.mark.parametrize(
    ("auth", "why"),
    [
        ({"flow": "client_credentials"}, "client_secret, a private_key"),
        ({"flow": "client_credentials", "client_secret": "s"}, "needs a client_id"),
        ({"flow": "jwt_bearer", "client_id": "me"}, "needs an assertion"),
        (
            {"flow": "jwt_bearer", "client_id": "me", "assertion_file": "/nowhere"},
            "assertion_file can't be read",
        ),
        ({"flow": "identity_assertion", "client_id": "me"}, "needs a idp_token_endpoint"),
        (
            {
                "flow": "identity_assertion",
                "client_id": "me",
                "id_token": "t",
                "idp_token_endpoint": "http://idp.example/token",
            },
            "was refused",
        ),
    ],
)
def test_what_is_missing_is_named(web: Web, auth: dict[str, Any], why: str) -> None:
    if auth == {"flow": "client_credentials"}:
        auth = {**auth, "client_id": "me"}

    with pytest.raises(ConfigError, match=why):
        logged_in(web, **auth)


def test_a_login_that_fails_says_so(web: Web) -> None:
    web.machine_grants = set()

    with pytest.raises(LoginError, match="invalid_grant"):
        logged_in(web, flow="client_credentials", client_id="me", client_secret="s")


@pytest.mark.parametrize(
    ("auth", "why"),
    [({"flow": "magic"}, "auth.flow must be one of"), ({"clientid": "x"}, "auth has no clientid")],
)
def test_settings_that_mean_nothing_are_refused(auth: dict[str, str], why: str) -> None:
    made = Server("web", {"url": "https://x.example/mcp", "auth": auth}, "test")

    assert why in made.problem
