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


async def discover(client: httpx2.AsyncClient, url: str) -> Place:
    """Where a device logs in to the server at `url`; raises when it can't."""
    refused = await client.post(url, json={}, headers={"Accept": "application/json"})
    hinted = extract_resource_metadata_from_www_auth(refused)
    resource: dict[str, Any] = {}
    for address in build_protected_resource_metadata_discovery_urls(hinted, url):
        resource = await _metadata(client, address)
        if resource.get("authorization_servers"):
            break
    servers = resource.get("authorization_servers") or [None]
    issuer = servers[0] if isinstance(servers[0], str) else None
    for address in build_oauth_authorization_server_metadata_discovery_urls(issuer, url):
        found = await _metadata(client, address)
        if found.get("device_authorization_endpoint") and found.get("token_endpoint"):
            if issuer is not None and str(found.get("issuer", "")).rstrip("/") != issuer.rstrip(
                "/"
            ):
                raise HermesError("the login server's metadata is somebody else's")
            scopes = resource.get("scopes_supported") or []
            return Place(
                str(found.get("issuer") or issuer or ""),
                str(found["token_endpoint"]),
                str(found["device_authorization_endpoint"]),
                str(found.get("registration_endpoint") or ""),
                str(resource.get("resource") or ""),
                " ".join(map(str, scopes)) if isinstance(scopes, list) else "",
            )
    raise HermesError("the server offers no login by code", hint="Leave out --device.")


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


async def _metadata(client: httpx2.AsyncClient, address: str) -> dict[str, Any]:
    answer = await client.get(address, headers={"Accept": "application/json"})
    if answer.status_code != 200:
        return {}
    try:
        said = answer.json()
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
