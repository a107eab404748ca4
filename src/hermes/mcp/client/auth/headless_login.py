"""Logins without a browser: device code (RFC 8628), client credentials and signed assertions."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.shared.auth_utils import resource_url_from_server_url
from pydantic import ValidationError

from hermes.core.errors import ConfigError
from hermes.mcp.client.auth.bearer import token_request
from hermes.mcp.client.auth.login import (
    WAIT_SECONDS,
    LoginError,
    checked_client,
    discover,
    known_client,
    line_of,
    registered,
    wanted_scope,
)
from hermes.mcp.client.auth.tokens import Tokens, expiry, load_tokens
from hermes.mcp.client.browser import refused_address
from hermes.mcp.client.settings import filled

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hermes.mcp.client.auth.login import Place
    from hermes.mcp.client.settings import Server


_USUAL_SECONDS = 5.0


async def device_login(
    server: Server, show: Callable[[str, str], None], *, seconds: float = WAIT_SECONDS
) -> Tokens:
    """Log in with a code that the person types on any device; the tokens, saved.

    Args:
        show: Tells the person the address and the code.
    """
    url = filled(server.url)
    async with checked_client(url) as client:
        try:
            place = await discover(client, url)
            if not place.device:
                raise LoginError("the server offers no login by code", hint="Leave out --device.")
            known = known_client(server, "http://127.0.0.1/callback")
            who = known or await registered(client, place)
            scope = server.auth.get("scope") or place.scope
            extra = {"resource": place.resource} if place.resource else {}
            asked = {"client_id": who.client_id, **({"scope": scope} if scope else {}), **extra}
            begun = await _json(await client.post(place.device, data=asked))
            _show_code(begun, url, show)
            answer = await _polled(
                client,
                token_request(
                    place.token,
                    {
                        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
                        "device_code": str(begun["device_code"]),
                        **extra,
                    },
                    who.client_id or "",
                    who.client_secret or "",
                    who.token_endpoint_auth_method or "",
                ),
                interval=_interval(begun.get("interval")),
                until=time.monotonic() + min(seconds, float(begun.get("expires_in") or seconds)),
            )
        except (
            httpx2.HTTPError,
            OAuthFlowError,
            ValueError,
            KeyError,
            TypeError,
            RecursionError,
        ) as error:
            raise LoginError(f"the login failed: {line_of(error)}") from None
    kept = Tokens(
        url,
        str(answer["access_token"]),
        refresh_token=answer.get("refresh_token"),
        expires_at=expiry(answer.get("expires_in")),
        scope=answer.get("scope") or scope or "",
        token_endpoint=place.token,
        client_id=who.client_id,
        client_secret=who.client_secret,
        auth_method=who.token_endpoint_auth_method,
        resource=place.resource,
        issuer=place.issuer,
    )
    kept.save(server.name)
    return kept


def _show_code(begun: dict[str, Any], url: str, show: Callable[[str, str], None]) -> None:
    address = str(begun.get("verification_uri_complete") or begun["verification_uri"])
    wrong = refused_address(address, beside=url)
    if wrong:
        raise LoginError(f"the server's login address was refused: {wrong}")
    code = "".join(c for c in str(begun["user_code"]) if c.isalnum() or c in "- ")[:40]
    show(address, code)


async def _polled(
    client: httpx2.AsyncClient, request: httpx2.Request, *, interval: float, until: float
) -> dict[str, Any]:
    while (left := until - time.monotonic()) > 0:
        await asyncio.sleep(min(interval, left))
        answer = await client.send(request)
        said = _object(answer)
        if answer.status_code == 200 and said.get("access_token"):
            found: dict[str, Any] = said
            return found
        error = said.get("error")
        if error == "slow_down":
            interval += 5
        elif error != "authorization_pending":
            raise LoginError(f"the login was refused: {str(error)[:80]}")
    raise LoginError("nobody typed the code in time")


async def _json(answer: httpx2.Response) -> dict[str, Any]:
    if answer.status_code not in (200, 201):
        raise ValueError(f"HTTP {answer.status_code} from {answer.url.host}")
    return _object(answer)


def _object(answer: httpx2.Response) -> dict[str, Any]:
    said = answer.json()
    if not isinstance(said, dict):
        raise ValueError("it answered with what is no answer")
    return said


def _interval(said: Any) -> float:
    """How long to wait between two questions: what the server says, if it makes sense."""
    seconds = float(said or _USUAL_SECONDS)
    return seconds if 0 < seconds < WAIT_SECONDS else _USUAL_SECONDS


_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_SIGNED = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"
_ASSERTION = "urn:ietf:params:oauth:token-type:id-jag"
_MOST_BYTES = 100_000


async def machine_login(server: Server) -> Tokens:
    """Log in as a program; the tokens, saved. Raises `LoginError`, or says what is not set."""
    url = filled(server.url)
    before = load_tokens(server.name, url)
    issuer = _said(server, "issuer") or (before.issuer if before is not None else "")
    async with checked_client(url) as client:
        try:
            place = await discover(client, url, issuer=issuer)
            scope = wanted_scope(server, url) or place.scope
            request = await _asked(client, server, place, scope)
            answer = await _granted(await client.send(request))
        except (
            httpx2.HTTPError,
            OAuthFlowError,
            ValidationError,
            ValueError,
            KeyError,
            TypeError,
        ) as error:
            raise LoginError(f"the login failed: {line_of(error)}") from None
    kept = Tokens(
        url,
        str(answer["access_token"]),
        expires_at=expiry(answer.get("expires_in")),
        scope=str(answer.get("scope") or scope),
        token_endpoint=place.token,
        client_id=_said(server, "client_id"),
        resource=place.resource,
        issuer=place.issuer,
    )
    kept.save(server.name)
    return kept


async def _asked(
    client: httpx2.AsyncClient, server: Server, place: Place, scope: str
) -> httpx2.Request:
    """The request for a token, by the way of logging in that the settings name."""
    flow = server.auth["flow"]
    resource = place.resource or resource_url_from_server_url(filled(server.url))
    fields = {"resource": resource, **({"scope": scope} if scope else {})}
    secret = _said(server, "client_secret")
    if flow == "client_credentials":
        fields["grant_type"] = "client_credentials"
        if not secret:
            fields |= await _signature(server, place)
    elif flow == "jwt_bearer":
        fields |= {"grant_type": _BEARER, "assertion": _assertion(server)}
    else:
        assertion = await _exchanged(client, server, place, resource)
        fields |= {"grant_type": _BEARER, "assertion": assertion}
    method = "client_secret_basic" if "client_secret_basic" in place.methods else ""
    if not place.methods:
        # What servers take that say nothing of it.
        method = "client_secret_basic"
    return token_request(place.token, fields, _needed(server, "client_id"), secret, method)


async def _signature(server: Server, place: Place) -> dict[str, str]:
    """Who we are, signed with our private key for that one login server."""
    import jwt
    from mcp.client.auth.extensions.client_credentials import SignedJWTParameters

    who = _needed(server, "client_id")
    key = _said(server, "private_key") or _read(server, "private_key_file")
    if not key:
        raise ConfigError("its auth needs a client_secret, a private_key or a private_key_file")
    signed = SignedJWTParameters(
        issuer=who,
        subject=who,
        signing_key=key,
        signing_algorithm=_said(server, "algorithm") or "RS256",
    )
    try:
        assertion = await signed.create_assertion_provider()(place.issuer)
    except (jwt.PyJWTError, NotImplementedError):
        raise ConfigError(
            f"its private key does not sign by {signed.signing_algorithm!r:.40}",
            hint="`algorithm` in its auth says which one the key is for: RS256, ES256 …",
        ) from None
    return {"client_assertion": assertion, "client_assertion_type": _SIGNED}


def _assertion(server: Server) -> str:
    """What the platform says this workload is; read anew each time, for it does not last."""
    said = _said(server, "assertion") or _read(server, "assertion_file")
    if not said:
        raise ConfigError("its auth needs an assertion or an assertion_file")
    return said


async def _exchanged(
    client: httpx2.AsyncClient, server: Server, place: Place, resource: str
) -> str:
    """What the employer's identity provider gives for the person's id token."""
    provider = _needed(server, "idp_token_endpoint")
    wrong = refused_address(provider, beside=filled(server.url))
    if wrong:
        raise ConfigError(f"its auth names an idp_token_endpoint that was refused: {wrong}")
    asked = {
        "grant_type": _EXCHANGE,
        "requested_token_type": _ASSERTION,
        "subject_token": _needed(server, "id_token"),
        "subject_token_type": _ID_TOKEN,
        "audience": place.issuer,
        "resource": resource,
    }
    who, secret = _said(server, "idp_client_id"), _said(server, "idp_client_secret")
    request = token_request(provider, asked, who, secret, "client_secret_basic")
    return str((await _granted(await client.send(request)))["access_token"])


async def _granted(response: httpx2.Response) -> dict[str, Any]:
    answer = response.json()
    if response.status_code != 200 or not isinstance(answer, dict):
        said = answer.get("error") if isinstance(answer, dict) else ""
        raise ValueError(f"HTTP {response.status_code} {str(said or '')[:80]}".rstrip())
    if not answer.get("access_token"):
        raise ValueError("no token came")
    return answer


def _said(server: Server, name: str) -> str:
    return filled(str(server.auth.get(name) or ""))


def _needed(server: Server, name: str) -> str:
    said = _said(server, name)
    if not said:
        raise ConfigError(f"its auth needs a {name}")
    return said


def _read(server: Server, name: str) -> str:
    """What is in a file that the settings name."""
    import os

    path = os.path.expanduser(_said(server, name))
    if not path:
        return ""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(_MOST_BYTES).strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"its {name} can't be read: {error}") from None
