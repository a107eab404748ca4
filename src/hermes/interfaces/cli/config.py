"""`hermes config`: read and change the settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.config import DEFAULTS, Config, set_value, unknown_setting
from hermes.core.errors import HermesError
from hermes.core.paths import home_path, write_private
from hermes.interfaces.cli.commands import DONE, FAILED, actions

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from hermes.interfaces.cli.main import CliApp


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_list, json=False)
    add = actions(parser)
    add("list", _list, "every setting (the default)")
    add("get", _get, "the value of a setting or a section").add_argument("name", metavar="NAME")
    change = add("set", _set, "change one setting, keeping the rest of the file", json=False)
    change.add_argument("name", metavar="NAME")
    change.add_argument("value", metavar="VALUE", help="a list may be given as a,b,c")
    add("path", _path, "where the settings are", json=False)
    add("edit", _edit, "open the settings in $EDITOR", json=False)


def _list(app: CliApp, options: Namespace) -> int:
    values = {name: app.config.get(name) for name in DEFAULTS}
    if options.json:
        app.emit(values)
    else:
        app.table([(name, _shown(value), DEFAULTS[name][1]) for name, value in values.items()])
    return DONE


def _get(app: CliApp, options: Namespace) -> int:
    value = app.config.get(options.name)
    if options.json or isinstance(value, (dict, list)):
        app.emit(value)
    else:
        app.out(_shown(value))
    return DONE


def _set(app: CliApp, options: Namespace) -> int:
    value = set_value(options.name, options.value)
    app.out(f"{options.name} = {_shown(value)}")
    return DONE


def _path(app: CliApp, options: Namespace) -> int:  # noqa: ARG001
    app.out(home_path("config.yaml"))
    return DONE


def _edit(app: CliApp, options: Namespace) -> int:  # noqa: ARG001
    import shlex
    import subprocess

    path = home_path("config.yaml")
    if not os.path.exists(path):
        lines = [
            f"# {name}: {about} (default {_shown(v)})" for name, (v, about) in DEFAULTS.items()
        ]
        write_private(path, "\n".join([*lines, ""]).encode())
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        code = subprocess.call([*shlex.split(editor), path])
    except (OSError, ValueError) as error:
        raise HermesError(f"{editor} can't be started: {error}", hint="Set $EDITOR.") from None
    problems = config_problems(Config.load(path))
    for problem in problems:
        app.note(f"hermes: {problem}")
    return FAILED if code or problems else DONE


def config_problems(config: Config) -> list[str]:
    """Problems of the settings file."""
    problems = []
    for name in _names(config.values):
        try:
            if name not in DEFAULTS:
                raise unknown_setting(name)
            config.get(name)
        except HermesError as error:
            problems.append(f"{error} ({error.hint})")
    return problems


def _names(values: dict[str, Any], above: str = "") -> list[str]:
    names: list[str] = []
    for key, value in values.items():
        name = f"{above}{key}"
        inner = isinstance(value, dict) and name not in DEFAULTS
        names += _names(value, f"{name}.") if inner else [name]
    return names


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value)) or "[]"
    return str(value).lower() if isinstance(value, bool) else str(value)
