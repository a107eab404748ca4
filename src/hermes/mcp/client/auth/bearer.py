"""Bearer authentication: adds the access token to each request and renews it before it expires."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx2

from hermes.core.errors import HermesError
from hermes.mcp.client.auth.tokens import load_tokens, renewing
from hermes.mcp.client.browser import refused_address
from hermes.mcp.client.errors import NeedsLoginError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from hermes.mcp.client.auth.tokens import Tokens
    from hermes.mcp.client.settings import Server

# Those for which nobody has to be there.
MACHINE_FLOWS = ("client_credentials", "jwt_bearer", "identity_assertion")
# How long a login server may be silent. Others wait meanwhile, in other programs too.
_RENEW_SECONDS = 15.0
_SCOPE = re.compile(r'scope="([^"]{1,1000})"')


class Bearer(httpx2.Auth):
    """The token of one server."""

    def __init__(self, name: str, url: str, *, machine: bool = False) -> None:
        self._name = name
        self._url = url
        # We log in ourselves: a new connection does so.
        self._machine = machine

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request with the token, renewed where that helps."""
        tokens = load_tokens(self._name, self._url)
        if tokens is not None and tokens.expired and tokens.renewable:
            async with renewing(self._name):
                tokens = load_tokens(self._name, self._url) or tokens
                if tokens.expired:
                    tokens = await self._taken(tokens, (yield self._renewal(tokens)))
        if tokens is not None:
            request.headers["Authorization"] = f"Bearer {tokens.access_token}"
        response = yield request
        if response.status_code == 401 and tokens is not None and tokens.renewable:
            async with renewing(self._name):
                now = load_tokens(self._name, self._url) or tokens
                if now.access_token == tokens.access_token:
                    now = await self._taken(tokens, (yield self._renewal(tokens)))
            request.headers["Authorization"] = f"Bearer {now.access_token}"
            response = yield request
        if response.status_code == 401:
            if self._machine and tokens is not None:
                # Kept, for it says which login server is the right one.
                tokens.expires_at = 1.0
                tokens.save(self._name)
                raise HermesError("its token is not taken any more: a new one is asked for")
            why = "nobody has, so far" if tokens is None else "its token is not taken any more"
            raise NeedsLoginError(self._name, why)
        said = response.headers.get("www-authenticate", "")
        if response.status_code == 403 and "insufficient_scope" in said:
            found = _SCOPE.search(said)
            if tokens is not None and found:
                tokens.wanted = " ".join((tokens.wanted, tokens.scope, found.group(1))).strip()
                tokens.save(self._name)
            raise NeedsLoginError(self._name, "what was allowed at the last login is not enough")

    def _renewal(self, tokens: Tokens) -> httpx2.Request:
        wrong = refused_address(tokens.token_endpoint, beside=self._url)
        if wrong:
            raise NeedsLoginError(self._name, f"its token can't be renewed: {wrong}")
        return token_request(
            tokens.token_endpoint,
            {
                "grant_type": "refresh_token",
                "refresh_token": tokens.refresh_token,
                **({"resource": tokens.resource} if tokens.resource else {}),
                **({"scope": tokens.scope} if tokens.scope else {}),
            },
            tokens.client_id,
            tokens.client_secret,
            tokens.auth_method,
        )

    async def _taken(self, tokens: Tokens, response: httpx2.Response) -> Tokens:
        """The new tokens, kept; the old ones stay where the answer holds none."""
        status = response.status_code
        if status == 429 or status >= 500:
            # Nothing is wrong with the token: it is tried again later.
            raise HermesError(f"its token can't be renewed now: HTTP {status} at the login server")
        try:
            await response.aread()
            answer = response.json() if status == 200 else None
            if not isinstance(answer, dict) or not answer.get("access_token"):
                raise ValueError(f"HTTP {status}")
        except (ValueError, RecursionError) as error:
            raise NeedsLoginError(self._name, f"its token was not renewed ({error})") from None
        renewed = tokens.renewed(answer)
        renewed.save(self._name)
        return renewed


async def authorisation(server: Server, url: str) -> httpx2.Auth:
    """What logs each request to a server in."""
    machine = server.auth.get("flow") in MACHINE_FLOWS
    if machine:
        tokens = load_tokens(server.name, url)
        if tokens is None or tokens.expired:
            from hermes.mcp.client.auth.headless_login import machine_login

            await machine_login(server)
    return Bearer(server.name, url, machine=machine)


def token_request(
    endpoint: str, fields: dict[str, str], client_id: str, client_secret: str, method: str
) -> httpx2.Request:
    """A request for a token, with who we are said in the way the server wants."""
    headers = {"Accept": "application/json"}
    fields = dict(fields)
    if client_secret and method == "client_secret_basic":
        import base64
        from urllib.parse import quote

        pair = f"{quote(client_id, safe='')}:{quote(client_secret, safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        fields["client_id"] = client_id
        if client_secret:
            fields["client_secret"] = client_secret
    # A client sets no limits for the requests of an auth flow.
    limits = {"timeout": httpx2.Timeout(_RENEW_SECONDS).as_dict()}
    return httpx2.Request("POST", endpoint, data=fields, headers=headers, extensions=limits)
