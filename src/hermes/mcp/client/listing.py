"""Listing of a server: its tools and capabilities, cached so that `tools list` needs no server."""

from __future__ import annotations

import os

from hermes.core.json_text import to_json
from hermes.core.paths import home_path, write_private

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from typing import Any

    from hermes.mcp.client.settings import Server

MAX_TOOLS = 2_000
# The key of a definition that can't be used, with the reason.
PROBLEM = "hermes:trouble"


class Listing:
    """Everything a server offers.

    `launch` is the digest of its launch settings, `beyond` the number of tools above the limit,
    `legacy` whether it speaks the older protocol.
    """

    __slots__ = (
        "beyond",
        "instructions",
        "launch",
        "legacy",
        "prompts",
        "resources",
        "tools",
        "version",
    )

    def __init__(
        self,
        launch: str,
        tools: list[Any],
        *,
        resources: bool = False,
        prompts: bool = False,
        legacy: bool = False,
        instructions: str = "",
        version: str = "",
        beyond: int = 0,
    ) -> None:
        self.launch = launch
        self.tools = tools
        self.resources = resources
        self.prompts = prompts
        self.legacy = legacy
        self.instructions = instructions
        self.version = version
        self.beyond = beyond

    def save(self, name: str) -> None:
        """Write the listing to the cache."""
        values = {slot: getattr(self, slot) for slot in self.__slots__}
        write_private(_cache_file(name), to_json(values).encode("utf-8", "replace"))


def cached_listing(server: Server) -> Listing | None:
    """The cached listing; None if the launch settings changed since."""
    import json

    try:
        with open(_cache_file(server.name), encoding="utf-8") as file:
            listing = Listing(**json.load(file))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    if listing.launch != launch_digest(server) or not isinstance(listing.tools, list):
        return None
    return listing


def forget_listing(name: str) -> None:
    """Delete a cached listing."""
    if os.path.exists(_cache_file(name)):
        os.unlink(_cache_file(name))


def launch_digest(server: Server) -> str:
    """The digest of a server's launch settings."""
    return digest(server.launch)


def digest(value: Any) -> str:
    """SHA-256 of a JSON value, independent of the order of keys."""
    import hashlib
    import json

    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _cache_file(name: str) -> str:
    return home_path("cache", "mcp", f"{name}.json")
