"""`hermes plugins`: list plugins, their contributions and load errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.interfaces.cli.commands import COMMANDS, DONE, FAILED

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from hermes.interfaces.cli.main import CliApp


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_list, json=False)
    actions = parser.add_subparsers(metavar="ACTION")
    listing = actions.add_parser("list", help="every plugin and its tools (the default)")
    listing.add_argument("--json", action="store_true", help="for programs")
    listing.set_defaults(run=_list)


def _list(app: CliApp, options: Namespace) -> int:
    report = plugin_report(app)
    if options.json:
        app.emit(report)
    for plugin in report if not options.json else ():
        app.out(f"{app.styled(plugin['name'], 'bold')}  ({plugin['source']}: {plugin['path']})")
        if plugin["problem"]:
            app.out(f"  {app.styled('problem', 'red')}: {plugin['problem']}")
        for key in ("declared", "registered", "visible", "commands"):
            app.out(f"  {key}: {', '.join(plugin[key]) or 'none'}")
        for name, reason in plugin["missing"].items():
            app.out(f"  {name} is missing: {reason}")
        for name in plugin["hidden_commands"]:
            app.out(f"  the command {name} is hidden: its name is held by Hermes itself")
    if not report and not options.json:
        on = app.config.get("plugins.enabled")
        what = f"no plugins; put one into {app.home}/plugins" if on else "plugins are turned off"
        app.note(what)
    return DONE if all(plugin["complete"] for plugin in report) else FAILED


def plugin_report(app: CliApp) -> list[dict[str, Any]]:
    """A report for each plugin, seen through the settings."""
    chosen = (app.config.get(f"tools.{key}_toolsets") for key in ("enabled", "disabled"))
    offered = [d["function"]["name"] for d in app.definitions.get(*chosen, quiet=True)]
    report = app.plugins.report(offered)
    for plugin in report:
        plugin["hidden_commands"] = [name for name in plugin["commands"] if name in COMMANDS]
        plugin["complete"] = plugin["complete"] and not plugin["hidden_commands"]
    return report
