"""Slash commands of the chat: the table, their arguments, completion, and the actions."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.config import MODES
from hermes.core.errors import HermesError, close_matches
from hermes.interfaces.chat.mentions import is_file
from hermes.interfaces.cli.commands import COMMANDS as CLI_COMMANDS
from hermes.interfaces.cli.commands import UsageError, add_arguments
from hermes.interfaces.cli.main import Parser

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
    from typing import Any, NoReturn

    from hermes.interfaces.chat.controller import Chat


if TYPE_CHECKING:
    # Values for completion, each with a description.
    Pairs = Iterable[tuple[str, str]]
    Arguments = Mapping[str, Callable[[], Pairs]]


# name -> (arguments, help line)
COMMANDS: dict[str, tuple[str, str]] = {
    "help": ("", "this list"),
    "new": ("", "start a new session"),
    "resume": ("[ID]", "resume another session; by default the last one"),
    "sessions": ("[ACTION]", "stored sessions: list, search, show, export, …"),
    "undo": ("[TURN|CALL]", "revert file changes, by default those of the last turn"),
    "expand": ("[N]", "the whole result of call N; Ctrl-O shows the last"),
    "image": ("PATH", "attach an image to the next message"),
    "stop": ("", "end the running turn"),
    "approve": ("[once|session|always]", "answer yes to the current question"),
    "deny": ("", "answer no to the current question"),
    "background": ("TEXT", "let another agent work on it in the background"),
    "agents": ("[HANDLE|stop HANDLE]", "background agents: list, report, stop"),
    "tools": ("[ACTION]", "the tools: list, show, search"),
    "toolsets": ("[ACTION]", "groups of tools"),
    "model": ("[NAME]", "show the model, or switch to another one"),
    "mode": ("[plan|ask|standard|auto]", "what is asked: show it, or change it for this chat"),
    "cost": ("", "tokens and cost of this session"),
    "compress": ("", "shorten the conversation now"),
    "memory": ("", "memory: entries kept between sessions"),
    "skills": ("", "installed skills"),
    "permissions": ("[ACTION]", "permission profiles, and their verdict on a call"),
    "config": ("[ACTION]", "read and change the settings"),
    "doctor": ("", "check the installation"),
    "quit": ("", "leave; the session is kept (Ctrl-D)"),
}
# Commands that run at once, without waiting for the one before.
AT_ONCE = ("background", "agents", "stop", "expand", "help")
ALIASES = {"exit": "quit", "q": "quit", "?": "help", "h": "help", "x": "expand"}

KEYS = (
    ("Enter", "send; during a turn the model reads it at its next step"),
    ("Alt-Enter, \\ Enter", "a new line"),
    ("Tab", "complete a /command or an @file"),
    ("Ctrl-C", "stop the running call; again: end the turn"),
    ("Ctrl-O", "the last result, whole"),
    ("Ctrl-R", "search the input history"),
    ("Ctrl-D", "leave"),
)


def command_in(line: str) -> tuple[str, str] | None:
    """The slash command of an input line and its arguments; None for a message.

    A path at the beginning of a message, `/etc/hosts`, is no command.
    """
    if not line.startswith("/"):
        return None
    word, _, rest = line[1:].partition(" ")
    word, newline, more = word.partition("\n")
    if not word or "/" in word or not (word[0].isalpha() or word in ALIASES):
        return None
    return ALIASES.get(word.lower(), word.lower()), f"{more}{newline}{rest}".strip()


def nearest(word: str) -> str:
    """The command that a mistyped name most likely means; empty when none is similar."""
    starts = [name for name in COMMANDS if name.startswith(word)]
    near = starts or close_matches(word, [*COMMANDS, *ALIASES])
    return ALIASES.get(near[0], near[0]) if near else ""


_ACTIONS = {
    "sessions": ("list", "search", "show", "export", "rename", "delete", "fork", "stats"),
    "tools": ("list", "show", "search"),
    "toolsets": ("list", "show"),
    "permissions": ("list", "show", "check"),
    "config": ("list", "get", "set", "path"),
    "approve": ("once", "session", "always"),
    "model": ("list", "use", "test"),
    "mode": MODES,
}


def arguments_of(chat: Chat) -> dict[str, Callable[[], Pairs]]:
    """Functions that list the argument values of a command, by its name."""
    values: dict[str, Callable[[], Pairs]] = {
        name: partial(_words, words) for name, words in _ACTIONS.items()
    }
    values["resume"] = partial(_sessions, chat)
    values["help"] = _commands
    values["expand"] = chat.view.recent_calls
    return values


def _words(words: Iterable[str]) -> Pairs:
    return [(word, "") for word in words]


def _sessions(chat: Chat) -> Pairs:
    store = chat.turns.sessions()
    if not os.path.exists(store.path):
        return []
    return [(info.id, info.title) for info in store.list(limit=50, children=False)]


def _commands() -> Pairs:
    return [(name, line) for name, (_, line) in COMMANDS.items()]


_PARTIAL_FILE = re.compile(r"""(?<![^\s(\[{])@("[^"\n]*|(?:\\.|[^\s"\\])*)$""")
_MAX_FILES = 200


class Suggestion(NamedTuple):
    """A completion: replaces the last `length` characters."""

    text: str
    length: int
    about: str = ""


def completions(before: str, folder: str, arguments: Arguments) -> Iterator[Suggestion]:
    """Completions of the text before the cursor.

    Args:
        before: The text up to the cursor.
        folder: Base of relative paths.
        arguments: By command name, the values that may follow it.
    """
    if before.startswith("/") and "\n" not in before:
        yield from _command(before, arguments)
    partial_file = _PARTIAL_FILE.search(before)
    if partial_file is not None:
        yield from _files(partial_file[1], folder)


def _command(before: str, arguments: Arguments) -> Iterator[Suggestion]:
    word, blank, rest = before[1:].partition(" ")
    if not blank:
        for name, (_, line) in COMMANDS.items():
            if name.startswith(word.lower()):
                yield Suggestion(f"/{name}", len(before), line)
        return
    if word in arguments and " " not in rest:
        for value, about in arguments[word]():
            if value.startswith(rest):
                yield Suggestion(value, len(rest), about)


def _files(typed: str, folder: str) -> Iterator[Suggestion]:
    name = typed[1:] if typed.startswith('"') else re.sub(r"\\(.)", r"\1", typed)
    parent, _, start = name.rpartition("/")
    directory = os.path.join(folder, os.path.expanduser(f"{parent}/" if "/" in name else parent))
    try:
        with os.scandir(directory) as entries:
            matches = [
                (not entry.is_dir(), entry.name)
                for entry in entries
                if entry.name.lower().startswith(start.lower())
                and (start.startswith(".") or not entry.name.startswith("."))
                and entry.name.isprintable()
            ]
    except (OSError, ValueError):
        return
    for is_plain, match in sorted(matches)[:_MAX_FILES]:
        path = f"{parent}/{match}" if "/" in name else match
        path += "" if is_plain else "/"
        quoted = f'"{path}' + ('"' if is_plain else "") if re.search(r"[\s\"'\\]", path) else path
        yield Suggestion(quoted, len(typed))


if TYPE_CHECKING:
    Command = Callable[[Chat, str], Awaitable[None]]


async def run(chat: Chat, name: str, rest: str) -> None:
    """Run a slash command; an error becomes one line."""
    action = _CHAT_ACTIONS.get(name)
    try:
        if action is not None:
            await action(chat, rest)
        else:
            await _cli(chat, name, rest)
    except (HermesError, OSError) as error:
        chat.view.error(error)


# -- CLI commands -----------------------------------------------------------------------------


async def _cli(chat: Chat, name: str, rest: str) -> None:
    if name not in CLI_COMMANDS:
        raise HermesError(f"there is no `hermes {name}` yet")
    words = _shell_words(rest)
    if (name, *words[:1]) == ("config", "edit"):
        raise HermesError("an editor can't be opened inside the chat", hint="hermes config edit")
    await asyncio.to_thread(run_cli, chat, name, words)


def run_cli(chat: Chat, name: str, words: list[str]) -> None:
    """Run a CLI command; its output goes to the chat."""
    parser = _Parser(prog=f"/{name}", add_help=True)
    add_arguments(name, parser)
    try:
        options = parser.parse_args(words)
        options.run(chat.app, options)
    except _HelpError as help_text:
        chat.view.text(str(help_text))
    finally:
        chat.app.stdout.flush()
        chat.app.stderr.flush()


class _HelpError(Exception):
    """Carries the help text of a parser."""


class _Parser(Parser):
    """Argument parser that raises instead of exiting."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"{self.prog} --help")

    def print_help(self, file: Any = None) -> None:  # noqa: ARG002
        raise _HelpError(self.format_help())

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:  # noqa: ARG002
        raise UsageError(message or "there is nothing to do")


def _shell_words(rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError as error:
        raise UsageError(f"the quotes do not match: {error}") from None


# -- commands of the chat ---------------------------------------------------------------------


async def _help(chat: Chat, rest: str) -> None:
    name = ALIASES.get(word := rest.lstrip("/").lower(), word)
    if name and name not in COMMANDS:
        near = nearest(name)
        hint = f"Did you mean /{near}?" if near else "/help lists them."
        raise UsageError(f"no command is called /{name:.40}", hint=hint)
    if name:
        takes, line = COMMANDS[name]
        chat.view.text(f"/{name} {takes}".rstrip() + f"  {line}")
        return
    rows = [(f"/{name} {takes}".rstrip(), line) for name, (takes, line) in COMMANDS.items()]
    chat.app.table([*rows, ("", ""), *KEYS])
    chat.view.note("@file in a message attaches the file; text without / goes to the agent")


async def _new(chat: Chat, rest: str) -> None:  # noqa: ARG001
    await chat.turns.new()
    chat.view.note("the next message starts a new session")


async def _resume(chat: Chat, rest: str) -> None:
    await chat.turns.resume(rest or "last")


async def _undo(chat: Chat, rest: str) -> None:
    if chat.busy:
        raise HermesError("a turn is running", hint="End it first: Ctrl-C, or /stop.")
    words = _shell_words(rest)
    if not [word for word in words if not word.startswith("-")]:
        words += await asyncio.to_thread(_last_turn, chat)
    await asyncio.to_thread(run_cli, chat, "undo", words)
    chat.turns.add_notice(
        "(The person reverted file changes with /undo; read the files before you rely on them.)"
    )


def _last_turn(chat: Chat) -> list[str]:
    """The newest turn of this session with file changes that are not reverted yet."""
    agent = chat.turns.agent
    if agent is None:
        return []
    from hermes.interfaces.cli.checkpoints import open_store

    with open_store(chat.app) as store:
        turns = store.turns(limit=200)
    undone = {turn.undoes for turn in turns}
    mine = [t for t in turns if t.session == agent.id and not t.undoes and t.name not in undone]
    if not mine:
        raise HermesError("this session has no file changes to revert")
    return [f"{mine[0].session}/{mine[0].name}"]


async def _expand(chat: Chat, rest: str) -> None:
    number = rest.strip("[]# ")
    if number and not number.isdecimal():
        raise UsageError(f"{rest!r:.40} is no number of a call")
    if not chat.view.expand(int(number) if number else None):
        raise HermesError(f"there is no call {number}" if number else "there was no call yet")


async def _image(chat: Chat, rest: str) -> None:
    path = rest.strip("\"'")
    if not path:
        raise UsageError("no image given: /image PATH")
    if not is_file(path, chat.app.project):
        raise HermesError(f"{path} is not there")
    chat.turns.images.append(path)
    chat.view.note(f"{path} is attached to the next message")


async def _stop(chat: Chat, rest: str) -> None:  # noqa: ARG001
    if not chat.busy:
        raise HermesError("no turn is running")
    await chat.turns.stop()


async def _model(chat: Chat, rest: str) -> None:
    words = _shell_words(rest)
    name = words[-1] if words and (len(words) == 1 or words[:-1] == ["use"]) else ""
    if name in ("", "list", "test", "use", "--help", "-h"):
        await _cli(chat, "model", rest)
        return
    if chat.busy:
        raise HermesError("a turn is running", hint="End it first: Ctrl-C, or /stop.")
    from hermes.agent.providers.model_choice import chosen_provider

    provider = chosen_provider(chat.app.config, os.environ, name)
    if words[0] == "use":
        await _cli(chat, "model", rest)
    chat.turns.options.model = name
    await chat.turns.set_provider(provider)
    chat.view.note(f"now using {provider.model} at {provider.name}")


async def _mode(chat: Chat, rest: str) -> None:
    from hermes.interfaces.cli.chat import check_mode
    from hermes.safety.gate import Gate

    policy = chat.app.runtime.policy
    if not isinstance(policy, Gate):
        raise HermesError("the permissions can't be read, so that nothing is permitted")
    if rest:
        check_mode(chat.app, rest)
        policy.mode = chat.app.mode = rest
    chat.view.note(f"mode {policy.mode}")


async def _compress(chat: Chat, rest: str) -> None:  # noqa: ARG001
    await chat.turns.compress()


async def _cost(chat: Chat, rest: str) -> None:
    agent = chat.turns.agent
    if not rest and agent is None:
        raise HermesError(
            "there is no conversation yet", hint="/cost --since today counts all sessions"
        )
    await _cli(chat, "cost", rest or (agent.id if agent is not None else ""))


async def _memory(chat: Chat, rest: str) -> None:
    if "memory" in CLI_COMMANDS:
        await _cli(chat, "memory", rest)
        return
    from hermes.stores.memory import snapshot

    text = await asyncio.to_thread(snapshot)
    chat.view.text(text or "the memory is empty")


async def _skills(chat: Chat, rest: str) -> None:
    if "skills" not in CLI_COMMANDS:
        raise HermesError("there are no skills here yet")
    await _cli(chat, "skills", rest)


async def _background(chat: Chat, rest: str) -> None:
    if not rest:
        raise UsageError("no request given: /background TEXT")
    await chat.turns.background(rest)


async def _agents(chat: Chat, rest: str) -> None:
    agent = chat.turns.agent
    children = agent.children() if agent is not None else []
    action, _, handle = rest.partition(" ")
    if agent is not None and action == "stop" and handle:
        stopped = agent.cancel(handle.strip())
        chat.view.note(f"{handle} was stopped" if stopped else f"{handle} had ended already")
    elif agent is not None and action:
        report = agent.report(action)
        chat.view.text(str(report.get("text") or report.get("reason") or "it is still running"))
    elif not children:
        chat.view.note("no background agents; /background TEXT starts one")
    else:
        chat.app.table(
            (c.handle, c.state, f"{c.seconds:.0f} s", f"{c.goal} {c.last_line}".strip())
            for c in children
        )


_CHAT_ACTIONS: dict[str, Command] = {
    "help": _help,
    "new": _new,
    "resume": _resume,
    "undo": _undo,
    "expand": _expand,
    "image": _image,
    "stop": _stop,
    "model": _model,
    "mode": _mode,
    "compress": _compress,
    "cost": _cost,
    "memory": _memory,
    "skills": _skills,
    "background": _background,
    "agents": _agents,
}
