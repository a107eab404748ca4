"""`hermes toolsets`: list and show toolsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.interfaces.cli.commands import DONE

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from hermes.interfaces.cli.main import CliApp


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_list, json=False)
    actions = parser.add_subparsers(metavar="ACTION")
    listing = actions.add_parser("list", help="every toolset with one line (the default)")
    listing.add_argument("--json", action="store_true", help="for programs")
    listing.set_defaults(run=_list)
    show = actions.add_parser("show", help="the tools of one toolset")
    show.add_argument("name", metavar="NAME")
    show.add_argument("--json", action="store_true", help="for programs")
    show.set_defaults(run=_show)


def _list(app: CliApp, options: Namespace) -> int:
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


def _show(app: CliApp, options: Namespace) -> int:
    here = {entry.name for entry in app.registry.available()}
    known = set(app.registry.names())
    toolset = app.toolsets.get(options.name)
    tools = app.toolsets.resolve(options.name)
    states = {
        name: "available"
        if name in here
        else "can't work here"
        if name in known
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
