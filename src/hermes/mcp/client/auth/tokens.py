"""Token files: `mcp-tokens/NAME.json`, readable by the owner only."""

from __future__ import annotations

import os
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from hermes.core.errors import ConfigError
from hermes.core.home import flock, home_path, open_lock, write_private
from hermes.core.json_text import to_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Any

# So long before its end a token is renewed.
EARLY_SECONDS = 30.0
# How often it is looked whether another program has renewed them.
_LOOK_SECONDS = 0.05


class Tokens:
    """One server's tokens, and what is needed to renew them."""

    __slots__ = (
        "access_token",
        "auth_method",
        "client_id",
        "client_secret",
        "expires_at",
        "issuer",
        "refresh_token",
        "resource",
        "scope",
        "token_endpoint",
        "url",
        "wanted",
    )

    def __init__(self, url: str, access_token: str, **more: Any) -> None:
        self.url = url
        self.access_token = access_token
        self.refresh_token = str(more.get("refresh_token") or "")
        self.expires_at = float(more.get("expires_at") or 0.0)
        self.scope = str(more.get("scope") or "")
        self.token_endpoint = str(more.get("token_endpoint") or "")
        self.client_id = str(more.get("client_id") or "")
        self.client_secret = str(more.get("client_secret") or "")
        self.auth_method = str(more.get("auth_method") or "")
        self.resource = str(more.get("resource") or "")
        self.issuer = str(more.get("issuer") or "")
        # What the next login has to ask for.
        self.wanted = str(more.get("wanted") or "")

    @property
    def expired(self) -> bool:
        """Whether it will not be taken much longer."""
        return bool(self.expires_at) and time.time() > self.expires_at - EARLY_SECONDS

    @property
    def renewable(self) -> bool:
        """Whether a new token can be had without anybody."""
        return bool(self.refresh_token and self.token_endpoint and self.client_id)

    def renewed(self, answer: dict[str, Any]) -> Tokens:
        """These with what a renewal gave; a refresh token that it leaves out stays as it was."""
        said: dict[str, Any] = {slot: getattr(self, slot) for slot in self.__slots__}
        said["access_token"] = str(answer["access_token"])
        said["expires_at"] = expiry(answer.get("expires_in"))
        for name in ("refresh_token", "scope"):
            if answer.get(name):
                said[name] = str(answer[name])
        return Tokens(**said)

    def save(self, name: str) -> None:
        """Put them on disk."""
        said = {slot: getattr(self, slot) for slot in self.__slots__}
        write_private(_place(name), to_json(said).encode())


def load_tokens(name: str, url: str) -> Tokens | None:
    """The tokens of a server, if they were given for this address."""
    import json

    try:
        with open(_place(name), encoding="utf-8") as file:
            said = json.load(file)
        tokens = Tokens(**said)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(
            f"{_place(name)} can't be read: {error}", hint=f"hermes mcp login {name}"
        ) from None
    # A token is for whom it was given: never sent to another address.
    return tokens if tokens.url == url else None


@asynccontextmanager
async def renewing(name: str) -> AsyncIterator[None]:
    """While one program renews a server's tokens, no other does: a refresh token is good once."""
    import asyncio

    handle = open_lock(f"{_place(name)}.lock")
    try:
        while not flock(handle, wait=False):  # noqa: ASYNC110 - held by another process
            await asyncio.sleep(_LOOK_SECONDS)
        yield
    finally:
        os.close(handle)


def forget_tokens(name: str) -> bool:
    """Remove a server's tokens; whether there were any."""
    try:
        os.unlink(_place(name))
    except FileNotFoundError:
        return False
    return True


def expiry(seconds: Any) -> float:
    """When something ends that lasts so many seconds; 0 when nobody knows."""
    try:
        return time.time() + float(seconds)
    except (TypeError, ValueError):
        return 0.0


def _place(name: str) -> str:
    return home_path("mcp-tokens", f"{name}.json")
