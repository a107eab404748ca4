"""`hermes environments`: list and test the backends for commands, prune leftovers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.interfaces.cli.commands import DONE, FAILED

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from hermes.environments.backends import Setting
    from hermes.interfaces.cli.main import CliApp


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_list)
    parser.add_argument("--json", action="store_true", help="for programs")
    actions = parser.add_subparsers(metavar="ACTION")
    listing = actions.add_parser("list", help="the kinds there are, and which can be had here")
    listing.set_defaults(run=_list)
    test = actions.add_parser("test", help="start one, run a command, say what is enforced")
    test.add_argument("name", metavar="NAME")
    test.set_defaults(run=_test)
    prune = actions.add_parser("prune", help="remove what a Hermes that is gone has left")
    prune.set_defaults(run=_prune)
    for one in (listing, test, prune):
        one.add_argument("--json", action="store_true", help="for programs")


def _list(app: CliApp, options: Namespace) -> int:
    from hermes.environments.backends import BACKENDS

    used = chosen(app)
    rows = [
        {
            "name": one.name,
            "what": one.summary,
            "missing": one.missing(),
            "chosen": one.name == used,
        }
        for one in BACKENDS.values()
    ]
    if options.json:
        app.emit(rows)
        return DONE
    app.table(
        [
            ("NAME", "CHOSEN", "HERE", "WHAT"),
            *(
                (str(row["name"]), "yes" if row["chosen"] else "", str(row["missing"] or "yes"),
                 str(row["what"]))
                for row in rows
            ),
        ]
    )  # fmt: skip
    return DONE


def _test(app: CliApp, options: Namespace) -> int:
    from hermes.environments.backends import backend
    from hermes.environments.isolation_test import probe_backend

    report = probe_backend(backend(options.name), setting_of(app))
    if options.json:
        app.emit(report)
    else:
        for name, value in report.items():
            shown = "; ".join(value) if isinstance(value, list) else value
            if shown not in ("", None):
                app.out(f"{name}: {shown}")
    return DONE if report["works"] and not report["problems"] else FAILED


def _prune(app: CliApp, options: Namespace) -> int:
    from hermes.environments import docker
    from hermes.environments.backends import BACKENDS, CLOUD
    from hermes.environments.cloud.provider import provider_of, prune
    from hermes.environments.sandbox import bwrap

    removed: dict[str, list[str]] = {"sandbox": bwrap.prune(), "docker": []}
    problem = ""
    used = chosen(app)
    if used in CLOUD and not BACKENDS[used].missing():
        try:
            removed[used] = prune(provider_of(used, setting_of(app)))
        except HermesError as error:
            problem = f"{used} was not asked: {error}"
    if not BACKENDS["docker"].missing():
        settings = docker.DockerSettings.read(setting_of(app))
        try:
            removed["docker"] = [one.id[:12] for one in docker.prune(docker.engine(settings))]
        except HermesError as error:
            problem = f"docker was not asked: {error}"
    if options.json:
        app.emit({"removed": removed, "problem": problem})
        return DONE
    for kind, names in removed.items():
        for name in names:
            app.out(f"removed {kind} {name}")
    if not any(removed.values()):
        app.note("nothing was left over")
    if problem:
        app.note(problem)
    return DONE


def setting_of(app: CliApp) -> Setting:
    """A function that reads a setting by name, with a default for unknown names."""
    from hermes.core.config import DEFAULTS

    return lambda name, default: app.config.get(name) if name in DEFAULTS else default


def chosen(app: CliApp) -> str:
    """The kind of environment that tasks work in unless they say otherwise."""
    from hermes.environments.for_task import LOCAL, VARIABLE

    return os.environ.get(VARIABLE) or str(setting_of(app)("terminal.env_type", LOCAL))
