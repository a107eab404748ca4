"""Slash command implementation; most run the CLI command of the same name."""

from __future__ import annotations

import asyncio
import os
import shlex
from importlib import import_module
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.interfaces.chat.mentions import is_file
from hermes.interfaces.chat.slash_commands import ALIASES, COMMANDS, KEYS, nearest
from hermes.interfaces.cli.commands import COMMANDS as PROGRAM
from hermes.interfaces.cli.commands import UsageError
from hermes.interfaces.cli.main import Parser

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, NoReturn

    from hermes.interfaces.chat.controller import Chat

    Command = Callable[[Chat, str], Awaitable[None]]


async def run(chat: Chat, name: str, rest: str) -> None:
    """Carry out a command that there is; whatever goes wrong is one line."""
    own = _OWN.get(name)
    try:
        if own is not None:
            await own(chat, rest)
        else:
            await _program(chat, name, rest)
    except (HermesError, OSError) as error:
        chat.view.trouble(error)


# -- the command line's own -------------------------------------------------------------------


async def _program(chat: Chat, name: str, rest: str) -> None:
    if name not in PROGRAM:
        raise HermesError(f"there is no `hermes {name}` here yet")
    words = _words(rest)
    if (name, *words[:1]) == ("config", "edit"):
        raise HermesError("an editor can't be opened inside the chat", hint="hermes config edit")
    await asyncio.to_thread(carried_out, chat, name, words)


def carried_out(chat: Chat, name: str, words: list[str]) -> None:
    """Run a command of the command line, printing into the chat."""
    parser = _Parser(prog=f"/{name}", add_help=True)
    module, _ = PROGRAM[name]
    import_module(f"hermes.interfaces.cli.{module}").arguments(parser)
    try:
        options = parser.parse_args(words)
        options.run(chat.app, options)
    except _HelpError as help_text:
        chat.view.plain(str(help_text))
    finally:
        chat.app.stdout.flush()
        chat.app.stderr.flush()


class _HelpError(Exception):
    """The help that was asked for."""


class _Parser(Parser):
    """A parser that never ends the program."""

    def error(self, message: str) -> NoReturn:
        """One line."""
        raise UsageError(message, hint=f"{self.prog} --help")

    def print_help(self, file: Any = None) -> None:  # noqa: ARG002
        """Shown in the chat."""
        raise _HelpError(self.format_help())

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:  # noqa: ARG002
        """Never the end of the program."""
        raise UsageError(message or "there is nothing to do")


def _words(rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError as error:
        raise UsageError(f"the quotes do not match: {error}") from None


# -- the chat's own ---------------------------------------------------------------------------


async def _help(chat: Chat, rest: str) -> None:
    name = ALIASES.get(word := rest.lstrip("/").lower(), word)
    if name and name not in COMMANDS:
        near = nearest(name)
        hint = f"Did you mean /{near}?" if near else "/help lists them."
        raise UsageError(f"no command is called /{name:.40}", hint=hint)
    if name:
        takes, line = COMMANDS[name]
        chat.view.plain(f"/{name} {takes}".rstrip() + f"  {line}")
        return
    rows = [(f"/{name} {takes}".rstrip(), line) for name, (takes, line) in COMMANDS.items()]
    chat.app.table([*rows, ("", ""), *KEYS])
    chat.view.note("@file in a message lets the file go along; a text without / is for the agent")


async def _new(chat: Chat, rest: str) -> None:  # noqa: ARG001
    await chat.talk.new()
    chat.view.note("a new session begins with the next message")


async def _resume(chat: Chat, rest: str) -> None:
    await chat.talk.resume(rest or "last")


async def _undo(chat: Chat, rest: str) -> None:
    if chat.busy:
        raise HermesError("a turn is under way", hint="End it first: Ctrl-C, or /stop.")
    words = _words(rest)
    if not [word for word in words if not word.startswith("-")]:
        words += await asyncio.to_thread(_last_turn, chat)
    await asyncio.to_thread(carried_out, chat, "undo", words)
    chat.talk.tell(
        "(The person took back changes in files with /undo; look before you rely on them.)"
    )


def _last_turn(chat: Chat) -> list[str]:
    """The newest turn of this session that changed something; nothing leaves it to `undo`."""
    agent = chat.talk.agent
    if agent is None:
        return []
    from hermes.interfaces.cli.checkpoints import open_store

    with open_store(chat.app) as store:
        turns = store.turns(limit=200)
    undone = {turn.undoes for turn in turns}
    mine = [t for t in turns if t.session == agent.id and not t.undoes and t.name not in undone]
    if not mine:
        raise HermesError("this session has changed nothing that could be taken back")
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
        raise UsageError("which picture? /image PATH")
    if not is_file(path, chat.app.project):
        raise HermesError(f"{path} is not there")
    chat.talk.pictures.append(path)
    chat.view.note(f"{path} goes along with the next message")


async def _stop(chat: Chat, rest: str) -> None:  # noqa: ARG001
    if not chat.busy:
        raise HermesError("nothing is under way")
    await chat.talk.stop()


async def _model(chat: Chat, rest: str) -> None:
    words = _words(rest)
    name = words[-1] if words and (len(words) == 1 or words[:-1] == ["use"]) else ""
    if name in ("", "list", "test", "use", "--help", "-h"):
        await _program(chat, "model", rest)
        return
    if chat.busy:
        raise HermesError("a turn is under way", hint="End it first: Ctrl-C, or /stop.")
    from hermes.agent.providers.model_choice import chosen_provider

    provider = chosen_provider(chat.app.config, os.environ, name)
    if words[0] == "use":
        await _program(chat, "model", rest)
    chat.talk.settings.model = name
    await chat.talk.ask(provider)
    chat.view.note(f"from now on {provider.model} at {provider.name} is asked")


async def _compress(chat: Chat, rest: str) -> None:  # noqa: ARG001
    await chat.talk.compress()


async def _cost(chat: Chat, rest: str) -> None:
    agent = chat.talk.agent
    if not rest and agent is None:
        raise HermesError("nothing was said yet", hint="/cost --since today counts all sessions")
    await _program(chat, "cost", rest or (agent.id if agent is not None else ""))


async def _memory(chat: Chat, rest: str) -> None:
    if "memory" in PROGRAM:
        await _program(chat, "memory", rest)
        return
    from hermes.stores.memory import snapshot

    kept = await asyncio.to_thread(snapshot)
    chat.view.plain(kept or "nothing is remembered yet")


async def _skills(chat: Chat, rest: str) -> None:
    if "skills" not in PROGRAM:
        raise HermesError("there are no skills here yet")
    await _program(chat, "skills", rest)


async def _background(chat: Chat, rest: str) -> None:
    if not rest:
        raise UsageError("what is to be done? /background TEXT")
    await chat.talk.background(rest)


async def _agents(chat: Chat, rest: str) -> None:
    agent = chat.talk.agent
    children = agent.children() if agent is not None else []
    action, _, handle = rest.partition(" ")
    if agent is not None and action == "stop" and handle:
        stopped = agent.cancel(handle.strip())
        chat.view.note(f"{handle} was stopped" if stopped else f"{handle} had ended before")
    elif agent is not None and action:
        report = agent.report(action)
        chat.view.plain(str(report.get("text") or report.get("reason") or "it is still at work"))
    elif not children:
        chat.view.note("no other agents are at work; /background TEXT starts one")
    else:
        chat.app.table(
            (one.handle, one.state, f"{one.seconds:.0f} s", f"{one.goal} {one.last_line}".strip())
            for one in children
        )


_OWN: dict[str, Command] = {
    "help": _help,
    "new": _new,
    "resume": _resume,
    "undo": _undo,
    "expand": _expand,
    "image": _image,
    "stop": _stop,
    "model": _model,
    "compress": _compress,
    "cost": _cost,
    "memory": _memory,
    "skills": _skills,
    "background": _background,
    "agents": _agents,
}
