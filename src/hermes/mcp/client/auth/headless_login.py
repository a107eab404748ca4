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
from hermes.mcp.client.auth.login import (
    WAIT_SECONDS,
    LoginError,
    checked_client,
    configured_client,
    discover,
    error_line,
    register_client,
    wanted_scope,
)
from hermes.mcp.client.auth.tokens import Tokens, expiry, load_tokens, token_request
from hermes.mcp.client.http_client import url_problem
from hermes.mcp.client.settings import expand

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hermes.mcp.client.auth.login import LoginEndpoints
    from hermes.mcp.client.settings import Server


_POLL_SECONDS = 5.0


async def device_login(
    server: Server, show: Callable[[str, str], None], *, seconds: float = WAIT_SECONDS
) -> Tokens:
    """Log in with a code that the person types on any device; saves the tokens.

    Args:
        show: Shows the person the URL and the code.
    """
    url = expand(server.url)
    async with checked_client(url) as client:
        try:
            endpoints = await discover(client, url)
            if not endpoints.device:
                raise LoginError("the server offers no login by code", hint="Leave out --device.")
            configured = configured_client(server, "http://127.0.0.1/callback")
            identity = configured or await register_client(client, endpoints)
            scope = server.auth.get("scope") or endpoints.scope
            extra = {"resource": endpoints.resource} if endpoints.resource else {}
            fields = {
                "client_id": identity.client_id,
                **({"scope": scope} if scope else {}),
                **extra,
            }
            device = _successful(await client.post(endpoints.device, data=fields))
            _show_code(device, url, show)
            answer = await _poll(
                client,
                token_request(
                    endpoints.token,
                    {
                        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
                        "device_code": str(device["device_code"]),
                        **extra,
                    },
                    identity.client_id or "",
                    identity.client_secret or "",
                    identity.token_endpoint_auth_method or "",
                ),
                interval=_interval(device.get("interval")),
                seconds=min(seconds, float(device.get("expires_in") or seconds)),
            )
        except (
            httpx2.HTTPError,
            OAuthFlowError,
            ValueError,
            KeyError,
            TypeError,
            RecursionError,
        ) as error:
            raise LoginError(f"the login failed: {error_line(error)}") from None
    tokens = Tokens(
        url,
        str(answer["access_token"]),
        refresh_token=str(answer.get("refresh_token") or ""),
        expires_at=expiry(answer.get("expires_in")),
        scope=str(answer.get("scope") or scope or ""),
        token_endpoint=endpoints.token,
        client_id=identity.client_id or "",
        client_secret=identity.client_secret or "",
        auth_method=identity.token_endpoint_auth_method or "",
        resource=endpoints.resource,
        issuer=endpoints.issuer,
    )
    tokens.save(server.name)
    return tokens


def _show_code(device: dict[str, Any], url: str, show: Callable[[str, str], None]) -> None:
    address = str(device.get("verification_uri_complete") or device["verification_uri"])
    problem = url_problem(address, server_url=url)
    if problem:
        raise LoginError(f"the server's login address was refused: {problem}")
    code = "".join(c for c in str(device["user_code"]) if c.isalnum() or c in "- ")[:40]
    show(address, code)


async def _poll(
    client: httpx2.AsyncClient, request: httpx2.Request, *, interval: float, seconds: float
) -> dict[str, Any]:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        await asyncio.sleep(min(interval, left))
        answer = await client.send(request)
        fields = _json_object(answer)
        if answer.status_code == 200 and fields.get("access_token"):
            return fields
        error = fields.get("error")
        if error == "slow_down":
            interval += 5
        elif error != "authorization_pending":
            raise LoginError(f"the login was refused: {str(error)[:80]}")
    raise LoginError("nobody typed the code in time")


def _successful(answer: httpx2.Response) -> dict[str, Any]:
    if answer.status_code not in (200, 201):
        raise ValueError(f"HTTP {answer.status_code} from {answer.url.host}")
    return _json_object(answer)


def _json_object(answer: httpx2.Response) -> dict[str, Any]:
    value = answer.json()
    if not isinstance(value, dict):
        raise ValueError("the answer is no JSON object")
    return value


def _interval(value: Any) -> float:
    """The poll interval of the server, if it is plausible."""
    seconds = float(value or _POLL_SECONDS)
    return seconds if 0 < seconds < WAIT_SECONDS else _POLL_SECONDS


_JWT_BEARER_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_EXCHANGE_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
_JWT_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"
_ASSERTION = "urn:ietf:params:oauth:token-type:id-jag"
_MAX_FILE_BYTES = 100_000


async def machine_login(server: Server) -> Tokens:
    """Log in without a person; saves the tokens. Raises `LoginError` or `ConfigError`."""
    url = expand(server.url)
    before = load_tokens(server.name, url)
    issuer = _setting(server, "issuer") or (before.issuer if before is not None else "")
    async with checked_client(url) as client:
        try:
            endpoints = await discover(client, url, issuer=issuer)
            scope = wanted_scope(server, url) or endpoints.scope
            request = await _token_request(client, server, endpoints, scope)
            answer = _checked_answer(await client.send(request))
        except (
            httpx2.HTTPError,
            OAuthFlowError,
            ValidationError,
            ValueError,
            KeyError,
            TypeError,
        ) as error:
            raise LoginError(f"the login failed: {error_line(error)}") from None
    tokens = Tokens(
        url,
        str(answer["access_token"]),
        expires_at=expiry(answer.get("expires_in")),
        scope=str(answer.get("scope") or scope),
        token_endpoint=endpoints.token,
        client_id=_setting(server, "client_id"),
        resource=endpoints.resource,
        issuer=endpoints.issuer,
    )
    tokens.save(server.name)
    return tokens


async def _token_request(
    client: httpx2.AsyncClient, server: Server, endpoints: LoginEndpoints, scope: str
) -> httpx2.Request:
    """The token request of the configured flow."""
    flow = server.auth["flow"]
    resource = endpoints.resource or resource_url_from_server_url(expand(server.url))
    fields = {"resource": resource, **({"scope": scope} if scope else {})}
    secret = _setting(server, "client_secret")
    if flow == "client_credentials":
        fields["grant_type"] = "client_credentials"
        if not secret:
            fields |= await _signature(server, endpoints)
    elif flow == "jwt_bearer":
        fields |= {"grant_type": _JWT_BEARER_GRANT, "assertion": _assertion(server)}
    else:
        assertion = await _exchange(client, server, endpoints, resource)
        fields |= {"grant_type": _JWT_BEARER_GRANT, "assertion": assertion}
    method = "client_secret_basic" if "client_secret_basic" in endpoints.methods else ""
    if not endpoints.methods:
        # The default of the protocol.
        method = "client_secret_basic"
    return token_request(endpoints.token, fields, _required(server, "client_id"), secret, method)


async def _signature(server: Server, endpoints: LoginEndpoints) -> dict[str, str]:
    """A client assertion, signed with the private key for this login server."""
    import jwt
    from mcp.client.auth.extensions.client_credentials import SignedJWTParameters

    client_id = _required(server, "client_id")
    key = _setting(server, "private_key") or _file_setting(server, "private_key_file")
    if not key:
        raise ConfigError("its auth needs a client_secret, a private_key or a private_key_file")
    signed = SignedJWTParameters(
        issuer=client_id,
        subject=client_id,
        signing_key=key,
        signing_algorithm=_setting(server, "algorithm") or "RS256",
    )
    try:
        assertion = await signed.create_assertion_provider()(endpoints.issuer)
    except (jwt.PyJWTError, NotImplementedError):
        raise ConfigError(
            f"its private key does not sign by {signed.signing_algorithm!r:.40}",
            hint="`algorithm` in its auth says which one the key is for: RS256, ES256 …",
        ) from None
    return {"client_assertion": assertion, "client_assertion_type": _JWT_ASSERTION}


def _assertion(server: Server) -> str:
    """The assertion of the platform about this workload; read each time, for it expires."""
    assertion = _setting(server, "assertion") or _file_setting(server, "assertion_file")
    if not assertion:
        raise ConfigError("its auth needs an assertion or an assertion_file")
    return assertion


async def _exchange(
    client: httpx2.AsyncClient, server: Server, endpoints: LoginEndpoints, resource: str
) -> str:
    """Token exchange: the person's id token for an assertion of the identity provider."""
    provider = _required(server, "idp_token_endpoint")
    problem = url_problem(provider, server_url=expand(server.url))
    if problem:
        raise ConfigError(f"its auth names an idp_token_endpoint that was refused: {problem}")
    fields = {
        "grant_type": _EXCHANGE_GRANT,
        "requested_token_type": _ASSERTION,
        "subject_token": _required(server, "id_token"),
        "subject_token_type": _ID_TOKEN,
        "audience": endpoints.issuer,
        "resource": resource,
    }
    idp_client, secret = _setting(server, "idp_client_id"), _setting(server, "idp_client_secret")
    request = token_request(provider, fields, idp_client, secret, "client_secret_basic")
    return str(_checked_answer(await client.send(request))["access_token"])


def _checked_answer(response: httpx2.Response) -> dict[str, Any]:
    answer = response.json()
    if response.status_code != 200 or not isinstance(answer, dict):
        error = answer.get("error") if isinstance(answer, dict) else ""
        raise ValueError(f"HTTP {response.status_code} {str(error or '')[:80]}".rstrip())
    if not answer.get("access_token"):
        raise ValueError("no token came")
    return answer


def _setting(server: Server, name: str) -> str:
    return expand(str(server.auth.get(name) or ""))


def _required(server: Server, name: str) -> str:
    value = _setting(server, name)
    if not value:
        raise ConfigError(f"its auth needs a {name}")
    return value


def _file_setting(server: Server, name: str) -> str:
    """The content of a file named in the settings."""
    import os

    path = os.path.expanduser(_setting(server, name))
    if not path:
        return ""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(_MAX_FILE_BYTES).strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"its {name} can't be read: {error}") from None
