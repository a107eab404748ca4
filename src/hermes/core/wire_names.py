"""Tool names on the wire: MCP tools in the registry, and any name as model APIs accept it.

`mcp-{server}:{tool}` is the name in the registry. Model APIs accept at most 64 characters of
letters, digits, `_` and `-`. `wire_name` maps any name to such a name, always to the same one, and
the registry has it as an alias: a call is found by either name.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

PREFIX = "mcp-"
WIRE_LENGTH = 64
# The registry's limit, server name included.
NAME_LENGTH = 128
_WIRE = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_INVALID_ON_WIRE = re.compile(r"[^A-Za-z0-9_-]")
_INVALID = re.compile(r"[^\w.-]")
_SERVER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,38}[A-Za-z0-9])?\Z")


def is_server_name(name: str) -> bool:
    """Whether a server name is valid: up to 40 characters of `A-Za-z0-9_.-`."""
    return bool(_SERVER.match(name))


def toolset_name(server: str) -> str:
    """The toolset of a server's tools."""
    return f"{PREFIX}{server}"


def tool_name(server: str, tool: str) -> str:
    """The name of a server's tool in the registry; invalid characters are replaced."""
    plain = _INVALID.sub("_", tool)
    room = NAME_LENGTH - len(PREFIX) - len(server) - 1
    if plain != tool or len(plain) > room:
        # The digest keeps names apart that differ only in replaced characters.
        plain = f"{plain[: room - 9]}_{_digest(tool)}" if plain.strip("_") else _digest(tool)
    return f"{PREFIX}{server}:{plain}"


def wire_name(name: str) -> str:
    """`name` as every model API accepts it; a valid name is unchanged."""
    if _WIRE.match(name):
        return name
    plain = _INVALID_ON_WIRE.sub("_", name.replace(":", "__"))
    if len(plain) <= WIRE_LENGTH and name.isascii() and plain == name.replace(":", "__"):
        return plain
    return f"{plain[: WIRE_LENGTH - 9]}_{_digest(name)}"


def wire_definitions(definitions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Function definitions with names that every model API accepts."""
    renamed = []
    for definition in definitions:
        function = definition["function"]
        name = wire_name(function["name"])
        if name != function["name"]:
            definition = {**definition, "function": {**function, "name": name}}
        renamed.append(definition)
    return renamed


def _digest(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
