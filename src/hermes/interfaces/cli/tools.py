"""`hermes tools`, `toolsets` and `tool`: list, show and search tools; register YAML tools."""

from __future__ import annotations

from hermes.core.errors import HermesError, did_you_mean
from hermes.interfaces.cli.commands import DONE, FAILED, actions

TYPE_CHECKING = False

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any, Protocol

    from hermes.core.entry import ToolEntry
    from hermes.core.registry import ToolRegistry
    from hermes.interfaces.cli.main import CliApp
    from hermes.runtime.yaml_tools.store import YamlTools


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_list, toolset=None, all=False, json=False)
    add = actions(parser)
    listing = add("list", _list, "every tool with one line (the default)")
    listing.add_argument("--toolset", metavar="NAME", help="only the tools of one toolset")
    listing.add_argument("--all", action="store_true", help="those that can't work here, too")
    show = add("show", _show, "everything about one tool", json=False)
    show.add_argument("name", metavar="NAME")
    show.add_argument("--json", action="store_true", help="its definition, as a model sees it")
    search = add("search", _search, "find tools by need, in your own words")
    search.add_argument("words", nargs="+", metavar="WORDS")
    search.add_argument("--limit", type=int, default=5, metavar="N")


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
    names = [*app.registry.names(), *app.registry.aliases()]
    hint = did_you_mean(name, names, "`hermes tools` lists them.")
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


def toolsets_arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_toolsets_list, json=False)
    add = actions(parser)
    add("list", _toolsets_list, "every toolset with one line (the default)")
    add("show", _toolsets_show, "the tools of one toolset").add_argument("name", metavar="NAME")


def _toolsets_list(app: CliApp, options: Namespace) -> int:
    here = {entry.name for entry in app.registry.available()}
    rows = []
    for name in app.toolsets.names():
        tools = app.toolsets.resolve(name)
        count = sum(tool in here for tool in tools)
        rows.append((name, count, len(tools), app.toolsets.get(name).description))
    if options.json:
        keys = ("name", "available", "declared", "description")
        app.emit([dict(zip(keys, row, strict=True)) for row in rows])
    else:
        app.table([(name, f"{count}/{total}", about) for name, count, total, about in rows])
        app.note("tools that work here / tools declared")
    return DONE


def _toolsets_show(app: CliApp, options: Namespace) -> int:
    here = {entry.name for entry in app.registry.available()}
    names = set(app.registry.names())
    toolset = app.toolsets.get(options.name)
    tools = app.toolsets.resolve(options.name)
    states = {
        name: "available"
        if name in here
        else "can't work here"
        if name in names
        else "not installed"
        for name in tools
    }
    if options.json:
        app.emit(
            {
                "name": toolset.name,
                "description": toolset.description,
                "includes": toolset.includes,
                "tools": states,
            }
        )
        return DONE
    app.paragraph(f"{app.styled(toolset.name, 'bold')}: {toolset.description}")
    if toolset.includes:
        app.paragraph(f"includes {', '.join(toolset.includes)}")
    app.table(list(states.items()))
    return DONE


if TYPE_CHECKING:

    class App(Protocol):
        """The part of `CliApp` that these commands use."""

        registry: ToolRegistry
        yaml_tools: YamlTools

        def out(self, text: str) -> None: ...
        def note(self, text: str) -> None: ...
        def emit(self, value: Any) -> None: ...


def tool_arguments(parser: ArgumentParser) -> None:
    """Add the actions of `hermes tool` to its parser."""
    add = actions(parser, required=True)
    register = add("register", _register, "add the tools of a YAML file")
    register.add_argument("file", nargs="?", metavar="FILE", help="the YAML file")
    register.add_argument("--config", metavar="FILE", help="the YAML file")
    add("list", _tool_list, "show the registered files and their tools")
    show = add("show", _tool_show, "show one tool: what it takes and where it comes from")
    show.add_argument("name", metavar="NAME")
    unregister = add("unregister", _unregister, "take away a tool, or a file with its tools")
    unregister.add_argument("name", metavar="NAME_OR_FILE")


def _register(app: App, options: Namespace) -> None:
    path = options.config or options.file
    if not path or (options.config and options.file and options.config != options.file):
        raise HermesError("name one file", hint="hermes tool register --config FILE")
    registry = app.registry  # asked for first: it brings in the tools whose names are taken
    entries = app.yaml_tools.register(path)
    missing = registry.availability.missing(entries)
    if options.json:
        app.emit([_about(app, entry, missing.get(entry.name)) for entry in entries])
        return
    for entry in entries:
        app.out(f"Registered `{entry.name}` ({entry.effect})")
        if entry.name in missing:
            app.note(f"`{entry.name}` can't be used yet: {missing[entry.name]}")


def _tool_list(app: App, options: Namespace) -> None:
    registry = app.registry
    files = app.yaml_tools.files()
    entries = {name: registry.get(name) for state in files for name in state.tools}
    missing = registry.availability.missing(entry for entry in entries.values() if entry)
    if options.json:
        app.emit(
            [
                {
                    "file": state.path,
                    "problem": state.problem,
                    "tools": [
                        _about(app, entry, missing.get(name))
                        for name in state.tools
                        if (entry := entries[name]) is not None
                    ],
                }
                for state in files
            ]
        )
        return
    for problem in app.yaml_tools.problems():
        app.note(problem)
    for state in files:
        app.out(state.path)
        width = max(map(len, state.tools), default=0)
        for name in state.tools:
            entry = entries[name]
            line = entry.description.partition("\n")[0] if entry is not None else ""
            reason = f" (hidden: {missing[name]})" if name in missing else ""
            app.out(f"  {name:{width}}  {line[:80]}{reason}".rstrip())
    if not files:
        app.note("No YAML tools are registered; `hermes tool register --config FILE` adds some.")


def _tool_show(app: App, options: Namespace) -> None:
    entry = app.registry.get(options.name)
    if entry is None:
        raise HermesError(
            f"no tool is called {options.name!r:.80}",
            hint=did_you_mean(options.name, app.registry.names(), "hermes tool list shows them."),
        )
    about = _about(app, entry, app.registry.availability.missing([entry]).get(entry.name))
    if options.json:
        app.emit(about)
        return
    for key, value in about.items():
        if key != "parameters" and value not in (None, "", []):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            app.out(f"{key.replace('_', ' ')}: {shown}")
    required = entry.parameters.get("required", ())
    for name, schema in entry.parameters["properties"].items():
        kind = schema.get("type", "any") if isinstance(schema, dict) else "any"
        need = ", required" if name in required else ""
        says = schema.get("description", "") if isinstance(schema, dict) else ""
        app.out(f"  {name} ({kind}{need}) {says}".rstrip())


def _unregister(app: App, options: Namespace) -> None:
    gone = app.yaml_tools.unregister(options.name)
    if options.json:
        app.emit({"unregistered": gone})
        return
    app.out(f"Unregistered {', '.join(f'`{name}`' for name in gone) or options.name}")


def _about(app: App, entry: ToolEntry, missing: str | None) -> dict[str, Any]:
    """A tool as plain values."""
    definition = app.yaml_tools.definition(entry.name)
    return {
        "name": entry.name,
        "description": entry.description,
        "type": definition.type if definition is not None else entry.origin,
        "toolset": entry.toolset,
        "effect": entry.effect,
        "file": entry.owner if entry.origin == "yaml" else None,
        "version": entry.version,
        "timeout_seconds": entry.timeout_seconds,
        "tags": list(entry.tags),
        "requires_env": list(entry.requires_env),
        "hidden": missing,
        "parameters": entry.parameters,
    }
