"""Registration: tools of a server checked one by one, named and put into the registry."""

from __future__ import annotations

from hermes.core.availability import Requirement
from hermes.core.entry import ToolEntry
from hermes.core.errors import HermesError
from hermes.core.wire_names import tool_name, toolset_name, wire_name
from hermes.mcp.client.listing import MOST_TOOLS, TROUBLE
from hermes.mcp.client.pins import tool_key
from hermes.mcp.schemas import mended
from hermes.mcp.untrusted_text import description_of, plain

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.entry import Effect
    from hermes.core.registry import ToolRegistry
    from hermes.mcp.client.listing import Listing
    from hermes.mcp.client.pins import Pin
    from hermes.mcp.client.settings import Server

    Invoke = Callable[[dict[str, Any], ToolContext], Any]

# Names of parameters that say what is done with their value; the gate looks at it then.
_COMMANDS = frozenset(("command", "cmd", "commands", "shell_command", "command_line", "bash"))
_PATHS = frozenset(
    ("path", "paths", "file", "files", "filename", "filepath", "directory", "dir", "folder",
     "source", "destination", "root")
)  # fmt: skip
_PATH_ENDS = ("_path", "_paths", "_file", "_dir", "_directory", "_folder", "path", "filename")
_MOVED = "the server's command or address changed since it was approved"
_URLS = frozenset(("url", "urls", "uri", "endpoint", "webhook"))


class Suspended(Requirement):
    """A `check_fn` that says no, and why: the tool has to be approved again."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason

    def missing(self) -> str | None:
        """Why it can't be called."""
        return self.reason


class Offering:
    """What became of a listing: tools that can be called, and those that can't, with reasons."""

    __slots__ = ("entries", "notes", "quarantined", "schemas", "suspended")

    def __init__(self) -> None:
        self.entries: dict[str, ToolEntry] = {}
        self.suspended: dict[str, str] = {}
        self.quarantined: dict[str, str] = {}
        self.notes: dict[str, list[str]] = {}
        # What each tool says about its structured results.
        self.schemas: dict[str, Any] = {}


def offering(
    server: Server,
    listing: Listing,
    pin: Pin | None,
    invoke: Callable[[str, Any], Invoke],
    *,
    known: bool = False,
) -> Offering:
    """Judge what a server lists; `invoke` makes what calls a tool, given its name there.

    Args:
        known: The same listing was judged before: it comes from the disk.
    """
    found = Offering()
    seen: set[str] = set()
    names: set[str] = set()
    moved = pin is not None and not pin.launched_as(server)
    if listing.beyond:
        found.quarantined[f"({listing.beyond} more)"] = (
            f"a server may have {MOST_TOOLS} tools, or 16 MB of them; `include` says which"
        )
    for at, tool in enumerate(listing.tools):
        key = tool_key(tool)
        shown = plain(key, 100) or f"(the tool at place {at + 1})"
        if not key:
            found.quarantined[shown] = "it has no name"
        elif TROUBLE in tool:
            found.quarantined[shown] = plain(tool[TROUBLE], 200)
        elif key in seen:
            found.quarantined[f"{shown} (again)"] = "another tool of the server has the same name"
        elif server.wants(key):
            seen.add(key)
            if shown in found.entries:
                # Two long names that begin alike.
                shown = f"{shown} ({at + 1})"
            try:
                schema = mended(tool.get("inputSchema"), known=known)
                reason = _MOVED if moved else pin.objection(tool) if pin is not None else ""
                if reason:
                    found.suspended[key] = reason
                if schema.notes:
                    found.notes[key] = schema.notes
                call = invoke(key, tool.get("outputSchema"))
                entry = _entry(server, key, tool, schema.schema, reason, call)
                if entry.name in names:
                    raise HermesError(f"another tool of the server is called {entry.name} here")
                names.add(entry.name)
                found.entries[shown] = entry
            except HermesError as error:
                found.quarantined[shown] = str(error)
    return found


def _entry(
    server: Server,
    key: str,
    tool: dict[str, Any],
    schema: dict[str, Any],
    reason: str,
    invoke: Invoke,
) -> ToolEntry:
    annotations = tool.get("annotations")
    if reason:
        reason += f"; `hermes mcp diff {server.name}`, then `hermes mcp approve {server.name}`"
    name = tool_name(server.name, key)
    effect = effect_of(annotations if isinstance(annotations, dict) else {})
    return ToolEntry(
        name,
        toolset_name(server.name),
        schema,
        _unloaded,
        invoke=invoke,
        is_async=True,
        check_fn=Suspended(reason) if reason else None,
        description=description_of(tool, server.name),
        emoji="🔌",
        aliases=aliases_of(name),
        permissions=(f"mcp:{server.name}:{key}",),
        effect=effect,
        acts=acts_for(schema, reads=effect == "read"),
        tags=(server.name, *plain(tool.get("title"), 60).split()),
        origin="mcp",
        owner=server.name,
    )


def aliases_of(name: str) -> tuple[str, ...]:
    """The spelling for model APIs, where that is another one."""
    wired = wire_name(name)
    return (wired,) if wired != name else ()


async def _unloaded() -> None:
    """Stands where a handler would: calls go through `invoke`."""


def effect_of(annotations: Mapping[str, Any]) -> Effect:
    """What a tool may do, by what it says of itself; saying nothing is saying that it may all."""
    if annotations.get("readOnlyHint") is True:
        return "network" if annotations.get("openWorldHint") is True else "read"
    return "write" if annotations.get("destructiveHint") is False else "execute"


def acts_for(schema: Mapping[str, Any], *, reads: bool) -> Callable[..., Any] | None:
    """What works out, for the gate, which commands, paths and addresses a call names."""
    kinds: dict[str, str] = {}
    for name, inner in schema.get("properties", {}).items():
        if not isinstance(inner, dict) or inner.get("type") not in ("string", "array", None):
            continue
        plain_name = name.lower().replace("-", "_")
        if plain_name in _COMMANDS:
            kinds[name] = "execute"
        elif plain_name in _URLS or plain_name.endswith(("_url", "_uri")):
            kinds[name] = "fetch"
        elif plain_name in _PATHS or plain_name.endswith(_PATH_ENDS):
            kinds[name] = "read" if reads else "write"
    if not kinds:
        return None

    def acts(arguments: Mapping[str, Any], context: ToolContext) -> list[tuple[str, str]]:
        found = []
        for name, kind in kinds.items():
            value = arguments.get(name)
            for one in value if isinstance(value, list) else [value]:
                if not isinstance(one, str) or not one:
                    continue
                address = one.lower().startswith(("http://", "https://"))
                if address or kind != "fetch":
                    found.append(("fetch" if address and kind != "execute" else kind, one))
        # What does more than read is asked about as a whole, unless a part of it is refused.
        return found if reads else [act for act in found if _is_refused(*act, context)]

    return acts


def _is_refused(kind: str, value: str, context: ToolContext) -> bool:
    import os

    home = os.path.expanduser("~")
    if kind == "execute":
        from hermes.safety.shell import detect_dangerous_command

        return detect_dangerous_command(value, cwd=context.cwd, home=home).action == "refuse"
    if kind == "fetch":
        return False
    from hermes.safety.paths import check_path

    rules = {"allow_read": ["/**"], "allow_write": ["/**"], "deny": []}
    return not check_path(value, "write", rules=rules, cwd=context.workspace, home=home).allowed


def register(registry: ToolRegistry, before: Offering | None, now: Offering) -> bool:
    """Bring the registry from one offering to the next; whether anything changed.

    What is the same stays the same entry, so that nothing is worked out anew; a call under way
    ends with the entry it began with.
    """
    changed = False
    old = {} if before is None else before.entries
    kept = {entry.name for entry in now.entries.values()}
    for entry in old.values():
        if entry.name not in kept:
            changed = registry.deregister(entry.name) or changed
    for key, entry in list(now.entries.items()):
        same = old.get(key)
        if same is not None and _alike(same, entry) and registry.get(same.name) is same:
            now.entries[key] = same
            continue
        try:
            now.entries[key] = registry.add(entry)
            changed = True
        except HermesError as error:
            del now.entries[key]
            now.quarantined[key] = str(error)
    return changed


def _alike(one: ToolEntry, other: ToolEntry) -> bool:
    return (
        one.name == other.name
        and one.description == other.description
        and one.parameters == other.parameters
        and one.effect == other.effect
        and getattr(one.check_fn, "reason", "") == getattr(other.check_fn, "reason", "")
    )
