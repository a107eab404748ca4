"""We log in to a server ourselves, with what we were given beforehand; nobody is asked.

    client_credentials   an id and a secret, or an id and a private key that signs for it
    jwt_bearer           a token that says which workload this is, from the platform it runs on
    identity_assertion   the person's id token, exchanged at the employer's identity provider

`issuer` in the settings names the one login server that any of these may be sent to. Where it is
left out, the first login decides, and later ones hold to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.shared.auth_utils import resource_url_from_server_url
from pydantic import ValidationError

from hermes.core.errors import ConfigError
from hermes.mcp.client.auth.discovery import discover
from hermes.mcp.client.auth.login import LoginError, checked_client, line_of, wanted_scope
from hermes.mcp.client.auth.provider import token_request
from hermes.mcp.client.auth.tokens import Tokens, expiry, load_tokens
from hermes.mcp.client.browsing import refused_address
from hermes.mcp.client.variables import filled

if TYPE_CHECKING:
    from typing import Any

    from hermes.mcp.client.auth.discovery import Place
    from hermes.mcp.client.settings import Server

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
