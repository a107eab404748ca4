"""`hermes tool`: register, show and remove tools written in YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.errors import HermesError, did_you_mean

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any, Protocol

    from hermes.core.entry import ToolEntry
    from hermes.core.registry import ToolRegistry
    from hermes.runtime.yaml_tools.store import YamlTools

    class App(Protocol):
        """The part of `CliApp` that these commands use."""

        registry: ToolRegistry
        yaml_tools: YamlTools

        def out(self, text: str) -> None: ...
        def note(self, text: str) -> None: ...
        def emit(self, value: Any) -> None: ...


def arguments(parser: ArgumentParser) -> None:
    """Add the actions of `hermes tool` to its parser."""
    actions = parser.add_subparsers(required=True, metavar="ACTION")

    register = actions.add_parser("register", help="add the tools of a YAML file")
    register.add_argument("file", nargs="?", metavar="FILE", help="the YAML file")
    register.add_argument("--config", metavar="FILE", help="the YAML file")
    register.add_argument("--json", action="store_true", help="answer as JSON")
    register.set_defaults(run=_register)

    listing = actions.add_parser("list", help="show the registered files and their tools")
    listing.add_argument("--json", action="store_true", help="answer as JSON")
    listing.set_defaults(run=_list)

    show = actions.add_parser("show", help="show one tool: what it takes and where it comes from")
    show.add_argument("name", metavar="NAME")
    show.add_argument("--json", action="store_true", help="answer as JSON")
    show.set_defaults(run=_show)

    unregister = actions.add_parser("unregister", help="take away a tool, or a file with its tools")
    unregister.add_argument("name", metavar="NAME_OR_FILE")
    unregister.add_argument("--json", action="store_true", help="answer as JSON")
    unregister.set_defaults(run=_unregister)


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


def _list(app: App, options: Namespace) -> None:
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


def _show(app: App, options: Namespace) -> None:
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
