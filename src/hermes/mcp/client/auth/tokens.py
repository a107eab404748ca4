"""Token files: `mcp-tokens/NAME.json`, readable by the owner only."""

from __future__ import annotations

import os
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from hermes.core.errors import ConfigError
from hermes.core.json_text import to_json
from hermes.core.paths import flock, home_path, open_lock, write_private

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Any

EARLY_SECONDS = 30.0  # a token is renewed this long before it expires
# How often the lock of another process is tried again.
_LOCK_SECONDS = 0.05


class Tokens:
    """The tokens of one server and the fields needed to renew them.

    `wanted` is the scope that the next login has to request.
    """

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
        self.wanted = str(more.get("wanted") or "")

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
        fields: dict[str, Any] = {slot: getattr(self, slot) for slot in self.__slots__}
        fields["access_token"] = str(answer["access_token"])
        fields["expires_at"] = expiry(answer.get("expires_in"))
        for name in ("refresh_token", "scope"):
            if answer.get(name):
                fields[name] = str(answer[name])
        return Tokens(**fields)

    def save(self, name: str) -> None:
        """Write the token file."""
        fields = {slot: getattr(self, slot) for slot in self.__slots__}
        write_private(_token_file(name), to_json(fields).encode())


def load_tokens(name: str, url: str) -> Tokens | None:
    """The tokens of a server; None if they were issued for another URL."""
    import json

    try:
        with open(_token_file(name), encoding="utf-8") as file:
            fields = json.load(file)
        tokens = Tokens(**fields)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
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
