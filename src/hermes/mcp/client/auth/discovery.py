"""Where a server's login is: protected resource, authorization server, registration."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    extract_resource_metadata_from_www_auth,
    handle_registration_response,
)

from hermes.core.errors import HermesError

if TYPE_CHECKING:
    from typing import Any

    import httpx2
    from mcp.shared.auth import OAuthClientInformationFull


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
