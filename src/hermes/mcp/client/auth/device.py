"""A person logs in with a code, on any device: for where there is no browser (RFC 8628)."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import httpx2
from mcp.client.auth import OAuthFlowError

from hermes.mcp.client.auth.discovery import discover, registered
from hermes.mcp.client.auth.login import (
    WAIT_SECONDS,
    LoginError,
    checked_client,
    known_client,
    line_of,
)
from hermes.mcp.client.auth.provider import token_request
from hermes.mcp.client.auth.tokens import Tokens, expiry
from hermes.mcp.client.browsing import refused_address
from hermes.mcp.client.variables import filled

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

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
