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
from hermes.interfaces.cli.commands import COMMANDS as CLI_COMMANDS
from hermes.interfaces.cli.commands import UsageError
from hermes.interfaces.cli.main import Parser

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, NoReturn

    from hermes.interfaces.chat.controller import Chat

    Command = Callable[[Chat, str], Awaitable[None]]


async def run(chat: Chat, name: str, rest: str) -> None:
    """Run a slash command; an error becomes one line."""
    action = _ACTIONS.get(name)
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
    words = _words(rest)
    if (name, *words[:1]) == ("config", "edit"):
        raise HermesError("an editor can't be opened inside the chat", hint="hermes config edit")
    await asyncio.to_thread(run_cli, chat, name, words)


def run_cli(chat: Chat, name: str, words: list[str]) -> None:
    """Run a CLI command; its output goes to the chat."""
    parser = _Parser(prog=f"/{name}", add_help=True)
    module, _ = CLI_COMMANDS[name]
    import_module(f"hermes.interfaces.cli.{module}").arguments(parser)
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


def _words(rest: str) -> list[str]:
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
    words = _words(rest)
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
    words = _words(rest)
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
    from hermes.interfaces.cli.agent_options import check_mode
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


_ACTIONS: dict[str, Command] = {
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
