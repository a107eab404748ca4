"""`hermes environments`: where commands can run, whether that works here, what was left over."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.interfaces.cli.commands import DONE, FAILED

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from hermes.environments.protocol import Environment
    from hermes.interfaces.cli.main import CliApp


def arguments(parser: ArgumentParser) -> None:
    """Describe the options."""
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
    from hermes.environments.choosing import LOCAL, VARIABLE

    chosen = os.environ.get(VARIABLE) or str(_setting(app, "terminal.env_type", LOCAL))
    rows = [
        {"name": one.name, "what": one.what, "missing": one.missing(), "chosen": one.name == chosen}
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
    import tempfile
    import time

    from hermes.environments.backends import backend

    chosen = backend(options.name)
    report: dict[str, Any] = {"name": chosen.name, "works": False}
    with tempfile.TemporaryDirectory(prefix="hermes-test-") as folder:
        begun = time.monotonic()
        place = None
        try:
            place = chosen.make(
                folder,
                lambda name, default: _setting(app, name, default),
                env=None,
                task="test",
                passed=(),
            )
            report.update(_tried(place))
        except HermesError as error:
            report["problem"] = str(error)
            report["hint"] = error.hint
        finally:
            if place is not None:
                place.cleanup()
        report["seconds"] = round(time.monotonic() - begun, 2)
    if options.json:
        app.emit(report)
    else:
        for name, value in report.items():
            shown = "; ".join(value) if isinstance(value, list) else value
            if shown not in ("", None):
                app.out(f"{name}: {shown}")
    return DONE if report["works"] else FAILED


def _tried(place: Environment) -> dict[str, Any]:
    """What a command there says, and what is enforced."""
    result = place.execute("echo it works > probe && cat probe && id -u", timeout=30)
    lines = result.stdout.split("\n")
    return {
        "works": result.exit_code == 0 and lines[0] == "it works",
        "user": lines[1] if len(lines) > 1 else "",
        "problem": result.stderr.strip(),
        "notes": result.notes,
        **{name: value for name, value in place.info().as_dict().items() if name != "backend"},
    }


def _prune(app: CliApp, options: Namespace) -> int:
    from hermes.environments.backends import BACKENDS
    from hermes.environments.docker import DockerSettings, link, pruning
    from hermes.environments.sandbox import limits

    removed: dict[str, list[str]] = {"sandbox": limits.prune(), "docker": []}
    problem = ""
    if not BACKENDS["docker"].missing():
        settings = DockerSettings.read(lambda name, default: _setting(app, name, default))
        try:
            removed["docker"] = [one.id[:12] for one in pruning.prune(link.engine(settings))]
        except HermesError as error:
            problem = str(error)
    if options.json:
        app.emit({"removed": removed, "problem": problem})
        return DONE
    for kind, names in removed.items():
        for name in names:
            app.out(f"removed {kind} {name}")
    if not any(removed.values()):
        app.note("nothing was left over")
    if problem:
        app.note(f"docker was not asked: {problem}")
    return DONE


def _setting(app: CliApp, name: str, default: object) -> Any:
    from hermes.core.config import DEFAULTS

    return app.config.get(name) if name in DEFAULTS else default
