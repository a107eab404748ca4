"""Access tokens: files readable by the owner only, and their use and renewal in requests."""

from __future__ import annotations

import os
import re
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx2
import msgspec

from hermes.core.errors import ConfigError, HermesError
from hermes.core.paths import flock, home_path, open_lock, write_private
from hermes.mcp.client.http_client import url_problem
from hermes.mcp.client.results import NeedsLoginError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from typing import Any

    from hermes.mcp.client.settings import Server


EARLY_SECONDS = 30.0  # a token is renewed this long before it expires
# How often the lock of another process is tried again.
_LOCK_SECONDS = 0.05


class Tokens(msgspec.Struct):
    """The tokens of one server and the fields needed to renew them.

    `wanted` is the scope that the next login has to request.
    """

    url: str
    access_token: str
    refresh_token: str = ""
    expires_at: float = 0.0
    scope: str = ""
    token_endpoint: str = ""
    client_id: str = ""
    client_secret: str = ""
    auth_method: str = ""
    resource: str = ""
    issuer: str = ""
    wanted: str = ""

    @property
    def expired(self) -> bool:
        """Whether the access token expires within `EARLY_SECONDS`."""
        return bool(self.expires_at) and time.time() > self.expires_at - EARLY_SECONDS

    @property
    def renewable(self) -> bool:
        """Whether a refresh token allows a renewal without a person."""
        return bool(self.refresh_token and self.token_endpoint and self.client_id)

    def renewed(self, answer: dict[str, Any]) -> Tokens:
        """A copy with the fields of a renewal; a refresh token that it leaves out is kept."""
        return msgspec.structs.replace(
            self,
            access_token=str(answer["access_token"]),
            expires_at=expiry(answer.get("expires_in")),
            refresh_token=str(answer.get("refresh_token") or self.refresh_token),
            scope=str(answer.get("scope") or self.scope),
        )

    def save(self, name: str) -> None:
        """Write the token file."""
        write_private(_token_file(name), msgspec.json.encode(self))


def load_tokens(name: str, url: str) -> Tokens | None:
    """The tokens of a server; None if they were issued for another URL."""
    try:
        with open(_token_file(name), "rb") as file:
            tokens = msgspec.json.decode(file.read(), type=Tokens)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{_token_file(name)} can't be read: {error}", hint=f"hermes mcp login {name}"
        ) from None
    # A token is never sent to another address.
    return tokens if tokens.url == url else None


@asynccontextmanager
async def renewal_lock(name: str) -> AsyncIterator[None]:
    """Lock of a renewal across processes: a refresh token is valid once."""
    import asyncio

    handle = open_lock(f"{_token_file(name)}.lock")
    try:
        while not flock(handle, wait=False):  # noqa: ASYNC110 - held by another process
            await asyncio.sleep(_LOCK_SECONDS)
        yield
    finally:
        os.close(handle)


def forget_tokens(name: str) -> bool:
    """Delete a token file; False if there was none."""
    try:
        os.unlink(_token_file(name))
    except FileNotFoundError:
        return False
    return True


def expiry(seconds: Any) -> float:
    """The time at which a lifetime of `seconds` ends; 0 if it is unknown."""
    try:
        return time.time() + float(seconds)
    except (TypeError, ValueError):
        return 0.0


def _token_file(name: str) -> str:
    return home_path("mcp-tokens", f"{name}.json")


# Login flows without a person.
MACHINE_FLOWS = ("client_credentials", "jwt_bearer", "identity_assertion")
# Timeout of a login server; the renewal lock is held meanwhile.
_RENEW_SECONDS = 15.0
_SCOPE = re.compile(r'scope="([^"]{1,1000})"')


class Bearer(httpx2.Auth):
    """Adds the token of one server to each request."""

    def __init__(self, name: str, url: str, *, machine: bool = False) -> None:
        self._name = name
        self._url = url
        # A new connection logs in again by itself.
        self._machine = machine

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request with the token; renew it when it expired or is refused."""
        tokens = load_tokens(self._name, self._url)
        if tokens is not None and tokens.expired and tokens.renewable:
            async with renewal_lock(self._name):
                tokens = load_tokens(self._name, self._url) or tokens
                if tokens.expired:
                    tokens = await self._save_renewed(tokens, (yield self._renewal_request(tokens)))
        if tokens is not None:
            request.headers["Authorization"] = f"Bearer {tokens.access_token}"
        response = yield request
        if response.status_code == 401 and tokens is not None and tokens.renewable:
            async with renewal_lock(self._name):
                now = load_tokens(self._name, self._url) or tokens
                if now.access_token == tokens.access_token:
                    now = await self._save_renewed(tokens, (yield self._renewal_request(tokens)))
            request.headers["Authorization"] = f"Bearer {now.access_token}"
            response = yield request
        if response.status_code == 401:
            if self._machine and tokens is not None:
                # Kept: the file has the address of the login server.
                tokens.expires_at = 1.0
                tokens.save(self._name)
                raise HermesError("its token is not taken any more: a new one is asked for")
            reason = "nobody has, so far" if tokens is None else "its token is not taken any more"
            raise NeedsLoginError(self._name, reason)
        challenge = response.headers.get("www-authenticate", "")
        if response.status_code == 403 and "insufficient_scope" in challenge:
            match = _SCOPE.search(challenge)
            if tokens is not None and match:
                tokens.wanted = " ".join((tokens.wanted, tokens.scope, match.group(1))).strip()
                tokens.save(self._name)
            raise NeedsLoginError(self._name, "what was allowed at the last login is not enough")

    def _renewal_request(self, tokens: Tokens) -> httpx2.Request:
        problem = url_problem(tokens.token_endpoint, server_url=self._url)
        if problem:
            raise NeedsLoginError(self._name, f"its token can't be renewed: {problem}")
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

    async def _save_renewed(self, tokens: Tokens, response: httpx2.Response) -> Tokens:
        """The renewed tokens, saved; raises and keeps the old ones when there are none."""
        status = response.status_code
        if status == 429 or status >= 500:
            # A temporary failure: the token is still valid.
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


async def authentication(server: Server, url: str) -> httpx2.Auth:
    """Bearer authentication for a server, after a login without a person if one is configured."""
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
    """A token request; the client authenticates by `method`."""
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
    # The timeout of the client does not apply to requests of an auth flow.
    limits = {"timeout": httpx2.Timeout(_RENEW_SECONDS).as_dict()}
    return httpx2.Request("POST", endpoint, data=fields, headers=headers, extensions=limits)
