"""Entry point: parse the command line, run the command, map errors to one line and an exit code."""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from hermes import __version__
from hermes.core.errors import HermesError, close_matches
from hermes.core.log import Log
from hermes.core.paths import below_command, check_home
from hermes.interfaces.cli.commands import (
    COMMANDS,
    DONE,
    FAILED,
    INTERRUPTED,
    REFUSED,
    USAGE,
    UsageError,
    add_arguments,
    changes_state,
)
from hermes.interfaces.cli.terminal import Terminal
from hermes.runtime.app import App

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

    from hermes.runtime.plugins import Command

log = Log("hermes.cli")

WELCOME = "Hermes gives a language model tools, and runs them safely."
FIRST_STEPS = (
    ("  hermes", "chat with an agent in the terminal"),
    ('  hermes "do this"', "let an agent do one thing"),
    ("  hermes setup", "find, test and save a model"),
    ("  hermes undo", "revert the file changes of the last turn"),
    ("  hermes tools", "list the tools"),
    ('  hermes tools search "…"', "find a tool, in your own words"),
    ("  hermes call sleep seconds=2", "call a tool"),
    ("  hermes toolsets", "list groups of tools"),
    ("  hermes doctor", "check the installation"),
    ("  hermes COMMAND --help", "help for a command"),
)

_EPILOG = """\
exit codes: 0 done, 1 failed, 2 usage, 3 finished but something was refused or left
unapproved, 4 budget used up, 130 interrupted
"""


# Commands that say by themselves which plugins are not loaded, or print for programs.
_LIST_PLUGINS = ("plugins", "tools", "doctor", "completion")


class CliApp(App, Terminal):
    """Context of a command: the `App` and the terminal."""

    def __init__(self) -> None:
        App.__init__(self)
        Terminal.__init__(self)
        # Name of the command that runs.
        self.command = ""

    def _load(self) -> None:
        super()._load()
        if self._loaded:
            from hermes.mcp.client import attach

            # Cached listings only; a call connects the server it needs.
            attach(self, connect=False)
            found = self.plugins.found if "plugins" in self.__dict__ else ()
            for plugin in found if self.command not in _LIST_PLUGINS else ():
                if plugin.untrusted:
                    self.note(f"hermes: plugin {plugin.name} was left out: {plugin.problem}")


class Parser(ArgumentParser):
    """Argument parser with one-line errors and suggestions.

    A command that prints JSON also on invalid usage sets the default `usage_error`, which gets the
    words and the message.
    """

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Namespace | None = None
    ) -> tuple[Namespace, list[str]]:
        """Parse all words; the error of a command names its own options."""
        self._words = list(args or ())
        options, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}{self._suggestion(rest[0])}")
        return options, rest

    def add_subparsers(self, **options: Any) -> Any:
        """Add the actions of a command; the chosen one is `options.action`."""
        return super().add_subparsers(**{"dest": "action", **options})

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with the code for invalid usage."""
        line = _shortened(message)
        Terminal().note(f"{self.prog}: {line}; try `{self.prog} --help`")
        if (usage_error := self.get_default("usage_error")) is not None:
            usage_error(self._words, line)
        sys.exit(USAGE)

    def _suggestion(self, word: str) -> str:
        near = close_matches(word.partition("=")[0], self._option_string_actions, cutoff=0.7)
        return f" (did you mean {near[0]}?)" if near and word.startswith("-") else ""


def run(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code."""
    terminal = Terminal()
    try:
        return _exit_code(terminal, lambda: _run_app(arguments))
    finally:
        terminal.finish()


def _run_app(arguments: Sequence[str]) -> int:
    app = CliApp()
    try:
        return _run(app, list(arguments))
    finally:
        app.close()


def _exit_code(terminal: Terminal, command: Callable[[], int]) -> int:
    """The exit code of a command; an exception is printed as one line."""
    try:
        code = command()
        try:
            terminal.stdout.flush()
        except BrokenPipeError:
            # The reader of our output has closed it.
            return code
    except UsageError as error:
        terminal.error(error)
        return USAGE
    except HermesError as error:
        terminal.error(error)
        return FAILED
    except KeyboardInterrupt:
        terminal.note("hermes: interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        return DONE
    except OSError as error:
        terminal.error(error)
        return FAILED
    except Exception as error:
        # A bug: one line for the person, the traceback for the log.
        log.info("a command failed", exc_info=True)
        terminal.error(HermesError(f"unexpected {type(error).__name__}: {error}"))
        return FAILED
    return code


def _run(app: CliApp, arguments: list[str]) -> int:
    if not arguments:
        if _on_terminal(app) and not below_command():
            from hermes.interfaces.chat.start import chat

            return chat(app)
        app.paragraph(WELCOME)
        app.out()
        app.table(FIRST_STEPS)
        return DONE
    if " " in arguments[0].strip() and not arguments[0].startswith("-"):
        # A sentence instead of a command name: a request for the agent.
        arguments = ["run", *arguments]
    name = app.command = arguments[0]
    plugin = None
    if name not in COMMANDS and not name.startswith("-"):
        plugin = _plugin_command(app, name)
    parser = _parser(name, plugin)
    options = parser.parse_args(arguments)
    if changes_state(name, options) and below_command():
        app.error(
            HermesError(
                f"`hermes {name}` changes what Hermes keeps, approves or starts, and a command of "
                "Hermes itself started it",
                hint="Run it in a terminal of your own.",
            )
        )
        return REFUSED
    check_home()
    code = options.run(app, options)
    return code if isinstance(code, int) else DONE


def _on_terminal(app: CliApp) -> bool:
    """Whether stdin and stdout are a terminal."""
    return app.stdout.isatty() and sys.stdin is not None and sys.stdin.isatty()


def _parser(chosen: str, plugin: Command | None) -> Parser:
    """The parser, with only the chosen command's module imported."""
    parser = Parser(
        prog="hermes",
        description="Tools for language models, carried out safely.",
        epilog=_EPILOG,
    )
    parser.add_argument("-V", "--version", action="version", version=f"hermes {__version__}")
    # With `prog` argparse need not format its help to find the name.
    commands = parser.add_subparsers(
        dest="chosen", metavar="COMMAND", required=True, parser_class=Parser, prog="hermes"
    )
    # A parser takes half a millisecond: help and errors of a known command need no other one.
    for name in [chosen] if chosen in COMMANDS else COMMANDS:
        help_line = COMMANDS[name][1]
        # Not `capitalize`, which lowers the other letters: MCP stays MCP.
        description = help_line[:1].upper() + help_line[1:]
        command = commands.add_parser(name, help=help_line, description=description)
        if name == chosen:
            add_arguments(name, command)
    if plugin is not None:
        command = commands.add_parser(plugin.name, help=plugin.help, description=plugin.help)
        if plugin.arguments is not None:
            plugin.arguments(command)
        command.set_defaults(run=plugin.run)
    return parser


def _plugin_command(app: CliApp, name: str) -> Command | None:
    """The command of a plugin; raises an error with a suggestion when there is none."""
    app.registry  # noqa: B018 - loads the plugins
    command = app.plugins.commands.get(name)
    if command is None:
        near = close_matches(name, [*COMMANDS, *app.plugins.commands])
        hint = f"did you mean `{near[0]}`?" if near else "`hermes --help` lists them"
        hint += f" (a request for the agent: hermes run {name:.40})"
        raise UsageError(f"no command is called {name!r:.80}; {hint}")
    return command


def _shortened(message: str) -> str:
    message = " ".join(message.split())
    return message if len(message) <= 300 else f"{message[:300]}…"
