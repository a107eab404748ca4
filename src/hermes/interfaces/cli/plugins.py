"""`hermes plugins`: list plugins with their contributions and errors; approve those of the home."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.errors import HermesError, did_you_mean
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
    approve = actions.add_parser("approve", help="trust plugins of the home as they are now")
    approve.add_argument("names", nargs="*", metavar="NAME", help="only these")
    approve.set_defaults(run=_approve)


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


def _approve(app: CliApp, options: Namespace) -> int:
    from hermes.runtime.plugins import TrustStore

    app.registry  # noqa: B018 - finds the plugins
    own = {plugin.name: plugin for plugin in app.plugins.found if plugin.source == "home"}
    for name in options.names:
        if name not in own:
            hint = did_you_mean(name, own, f"They are in {app.home}/plugins.")
            raise HermesError(f"no plugin of the home is called {name!r:.80}", hint=hint)
    for name in options.names or own:
        digest = TrustStore().give(own[name].path)
        app.out(f"Approved as it is now: {own[name].path} (sha256 {digest[:16]})")
    if not own:
        app.note(f"no plugins in {app.home}/plugins")
    return DONE


def plugin_report(app: CliApp) -> list[dict[str, Any]]:
    """A report for each plugin, seen through the settings."""
    chosen = (app.config.get(f"tools.{key}_toolsets") for key in ("enabled", "disabled"))
    offered = [d["function"]["name"] for d in app.definitions.get(*chosen, quiet=True)]
    report = app.plugins.report(offered)
    for plugin in report:
        plugin["hidden_commands"] = [name for name in plugin["commands"] if name in COMMANDS]
        plugin["complete"] = plugin["complete"] and not plugin["hidden_commands"]
    return report
