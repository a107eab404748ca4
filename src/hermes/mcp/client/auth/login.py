"""Browser login (authorization code with PKCE), and discovery of the authorization server."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    extract_resource_metadata_from_www_auth,
    handle_registration_response,
)
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata
from pydantic import AnyUrl, ValidationError

from hermes.core.errors import HermesError
from hermes.mcp.client import http_client
from hermes.mcp.client.auth.tokens import Tokens, expiry, load_tokens
from hermes.mcp.client.browser import refused_address
from hermes.mcp.client.settings import filled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.shared.auth import OAuthToken

    from hermes.mcp.client.settings import Server


class Place(NamedTuple):
    """The addresses of a login."""

    issuer: str
    token: str
    device: str
    registration: str
    resource: str
    scope: str
    # How programs may say who they are, where the login server names these.
    methods: tuple[str, ...]


async def discover(client: httpx2.AsyncClient, url: str, *, issuer: str = "") -> Place:
    """Where one logs in to the server at `url`; raises when that can't be found out.

    Args:
        issuer: The only login server that will do; whichever the server names if empty.
    """
    refused = await client.post(url, json={}, headers={"Accept": "application/json"})
    hinted = extract_resource_metadata_from_www_auth(refused)
    resource: dict[str, Any] = {}
    for address in build_protected_resource_metadata_discovery_urls(hinted, url):
        resource = await _metadata(client, address)
        if resource.get("authorization_servers"):
            break
    told = resource.get("authorization_servers")
    servers = [one for one in told if isinstance(one, str)] if isinstance(told, list) else []
    if issuer and servers and not any(_same(one, issuer) for one in servers):
        raise HermesError(f"the server sends us to another login server than {issuer}")
    named = issuer or (servers[0] if servers else None)
    for address in build_oauth_authorization_server_metadata_discovery_urls(named, url):
        found = await _metadata(client, address)
        if found.get("token_endpoint"):
            if named is not None and not _same(str(found.get("issuer", "")), named):
                raise HermesError("the login server's metadata is somebody else's")
            methods = found.get("token_endpoint_auth_methods_supported")
            scopes = resource.get("scopes_supported") or []
            return Place(
                str(found.get("issuer") or named or ""),
                str(found["token_endpoint"]),
                str(found.get("device_authorization_endpoint") or ""),
                str(found.get("registration_endpoint") or ""),
                str(resource.get("resource") or ""),
                " ".join(map(str, scopes)) if isinstance(scopes, list) else "",
                tuple(map(str, methods)) if isinstance(methods, list) else (),
            )
    raise HermesError("the server does not say where to log in")


async def registered(client: httpx2.AsyncClient, place: Place) -> OAuthClientInformationFull:
    """Who we are to the login server, which is told of us."""
    if not place.registration:
        raise HermesError(
            "the login server takes no new programs", hint="Put a client_id into the server's auth."
        )
    answer = await client.post(
        place.registration,
        json={
            "client_name": "Hermes",
            "redirect_uris": ["http://127.0.0.1/callback"],
            "grant_types": ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        },
    )
    return await handle_registration_response(answer)


def _same(one: str, other: str) -> bool:
    return one.rstrip("/") == other.rstrip("/")


async def _metadata(client: httpx2.AsyncClient, address: str) -> dict[str, Any]:
    answer = await client.get(address, headers={"Accept": "application/json"})
    if answer.status_code != 200:
        return {}
    try:
        said = answer.json()
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


if TYPE_CHECKING:
    # Shows an address to the person.
    Show = Callable[[str], None]

WAIT_SECONDS = 300.0
_SCOPE = re.compile(r',?\s*scope="[^"]*"')
_PAGE = (
    "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n\r\n"
    "<!doctype html><title>Hermes</title><p>{} You can close this window.</p>"
)
_HELLO: tuple[dict[str, Any], ...] = (
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "hermes", "version": "0"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
)


class LoginError(HermesError):
    """A login that did not come to its end; what was there before is untouched."""


class _Held:
    """Keeps what a login gives until all of it is there."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self.tokens: OAuthToken | None = None
        self.client = client

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


async def login(
    server: Server,
    show: Show,
    *,
    visit: Callable[[str], Awaitable[str]] | None = None,
    seconds: float = WAIT_SECONDS,
) -> Tokens:
    """Log in with a browser; the tokens, saved. Raises `LoginError`.

    Args:
        show: Opens the address of the login for the person.
        visit: In place of the browser: goes to the address, gives the one it was sent back to.
    """
    url = filled(server.url)
    scope = wanted_scope(server, url)
    async with _Listener() as listener:
        answered: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def begin(address: str) -> None:
            wrong = refused_address(address, beside=url)
            if wrong:
                raise LoginError(f"the server's login address was refused: {wrong}")
            if visit is not None:
                answered.set_result(await visit(address))
            else:
                show(address)

        async def come_back() -> AuthorizationCodeResult:
            sent = await (answered if visit is not None else listener.request)
            return _code(sent)

        held = _Held(known_client(server, listener.address))
        provider = OAuthClientProvider(
            url,
            OAuthClientMetadata(
                client_name="Hermes",
                redirect_uris=[AnyUrl(listener.address)],
                grant_types=["authorization_code", "refresh_token"],
                response_types=["code"],
                scope=server.auth.get("scope"),
            ),
            held,
            redirect_handler=begin,
            callback_handler=come_back,
            client_metadata_url=filled(server.auth.get("client_metadata_url", "")) or None,
        )
        try:
            async with asyncio.timeout(seconds):
                await _knock(url, provider, scope)
        except TimeoutError:
            raise LoginError(f"nobody logged in within {seconds:g} s") from None
        except (OAuthFlowError, ValidationError, httpx2.HTTPError, ValueError) as error:
            raise LoginError(f"the login failed: {line_of(error)}") from None
    if held.tokens is None or held.client is None:
        raise LoginError(f"{server.name} did not ask for a login")
    return _kept(server, url, provider, held)


def _kept(server: Server, url: str, provider: OAuthClientProvider, held: _Held) -> Tokens:
    tokens, client, context = held.tokens, held.client, provider.context
    assert tokens is not None
    assert client is not None
    metadata = context.oauth_metadata
    origin = urlsplit(url)
    kept = Tokens(
        url,
        tokens.access_token,
        refresh_token=tokens.refresh_token,
        expires_at=expiry(tokens.expires_in),
        scope=tokens.scope or "",
        token_endpoint=str(metadata.token_endpoint)
        if metadata is not None
        else f"{origin.scheme}://{origin.netloc}/token",
        client_id=client.client_id,
        client_secret=client.client_secret,
        auth_method=client.token_endpoint_auth_method,
        resource=context.get_resource_url() if context.protected_resource_metadata else "",
        issuer=str(metadata.issuer) if metadata is not None else "",
    )
    kept.save(server.name)
    return kept


async def _knock(url: str, auth: httpx2.Auth, scope: str) -> None:
    """Ask the server for something, which makes it ask for a login."""
    headers = {"Accept": "application/json, text/event-stream"}
    async with checked_client(url, auth, scope) as client:
        # Some let everybody in, and ask who it is only when tools are wanted.
        for message in _HELLO:
            async with client.stream("POST", url, json=message, headers=headers) as answer:
                if answer.status_code in (401, 403):
                    raise LoginError(f"the server still says HTTP {answer.status_code}")
                if session := answer.headers.get("mcp-session-id"):
                    headers["mcp-session-id"] = session
        if "mcp-session-id" in headers:
            await client.delete(url, headers=headers)


def wanted_scope(server: Server, url: str) -> str:
    """What to ask for: what the settings say, and what was missing at the last login."""
    before = load_tokens(server.name, url)
    said = (server.auth.get("scope", ""), before.wanted if before is not None else "")
    return " ".join(dict.fromkeys(" ".join(said).split()))


def checked_client(
    url: str, auth: httpx2.Auth | None = None, scope: str = ""
) -> httpx2.AsyncClient:
    """An HTTP client that goes only where a server at `url` may send us.

    With `scope`, a login that the server asks for is for that much.
    """

    async def check(request: httpx2.Request) -> None:
        address = str(request.url)
        wrong = "" if address == url else refused_address(address, beside=url)
        if wrong:
            raise LoginError(f"the server's metadata leads to an address that was refused: {wrong}")

    async def check_metadata(response: httpx2.Response) -> None:
        if scope and response.status_code in (401, 403) and str(response.request.url) == url:
            said = response.headers.get("www-authenticate") or "Bearer"
            said = _SCOPE.sub("", said).rstrip(", ")
            comma = "," if "=" in said else ""
            response.headers["www-authenticate"] = f'{said}{comma} scope="{scope}"'
        if "/.well-known/" not in response.request.url.path or response.status_code != 200:
            return
        await response.aread()
        try:
            said = response.json()
        except (ValueError, RecursionError):
            return
        for name, address in said.items() if isinstance(said, dict) else ():
            wrong = refused_address(str(address), beside=url) if _is_endpoint(name) else ""
            if wrong:
                raise LoginError(f"the server's metadata names a {name} that was refused: {wrong}")

    hooks: dict[str, list[Callable[..., Any]]] = {
        "request": [check],
        "response": [http_client.limit, check_metadata],
    }
    return httpx2.AsyncClient(headers=http_client.HEADERS, auth=auth, timeout=30, event_hooks=hooks)


def _is_endpoint(name: str) -> bool:
    """Whether metadata of this name is an address that we, or the person, would go to."""
    return name.endswith("_endpoint")


def known_client(server: Server, address: str) -> OAuthClientInformationFull | None:
    """Who we are to the server, where that was agreed on beforehand."""
    client_id = filled(server.auth.get("client_id", ""))
    if not client_id:
        return None
    secret = filled(server.auth.get("client_secret", ""))
    return OAuthClientInformationFull(
        client_id=client_id,
        client_secret=secret or None,
        redirect_uris=[AnyUrl(address)],
        # What servers take when nothing else was agreed on.
        token_endpoint_auth_method="client_secret_basic" if secret else "none",
    )


def _code(address: str) -> AuthorizationCodeResult:
    said = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    if "error" in said:
        more = said.get("error_description", "")
        raise LoginError(f"the login was refused: {said['error'][:80]} {more[:200]}".rstrip())
    return AuthorizationCodeResult(
        code=said.get("code", ""), state=said.get("state"), iss=said.get("iss")
    )


class _Listener:
    """Waits on this machine for the browser to come back."""

    def __init__(self) -> None:
        self.request: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.address = ""
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> _Listener:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.address = f"http://127.0.0.1:{port}/callback"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                line = await reader.readline()
            words = line.decode("latin-1").split(" ")
            wanted = len(words) == 3 and words[0] == "GET" and words[1].startswith("/callback?")
            # Whether it is good for a login is found out elsewhere, and said in the terminal.
            refused = wanted and "error" in parse_qs(urlsplit(words[1]).query)
            page = _PAGE.format("The login was refused." if refused else "Hermes goes on.")
            writer.write(page.encode() if wanted else b"HTTP/1.1 404 Not Found\r\n\r\n")
            await writer.drain()
            if wanted and not self.request.done():
                self.request.set_result(words[1])
        except (OSError, ValueError, TimeoutError):
            return
        finally:
            writer.close()


def line_of(error: Exception) -> str:
    """What an error says, in a line."""
    return " ".join(str(error).split())[:300] or type(error).__name__
