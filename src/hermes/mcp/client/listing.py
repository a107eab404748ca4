"""Listing of a server (tools, resources, prompts), cached on disk so that `tools list` needs no
server.
"""

from __future__ import annotations

import os

from hermes.core.home import home_path, write_private
from hermes.core.json_text import to_json

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from typing import Any

    from hermes.mcp.client.settings import Server

MOST_TOOLS = 2_000
# Where in a definition it stands that it can't be used, and why.
TROUBLE = "hermes:trouble"


class Listing:
    """What a server said it has. `legacy` says that it speaks an older protocol."""

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
        # How many more there were.
        self.beyond = beyond

    def keep(self, name: str) -> None:
        """Remember it on disk."""
        said = {slot: getattr(self, slot) for slot in self.__slots__}
        write_private(_place(name), to_json(said).encode("utf-8", "replace"))


def remembered(server: Server) -> Listing | None:
    """What a server said last, if that was under the launch it has now."""
    import json

    try:
        with open(_place(server.name), encoding="utf-8") as file:
            said = json.load(file)
        listing = Listing(**said)
    except (OSError, ValueError, TypeError, RecursionError):
        # Never asked, or damaged: it will be asked again.
        return None
    if listing.launch != launch_digest(server) or not isinstance(listing.tools, list):
        return None
    return listing


def forget(name: str) -> None:
    """Remove what is remembered of a server."""
    if os.path.exists(_place(name)):
        os.unlink(_place(name))


def launch_digest(server: Server) -> str:
    """What stands for the program that answers."""
    return digest(server.launch)


def digest(value: Any) -> str:
    """A hash of any JSON value, the same whatever the order of names."""
    import hashlib
    import json

    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _place(name: str) -> str:
    return home_path("cache", "mcp", f"{name}.json")
