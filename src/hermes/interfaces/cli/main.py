"""Entry point: parse the command line, run the command, map errors to one line and an exit code."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from importlib import import_module

from hermes import __version__
from hermes.core.errors import HermesError
from hermes.core.log import Log
from hermes.core.suggest import close_matches
from hermes.interfaces.cli.commands import COMMANDS, DONE, FAILED, INTERRUPTED, USAGE, UsageError
from hermes.interfaces.cli.terminal import Terminal
from hermes.runtime.app import App

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from hermes.runtime.plugins import Command

log = Log("hermes.cli")

WELCOME = "Hermes gives a language model hands: tools, carried out safely."
FIRST_STEPS = (
    ("  hermes", "talk with an agent, in a terminal"),
    ('  hermes "do this"', "have an agent carry something out"),
    ("  hermes setup", "find a model for it, try it, remember it"),
    ("  hermes undo", "take back what it changed in files"),
    ("  hermes tools", "see the tools"),
    ('  hermes tools search "…"', "find one by need, in your own words"),
    ("  hermes call sleep seconds=2", "call one, with arguments"),
    ("  hermes toolsets", "see how they are grouped"),
    ("  hermes doctor", "what works here, and what is missing"),
    ("  hermes COMMAND --help", "everything about a command"),
)

_EPILOG = """\
exit codes: 0 done, 1 failed, 2 usage, 3 finished but something was refused or left
unapproved, 4 budget used up, 130 interrupted
"""


class CliApp(App, Terminal):
    """What a command works with: Hermes, and the terminal."""

    def __init__(self) -> None:
        App.__init__(self)
        Terminal.__init__(self)

    def _load(self) -> None:
        super()._load()
        if self._loaded:
            from hermes.mcp.client import attach

            # What is known without asking any server; a call connects the one it is for.
            attach(self, connect=False)


class Parser(ArgumentParser):
    """Says what is wrong in one line, with the nearest word that would be right.

    A command that owes programs an answer has a `misread` among its defaults: it is given the words
    and what is wrong with them.
    """

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Namespace | None = None
    ) -> tuple[Namespace, list[str]]:
        """All of the words, or an error: each command knows its own options best."""
        self._words = list(args or ())
        found, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}{self._meant(left[0])}")
        return found, left

    def error(self, message: str) -> NoReturn:
        """One line, and the exit code for wrong usage."""
        told = _shortened(message)
        Terminal().note(f"{self.prog}: {told}; try `{self.prog} --help`")
        if (misread := self.get_default("misread")) is not None:
            misread(self._words, told)
        sys.exit(USAGE)

    def _meant(self, word: str) -> str:
        near = close_matches(word.partition("=")[0], self._option_string_actions, cutoff=0.7)
        return f" (did you mean {near[0]}?)" if near and word.startswith("-") else ""


def run(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code."""
    terminal = Terminal()
    try:
        return _told(terminal, lambda: _within(arguments))
    finally:
        terminal.finish()


def _within(arguments: Sequence[str]) -> int:
    app = CliApp()
    try:
        return _run(app, list(arguments))
    finally:
        app.close()


def _told(terminal: Terminal, work: Callable[[], int]) -> int:
    """The exit code of the work; whatever goes wrong is said in one line."""
    try:
        code = work()
        try:
            terminal.stdout.flush()
        except BrokenPipeError:
            # Whoever read our output has seen enough.
            return code
    except UsageError as error:
        terminal.trouble(error)
        return USAGE
    except HermesError as error:
        terminal.trouble(error)
        return FAILED
    except KeyboardInterrupt:
        terminal.note("hermes: interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        return DONE
    except OSError as error:
        terminal.trouble(error)
        return FAILED
    except Exception as error:
        # A bug, ours or a plugin's: one line for the person, the rest for whoever mends it.
        log.info("a command failed", exc_info=True)
        terminal.trouble(HermesError(f"unexpected {type(error).__name__}: {error}"))
        return FAILED
    return code


def _run(app: CliApp, arguments: list[str]) -> int:
    if not arguments:
        if _on_terminal(app):
            from hermes.interfaces.chat.start import chat

            return chat(app)
        app.paragraph(WELCOME)
        app.out()
        app.table(FIRST_STEPS)
        return DONE
    if " " in arguments[0].strip() and not arguments[0].startswith("-"):
        # A text and no command: what is asked for is to be done.
        arguments = ["run", *arguments]
    name = arguments[0]
    plugin = None
    if name not in COMMANDS and not name.startswith("-"):
        plugin = _plugin_command(app, name)
    parser = _parser(name, plugin)
    options = parser.parse_args(arguments)
    code = options.run(app, options)
    return code if isinstance(code, int) else DONE


def _on_terminal(app: CliApp) -> bool:
    """Whether a person sees what is printed, and types."""
    return app.stdout.isatty() and sys.stdin is not None and sys.stdin.isatty()


def _parser(chosen: str, plugin: Command | None) -> Parser:
    """The parser, with only the chosen command's module imported."""
    parser = Parser(
        prog="hermes",
        description="Tools for language models, carried out safely.",
        epilog=_EPILOG,
    )
    parser.add_argument("-V", "--version", action="version", version=f"hermes {__version__}")
    # `prog` is given so that argparse need not format its help to find it.
    commands = parser.add_subparsers(
        metavar="COMMAND", required=True, parser_class=Parser, prog="hermes"
    )
    # A parser takes half a millisecond: help and errors of a known command need no other one.
    for name in [chosen] if chosen in COMMANDS else COMMANDS:
        module, help_line = COMMANDS[name]
        # Not `capitalize`, which makes the other letters small: MCP stays MCP.
        said = help_line[:1].upper() + help_line[1:]
        command = commands.add_parser(name, help=help_line, description=said)
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
        near = close_matches(name, [*COMMANDS, *app.plugins.commands])
        meant = f"did you mean `{near[0]}`?" if near else "`hermes --help` lists them"
        meant += f" (a request for the agent: hermes run {name:.40})"
        raise UsageError(f"no command is called {name!r:.80}; {meant}")
    return found


def _shortened(message: str) -> str:
    message = " ".join(message.split())
    return message if len(message) <= 300 else f"{message[:300]}…"
