"""Registration: tools of a server checked one by one, named and put into the registry.

A tool that can't be used is quarantined alone, with the reason. The annotations of a tool may only
make us more careful: a tool without annotations may do anything.
"""

from __future__ import annotations

from hermes.core.availability import Requirement
from hermes.core.entry import ToolEntry
from hermes.core.errors import HermesError
from hermes.core.wire_names import tool_name, toolset_name, wire_name
from hermes.mcp.client.listing import MAX_TOOLS, PROBLEM
from hermes.mcp.client.pins import tool_key
from hermes.mcp.schemas import repair_schema
from hermes.mcp.untrusted_text import clean, tool_description

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

# Parameter names that mark a command, path or URL; the gate checks such values.
_COMMANDS = frozenset(("command", "cmd", "commands", "shell_command", "command_line", "bash"))
_PATHS = frozenset(
    ("path", "paths", "file", "files", "filename", "filepath", "directory", "dir", "folder",
     "source", "destination", "root")
)  # fmt: skip
_PATH_ENDS = ("_path", "_paths", "_file", "_dir", "_directory", "_folder", "path", "filename")
_RELAUNCHED = "the server's command or address changed since it was approved"
_URLS = frozenset(("url", "urls", "uri", "endpoint", "webhook"))


class Suspended(Requirement):
    """`check_fn` of a tool whose definition has to be approved again."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason

    def missing(self) -> str | None:
        """The reason."""
        return self.reason


class CheckedTools:
    """The tools of a listing: usable, suspended and quarantined ones, with reasons."""

    __slots__ = ("entries", "notes", "quarantined", "suspended")

    def __init__(self) -> None:
        self.entries: dict[str, ToolEntry] = {}
        self.suspended: dict[str, str] = {}
        self.quarantined: dict[str, str] = {}
        self.notes: dict[str, list[str]] = {}


def check_listing(
    server: Server,
    listing: Listing,
    pin: Pin | None,
    invoke: Callable[[str, Any], Invoke],
    *,
    checked_before: bool = False,
) -> CheckedTools:
    """Check each tool of a listing and make its registry entry.

    Args:
        invoke: Makes the function that calls a tool, from its name and output schema.
        checked_before: The listing comes from the cache, so its schemas compile.
    """
    tools = CheckedTools()
    seen: set[str] = set()
    names: set[str] = set()
    relaunched = pin is not None and not pin.launched_as(server)
    if listing.beyond:
        tools.quarantined[f"({listing.beyond} more)"] = (
            f"a server may have {MAX_TOOLS} tools, or 16 MB of them; `include` says which"
        )
    for index, tool in enumerate(listing.tools):
        key = tool_key(tool)
        shown = clean(key, 100) or f"(the tool at place {index + 1})"
        if not key:
            tools.quarantined[shown] = "it has no name"
        elif PROBLEM in tool:
            tools.quarantined[shown] = clean(tool[PROBLEM], 200)
        elif key in seen:
            tools.quarantined[f"{shown} (again)"] = "another tool of the server has the same name"
        elif server.includes(key):
            seen.add(key)
            if shown in tools.entries:
                # Two long names with the same start.
                shown = f"{shown} ({index + 1})"
            try:
                schema = repair_schema(tool.get("inputSchema"), checked_before=checked_before)
                reason = _RELAUNCHED if relaunched else pin.objection(tool) if pin else ""
                if reason:
                    tools.suspended[key] = reason
                if schema.notes:
                    tools.notes[key] = schema.notes
                call = invoke(key, tool.get("outputSchema"))
                entry = _entry(server, key, tool, schema.schema, reason, call)
                if entry.name in names:
                    raise HermesError(f"another tool of the server is called {entry.name} here")
                names.add(entry.name)
                tools.entries[shown] = entry
            except HermesError as error:
                tools.quarantined[shown] = str(error)
    return tools


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
        _no_handler,
        invoke=invoke,
        is_async=True,
        check_fn=Suspended(reason) if reason else None,
        description=tool_description(tool, server.name),
        emoji="🔌",
        aliases=wire_aliases(name),
        permissions=(f"mcp:{server.name}:{key}",),
        effect=effect,
        acts=_effects_function(schema, reads=effect == "read"),
        tags=(server.name, *clean(tool.get("title"), 60).split()),
        origin="mcp",
        owner=server.name,
    )


def wire_aliases(name: str) -> tuple[str, ...]:
    """The name for model APIs, if it differs."""
    alias = wire_name(name)
    return (alias,) if alias != name else ()


async def _no_handler() -> None:
    """Calls go through `invoke`."""


def effect_of(annotations: Mapping[str, Any]) -> Effect:
    """The effect of a tool by its annotations; `execute` without any."""
    if annotations.get("readOnlyHint") is True:
        return "network" if annotations.get("openWorldHint") is True else "read"
    return "write" if annotations.get("destructiveHint") is False else "execute"


def _effects_function(schema: Mapping[str, Any], *, reads: bool) -> Callable[..., Any] | None:
    """A function that lists the commands, paths and URLs of a call for the gate; or None."""
    kinds: dict[str, str] = {}
    for name, field in schema.get("properties", {}).items():
        if not isinstance(field, dict) or field.get("type") not in ("string", "array", None):
            continue
        key = name.lower().replace("-", "_")
        if key in _COMMANDS:
            kinds[name] = "execute"
        elif key in _URLS or key.endswith(("_url", "_uri")):
            kinds[name] = "fetch"
        elif key in _PATHS or key.endswith(_PATH_ENDS):
            kinds[name] = "read" if reads else "write"
    if not kinds:
        return None

    def effects(arguments: Mapping[str, Any], context: ToolContext) -> list[tuple[str, str]]:
        pairs = []
        for name, kind in kinds.items():
            value = arguments.get(name)
            for text in value if isinstance(value, list) else [value]:
                if not isinstance(text, str) or not text:
                    continue
                is_url = text.lower().startswith(("http://", "https://"))
                if is_url or kind != "fetch":
                    pairs.append(("fetch" if is_url and kind != "execute" else kind, text))
        # A call that changes something asks anyway: only effects that are refused matter.
        return pairs if reads else [pair for pair in pairs if _is_refused(*pair, context)]

    return effects


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


def register(registry: ToolRegistry, before: CheckedTools | None, now: CheckedTools) -> bool:
    """Bring the registry from one listing to the next; whether anything changed.

    An unchanged tool keeps its entry and all that is computed for it; a running call ends with the
    entry it started with.
    """
    changed = False
    old = {} if before is None else before.entries
    kept = {entry.name for entry in now.entries.values()}
    for entry in old.values():
        if entry.name not in kept:
            changed = registry.deregister(entry.name) or changed
    for key, entry in list(now.entries.items()):
        previous = old.get(key)
        if (
            previous is not None
            and _is_same(previous, entry)
            and registry.get(previous.name) is previous
        ):
            now.entries[key] = previous
            continue
        try:
            now.entries[key] = registry.add(entry)
            changed = True
        except HermesError as error:
            del now.entries[key]
            now.quarantined[key] = str(error)
    return changed


def _is_same(left: ToolEntry, right: ToolEntry) -> bool:
    return (
        left.name == right.name
        and left.description == right.description
        and left.parameters == right.parameters
        and left.effect == right.effect
        and getattr(left.check_fn, "reason", "") == getattr(right.check_fn, "reason", "")
    )
