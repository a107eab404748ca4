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
from hermes.mcp.client.http_client import url_problem
from hermes.mcp.client.settings import expand

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.shared.auth import OAuthToken

    from hermes.mcp.client.settings import Server


class LoginEndpoints(NamedTuple):
    """The endpoints of an authorization server; `methods` are its client authentications."""

    issuer: str
    token: str
    device: str
    registration: str
    resource: str
    scope: str
    methods: tuple[str, ...]


async def discover(client: httpx2.AsyncClient, url: str, *, issuer: str = "") -> LoginEndpoints:
    """Discover the login of the server at `url`; raises `HermesError`.

    Args:
        issuer: The only login server to accept; any that the server names if empty.
    """
    refused = await client.post(url, json={}, headers={"Accept": "application/json"})
    hinted = extract_resource_metadata_from_www_auth(refused)
    resource: dict[str, Any] = {}
    for address in build_protected_resource_metadata_discovery_urls(hinted, url):
        resource = await _metadata(client, address)
        if resource.get("authorization_servers"):
            break
    listed = resource.get("authorization_servers")
    servers = [url for url in listed if isinstance(url, str)] if isinstance(listed, list) else []
    if issuer and servers and not any(_same_issuer(name, issuer) for name in servers):
        raise HermesError(f"the server sends us to another login server than {issuer}")
    named = issuer or (servers[0] if servers else None)
    for address in build_oauth_authorization_server_metadata_discovery_urls(named, url):
        metadata = await _metadata(client, address)
        if metadata.get("token_endpoint"):
            if named is not None and not _same_issuer(str(metadata.get("issuer", "")), named):
                raise HermesError("the login server's metadata is somebody else's")
            methods = metadata.get("token_endpoint_auth_methods_supported")
            scopes = resource.get("scopes_supported") or []
            return LoginEndpoints(
                str(metadata.get("issuer") or named or ""),
                str(metadata["token_endpoint"]),
                str(metadata.get("device_authorization_endpoint") or ""),
                str(metadata.get("registration_endpoint") or ""),
                str(resource.get("resource") or ""),
                " ".join(map(str, scopes)) if isinstance(scopes, list) else "",
                tuple(map(str, methods)) if isinstance(methods, list) else (),
            )
    raise HermesError("the server does not say where to log in")


async def register_client(
    client: httpx2.AsyncClient, endpoints: LoginEndpoints
) -> OAuthClientInformationFull:
    """Dynamic client registration at the login server."""
    if not endpoints.registration:
        raise HermesError(
            "the login server takes no new programs", hint="Put a client_id into the server's auth."
        )
    answer = await client.post(
        endpoints.registration,
        json={
            "client_name": "Hermes",
            "redirect_uris": ["http://127.0.0.1/callback"],
            "grant_types": ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        },
    )
    return await handle_registration_response(answer)


def _same_issuer(left: str, right: str) -> bool:
    return left.rstrip("/") == right.rstrip("/")


async def _metadata(client: httpx2.AsyncClient, address: str) -> dict[str, Any]:
    answer = await client.get(address, headers={"Accept": "application/json"})
    if answer.status_code != 200:
        return {}
    try:
        value = answer.json()
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


if TYPE_CHECKING:
    # Shows a URL to the person.
    Show = Callable[[str], None]

WAIT_SECONDS = 300.0
_SCOPE = re.compile(r',?\s*scope="[^"]*"')
_PAGE = (
    "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n\r\n"
    "<!doctype html><title>Hermes</title><p>{} You can close this window.</p>"
)
_PROBE_MESSAGES: tuple[dict[str, Any], ...] = (
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
    """A login that failed; the tokens from before are kept."""


class _MemoryStorage:
    """Token storage of the SDK, in memory until the login is complete."""

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
    """Log in with a browser; saves the tokens. Raises `LoginError`.

    Args:
        show: Opens the login page for the person.
        visit: Replaces the browser: visits a URL and returns the URL it is redirected to.
    """
    url = expand(server.url)
    scope = wanted_scope(server, url)
    async with _CallbackServer() as listener:
        callback_url: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def redirect(address: str) -> None:
            problem = url_problem(address, server_url=url)
            if problem:
                raise LoginError(f"the server's login address was refused: {problem}")
            if visit is not None:
                callback_url.set_result(await visit(address))
            else:
                show(address)

        async def callback() -> AuthorizationCodeResult:
            url = await (callback_url if visit is not None else listener.request)
            return _authorization_code(url)

        storage = _MemoryStorage(configured_client(server, listener.address))
        provider = OAuthClientProvider(
            url,
            OAuthClientMetadata(
                client_name="Hermes",
                redirect_uris=[AnyUrl(listener.address)],
                grant_types=["authorization_code", "refresh_token"],
                response_types=["code"],
                scope=server.auth.get("scope"),
            ),
            storage,
            redirect_handler=redirect,
            callback_handler=callback,
            client_metadata_url=expand(server.auth.get("client_metadata_url", "")) or None,
        )
        try:
            async with asyncio.timeout(seconds):
                await _request_tools(url, provider, scope)
        except TimeoutError:
            raise LoginError(f"nobody logged in within {seconds:g} s") from None
        except (OAuthFlowError, ValidationError, httpx2.HTTPError, ValueError) as error:
            raise LoginError(f"the login failed: {error_line(error)}") from None
    if storage.tokens is None or storage.client is None:
        raise LoginError(f"{server.name} did not ask for a login")
    return _save(server, url, provider, storage)


def _save(
    server: Server, url: str, provider: OAuthClientProvider, storage: _MemoryStorage
) -> Tokens:
    tokens, client, context = storage.tokens, storage.client, provider.context
    assert tokens is not None
    assert client is not None
    metadata = context.oauth_metadata
    origin = urlsplit(url)
    saved = Tokens(
        url,
        tokens.access_token,
        refresh_token=tokens.refresh_token or "",
        expires_at=expiry(tokens.expires_in),
        scope=tokens.scope or "",
        token_endpoint=str(metadata.token_endpoint)
        if metadata is not None
        else f"{origin.scheme}://{origin.netloc}/token",
        client_id=client.client_id or "",
        client_secret=client.client_secret or "",
        auth_method=client.token_endpoint_auth_method or "",
        resource=context.get_resource_url() if context.protected_resource_metadata else "",
        issuer=str(metadata.issuer) if metadata is not None else "",
    )
    saved.save(server.name)
    return saved


async def _request_tools(url: str, auth: httpx2.Auth, scope: str) -> None:
    """Connect and list the tools, which makes the server require a login."""
    headers = {"Accept": "application/json, text/event-stream"}
    async with checked_client(url, auth, scope) as client:
        # Some servers require the login only for the list of tools.
        for message in _PROBE_MESSAGES:
            async with client.stream("POST", url, json=message, headers=headers) as answer:
                if answer.status_code in (401, 403):
                    raise LoginError(f"the server still says HTTP {answer.status_code}")
                if session := answer.headers.get("mcp-session-id"):
                    headers["mcp-session-id"] = session
        if "mcp-session-id" in headers:
            await client.delete(url, headers=headers)


def wanted_scope(server: Server, url: str) -> str:
    """The scope of the settings, and the one that was missing at the last login."""
    before = load_tokens(server.name, url)
    scopes = (server.auth.get("scope", ""), before.wanted if before is not None else "")
    return " ".join(dict.fromkeys(" ".join(scopes).split()))


def checked_client(
    url: str, auth: httpx2.Auth | None = None, scope: str = ""
) -> httpx2.AsyncClient:
    """An HTTP client that refuses URLs to which a server at `url` may not send us.

    Args:
        scope: Replaces the scope that the server asks for.
    """

    async def check(request: httpx2.Request) -> None:
        address = str(request.url)
        problem = "" if address == url else url_problem(address, server_url=url)
        if problem:
            raise LoginError(
                f"the server's metadata leads to an address that was refused: {problem}"
            )

    async def check_metadata(response: httpx2.Response) -> None:
        if scope and response.status_code in (401, 403) and str(response.request.url) == url:
            challenge = response.headers.get("www-authenticate") or "Bearer"
            challenge = _SCOPE.sub("", challenge).rstrip(", ")
            comma = "," if "=" in challenge else ""
            response.headers["www-authenticate"] = f'{challenge}{comma} scope="{scope}"'
        if "/.well-known/" not in response.request.url.path or response.status_code != 200:
            return
        await response.aread()
        try:
            metadata = response.json()
        except (ValueError, RecursionError):
            return
        for name, address in metadata.items() if isinstance(metadata, dict) else ():
            is_endpoint = name.endswith("_endpoint")
            problem = url_problem(str(address), server_url=url) if is_endpoint else ""
            if problem:
                raise LoginError(
                    f"the server's metadata names a {name} that was refused: {problem}"
                )

    hooks: dict[str, list[Callable[..., Any]]] = {
        "request": [check],
        "response": [http_client.limit_response, check_metadata],
    }
    return httpx2.AsyncClient(headers=http_client.HEADERS, auth=auth, timeout=30, event_hooks=hooks)


def configured_client(server: Server, address: str) -> OAuthClientInformationFull | None:
    """The client of the settings; None for dynamic registration."""
    client_id = expand(server.auth.get("client_id", ""))
    if not client_id:
        return None
    secret = expand(server.auth.get("client_secret", ""))
    return OAuthClientInformationFull(
        client_id=client_id,
        client_secret=secret or None,
        redirect_uris=[AnyUrl(address)],
        token_endpoint_auth_method="client_secret_basic" if secret else "none",
    )


def _authorization_code(address: str) -> AuthorizationCodeResult:
    query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    if "error" in query:
        more = query.get("error_description", "")
        raise LoginError(f"the login was refused: {query['error'][:80]} {more[:200]}".rstrip())
    return AuthorizationCodeResult(
        code=query.get("code", ""), state=query.get("state"), iss=query.get("iss")
    )


class _CallbackServer:
    """HTTP server on loopback for the redirect of the browser."""

    def __init__(self) -> None:
        self.request: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.address = ""
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> _CallbackServer:
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
            is_callback = (
                len(words) == 3 and words[0] == "GET" and words[1].startswith("/callback?")
            )
            # The code is checked by the SDK, and errors are shown in the terminal.
            refused = is_callback and "error" in parse_qs(urlsplit(words[1]).query)
            page = _PAGE.format("The login was refused." if refused else "Hermes goes on.")
            writer.write(page.encode() if is_callback else b"HTTP/1.1 404 Not Found\r\n\r\n")
            await writer.drain()
            if is_callback and not self.request.done():
                self.request.set_result(words[1])
        except (OSError, ValueError, TimeoutError):
            return
        finally:
            writer.close()


def error_line(error: Exception) -> str:
    """The text of an error in one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__
