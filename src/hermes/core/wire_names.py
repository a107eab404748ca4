"""Tool names on the wire: names of MCP tools in the registry, and any name as model APIs accept
it.

`mcp-{server}:{tool}` is the name in the registry. Model APIs accept at most 64 characters of
letters,
digits, `_` and `-`. `wire_name` maps any name to such a name, always to the same one, and the
registry has it as an alias: a call is found by either name.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

PREFIX = "mcp-"
WIRE_LENGTH = 64
# What the registry takes; a name has room for the server's as well.
NAME_LENGTH = 128
_WIRE = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_UNFIT_FOR_WIRE = re.compile(r"[^A-Za-z0-9_-]")
_UNFIT = re.compile(r"[^\w.-]")
_SERVER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,38}[A-Za-z0-9])?\Z")


def is_server_name(name: str) -> bool:
    """Whether a server may be called so: up to 40 plain characters."""
    return bool(_SERVER.match(name))


def toolset_name(server: str) -> str:
    """The toolset that a server's tools are in."""
    return f"{PREFIX}{server}"


def tool_name(server: str, tool: str) -> str:
    """The name of a server's tool in the registry, whatever the server calls it."""
    plain = _UNFIT.sub("_", tool)
    room = NAME_LENGTH - len(PREFIX) - len(server) - 1
    if plain != tool or len(plain) > room:
        # Two names that look alike when made plain must not become one.
        plain = f"{plain[: room - 9]}_{_digest(tool)}" if plain.strip("_") else _digest(tool)
    return f"{PREFIX}{server}:{plain}"


def wire_name(name: str) -> str:
    """`name` as every model API takes it; a name that is plain and short already stays."""
    if _WIRE.match(name):
        return name
    plain = _UNFIT_FOR_WIRE.sub("_", name.replace(":", "__"))
    if len(plain) <= WIRE_LENGTH and name.isascii() and plain == name.replace(":", "__"):
        return plain
    return f"{plain[: WIRE_LENGTH - 9]}_{_digest(name)}"


def wired(definitions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Function definitions with their names as every model API takes them."""
    found = []
    for definition in definitions:
        function = definition["function"]
        name = wire_name(function["name"])
        if name != function["name"]:
            definition = {**definition, "function": {**function, "name": name}}
        found.append(definition)
    return found


def _digest(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
