"""`hermes tools`: list, show and search the tools."""

from __future__ import annotations

from hermes.core.errors import HermesError, did_you_mean
from hermes.interfaces.cli.commands import DONE, FAILED

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from hermes.core.entry import ToolEntry
    from hermes.interfaces.cli.main import CliApp


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_list, toolset=None, all=False, json=False)
    actions = parser.add_subparsers(metavar="ACTION")
    listing = actions.add_parser("list", help="every tool with one line (the default)")
    listing.add_argument("--toolset", metavar="NAME", help="only the tools of one toolset")
    listing.add_argument("--all", action="store_true", help="those that can't work here, too")
    listing.add_argument("--json", action="store_true", help="for programs")
    listing.set_defaults(run=_list)
    show = actions.add_parser("show", help="everything about one tool")
    show.add_argument("name", metavar="NAME")
    show.add_argument("--json", action="store_true", help="its definition, as a model sees it")
    show.set_defaults(run=_show)
    search = actions.add_parser("search", help="find tools by need, in your own words")
    search.add_argument("words", nargs="+", metavar="WORDS")
    search.add_argument("--limit", type=int, default=5, metavar="N")
    search.add_argument("--json", action="store_true", help="for programs")
    search.set_defaults(run=_search)


def _list(app: CliApp, options: Namespace) -> int:
    entries = app.registry.entries()
    if options.toolset:
        wanted = set(app.toolsets.resolve(options.toolset))
        entries = [entry for entry in entries if entry.name in wanted]
    missing = app.registry.availability.missing(entries)
    shown = [entry for entry in entries if options.all or entry.name not in missing]
    if options.json:
        app.emit([_summary(entry, missing.get(entry.name)) for entry in shown])
        return DONE
    rows = [(entry.name, entry.toolset, _first_line(entry, missing)) for entry in shown]
    app.table(rows)
    hidden = len(entries) - len(shown)
    if hidden:
        app.note(f"{hidden} more can't work here: `hermes tools list --all` says why")
    # Not asked for where there are none: a listing is quick.
    plugins = vars(app)["plugins"].found if "plugins" in vars(app) else []
    broken = [plugin.name for plugin in plugins if not plugin.healthy]
    if broken:
        app.note(f"not all of {', '.join(broken)} could be loaded: `hermes plugins` says why")
    return DONE


def _show(app: CliApp, options: Namespace) -> int:
    entry = app.registry.get(options.name)
    if entry is None:
        raise unknown_tool(app, options.name)
    reason = app.registry.availability.missing([entry]).get(entry.name)
    if options.json:
        app.emit(entry.definition)
        return DONE
    app.out(f"{app.styled(entry.name, 'bold')}  {entry.emoji}".rstrip())
    app.out()
    app.paragraph(entry.description)
    app.out()
    app.table(_parameter_rows(entry) or [("", "(no parameters)")])
    app.out()
    facts = {
        "toolset": entry.toolset,
        "effect": entry.effect,
        "permissions": ", ".join(entry.permissions),
        "also known as": ", ".join(entry.aliases),
        "time limit": f"{entry.timeout_seconds:g} s" if entry.timeout_seconds else "",
        "tags": ", ".join(entry.tags),
        "from": f"{entry.origin} {entry.owner or entry.module}",
        "available": reason or "yes",
    }
    app.table([(name, value) for name, value in facts.items() if value])
    return DONE


def _search(app: CliApp, options: Namespace) -> int:
    if options.limit < 1:
        raise HermesError(f"--limit must be at least 1, not {options.limit}")
    entries = {entry.name: entry for entry in app.registry.available()}
    names = app.index.search(" ".join(options.words), limit=options.limit, among=frozenset(entries))
    if options.json:
        app.emit([_summary(entries[name], None) for name in names])
    elif names:
        app.table([(name, _first_line(entries[name], {})) for name in names])
    if not names:
        app.note("hermes: nothing fits; try other words")
    return DONE if names else FAILED


def unknown_tool(app: CliApp, name: str) -> HermesError:
    """The error for a name that no tool has, with the nearest that one has."""
    known = [*app.registry.names(), *app.registry.aliases()]
    hint = did_you_mean(name, known, "`hermes tools` lists them.")
    return HermesError(f"no tool is called {name!r:.80}", hint=hint)


def _summary(entry: ToolEntry, reason: str | None) -> dict[str, Any]:
    return {
        "name": entry.name,
        "toolset": entry.toolset,
        "description": entry.description,
        "effect": entry.effect,
        "origin": entry.origin,
        "aliases": entry.aliases,
        "available": reason is None,
        **({"reason": reason} if reason else {}),
    }


def _first_line(entry: ToolEntry, missing: dict[str, str]) -> str:
    if entry.name in missing:
        return f"({missing[entry.name]})"
    return entry.description.partition("\n")[0]


def _parameter_rows(entry: ToolEntry) -> list[tuple[str, str, str]]:
    required = entry.parameters.get("required", [])
    rows = []
    for name, schema in entry.parameters.get("properties", {}).items():
        schema = schema if isinstance(schema, dict) else {}
        kind = schema.get("type") or ("one of" if "enum" in schema else "any")
        kind = "/".join(kind) if isinstance(kind, list) else kind
        about = [schema.get("description", "")]
        if "enum" in schema:
            about.append(f"one of {', '.join(map(str, schema['enum']))}")
        if "default" in schema:
            about.append(f"default {schema['default']}")
        mark = "*" if name in required else ""
        rows.append((f"{name}{mark}", str(kind), "; ".join(part for part in about if part)))
    return rows
