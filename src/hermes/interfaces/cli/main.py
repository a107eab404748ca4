"""Chooses the command, runs it, and turns whatever happens into one line and an exit code."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from hermes import __version__
from hermes.core.errors import HermesError
from hermes.interfaces.cli.commands import COMMANDS, DONE, FAILED, INTERRUPTED, USAGE
from hermes.interfaces.cli.terminal import Terminal
from hermes.runtime.app import App

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.runtime.plugins import Command

WELCOME = """\
Hermes gives a language model hands: tools, carried out safely.

  hermes tools                     see the tools
  hermes tools search "…"          find one by need, in your own words
  hermes call system_info          call one
  hermes call sleep seconds=2      … with arguments
  hermes toolsets                  see how they are grouped
  hermes doctor                    what works here, and what is missing
  hermes COMMAND --help            everything about a command
"""

_EPILOG = """\
exit codes: 0 done, 1 failed, 2 usage, 3 finished but something was refused or left
unapproved, 4 budget used up, 130 interrupted
"""


class CliApp(App, Terminal):
    """What a command works with: Hermes, and the terminal."""

    def __init__(self) -> None:
        App.__init__(self)
        Terminal.__init__(self)


class Parser(ArgumentParser):
    """Says what is wrong in one line, with the nearest word that would be right."""

    def error(self, message: str) -> NoReturn:
        """One line, and the exit code for wrong usage."""
        sys.stderr.write(f"{self.prog}: {_shortened(message)}; try `{self.prog} --help`\n")
        sys.exit(USAGE)


def run(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code."""
    app = CliApp()
    try:
        return _run(app, list(arguments))
    except HermesError as error:
        hint = f" ({error.hint})" if error.hint else ""
        app.note(f"hermes: {error}{hint}")
        return FAILED
    except KeyboardInterrupt:
        app.note("hermes: interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough; the interpreter must not complain at exit.
        sys.stdout = None
        return DONE
    finally:
        app.close()


def _run(app: CliApp, arguments: list[str]) -> int:
    if not arguments:
        app.out(WELCOME.rstrip())
        return DONE
    name = arguments[0]
    plugin = None
    if name not in COMMANDS and not name.startswith("-"):
        plugin = _plugin_command(app, name)
    parser = _parser(name, plugin)
    options = parser.parse_args(arguments)
    code = options.run(app, options)
    app.stdout.flush()
    return DONE if code is None else int(code)


def _parser(chosen: str, plugin: Command | None) -> Parser:
    """The parser, with only the chosen command's module imported."""
    parser = Parser(
        prog="hermes",
        description="Tools for language models, carried out safely.",
        epilog=_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("-V", "--version", action="version", version=f"hermes {__version__}")
    # `prog` is given so that argparse need not format its help to find it.
    commands = parser.add_subparsers(
        metavar="COMMAND", required=True, parser_class=Parser, prog="hermes"
    )
    for name, (module, help_line) in COMMANDS.items():
        command = commands.add_parser(name, help=help_line, description=help_line.capitalize())
        if name == chosen:
            import_module(f"hermes.interfaces.cli.{module}").arguments(command)
    if plugin is not None:
        command = commands.add_parser(plugin.name, help=plugin.help, description=plugin.help)
        if plugin.arguments is not None:
            plugin.arguments(command)
        command.set_defaults(run=plugin.run)
    return parser


def _plugin_command(app: CliApp, name: str) -> Command | None:
    """A command that a plugin adds; an error with the nearest name when nobody has it."""
    app.registry  # noqa: B018 - loads the plugins
    found = app.plugins.commands.get(name)
    if found is None:
        import difflib

        known = [*COMMANDS, *app.plugins.commands]
        near = difflib.get_close_matches(name, known, 1, 0.5)
        meant = f"did you mean `{near[0]}`?" if near else "`hermes --help` lists them"
        sys.stderr.write(f"hermes: no command is called {name!r:.80}; {meant}\n")
        sys.exit(USAGE)
    return found


def _shortened(message: str) -> str:
    return message if len(message) <= 300 else f"{message[:300]}…"


def choice(options: Namespace, name: str) -> str:
    """An option's value as text; empty when it was left out."""
    return str(getattr(options, name, None) or "")
