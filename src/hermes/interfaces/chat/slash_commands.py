"""Slash commands: table of names and help lines, argument values, completion."""

from __future__ import annotations

import os
import re
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.config import MODES
from hermes.core.errors import close_matches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from hermes.interfaces.chat.controller import Chat

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
    for is_file, match in sorted(matches)[:_MAX_FILES]:
        path = f"{parent}/{match}" if "/" in name else match
        path += "" if is_file else "/"
        quoted = f'"{path}' + ('"' if is_file else "") if re.search(r"[\s\"'\\]", path) else path
        yield Suggestion(quoted, len(typed))
