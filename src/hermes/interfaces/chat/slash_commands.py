"""Slash commands: table of names and help lines, argument values, completion."""

from __future__ import annotations

import os
import re
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.suggest import close_matches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from hermes.interfaces.chat.controller import Chat


# name -> (what may follow, help line)
COMMANDS: dict[str, tuple[str, str]] = {
    "help": ("", "this list"),
    "new": ("", "begin a new session"),
    "resume": ("[ID]", "go on with another session; the last one when left out"),
    "sessions": ("[ACTION]", "sessions that are kept: list, search, show, export, …"),
    "undo": ("[TURN|CALL]", "take back what was changed in files, the last turn first"),
    "expand": ("[N]", "the whole result of call N; Ctrl-O shows the last"),
    "image": ("PATH", "let a picture go along with the next message"),
    "stop": ("", "end the turn that is under way"),
    "approve": ("[once|session|always]", "say yes to what is being asked"),
    "deny": ("", "say no to what is being asked"),
    "background": ("TEXT", "have another agent do something meanwhile"),
    "agents": ("[HANDLE|stop HANDLE]", "agents at work, how far they are, what they report"),
    "tools": ("[ACTION]", "the tools: list, show, search"),
    "toolsets": ("[ACTION]", "groups of tools"),
    "model": ("[NAME]", "which model is asked; ask another one from now on"),
    "cost": ("", "what this session has used"),
    "compress": ("", "make the conversation shorter now"),
    "memory": ("", "what is remembered from one session to the next"),
    "skills": ("", "the skills there are"),
    "permissions": ("[ACTION]", "profiles of rights, and what they say of a call"),
    "config": ("[ACTION]", "read and change the settings"),
    "doctor": ("", "check the installation"),
    "quit": ("", "leave; the session is kept (Ctrl-D)"),
}
# Those that do not wait for the end of another one.
AT_ONCE = ("background", "agents", "stop", "expand", "help")
ALIASES = {"exit": "quit", "q": "quit", "?": "help", "h": "help", "x": "expand"}

KEYS = (
    ("Enter", "send; during a turn the model reads it at its next step"),
    ("Alt-Enter, \\ Enter", "a new line"),
    ("Tab", "complete a /command or an @file"),
    ("Ctrl-C", "stop the call under way; again: end the turn"),
    ("Ctrl-O", "the last result, whole"),
    ("Ctrl-R", "search what was typed before"),
    ("Ctrl-D", "leave"),
)


def command_in(line: str) -> tuple[str, str] | None:
    """The command that a line is, and what follows it; None for a message.

    A path at the beginning of a message, `/etc/hosts`, is none.
    """
    if not line.startswith("/"):
        return None
    word, _, rest = line[1:].partition(" ")
    word, newline, more = word.partition("\n")
    if not word or "/" in word or not (word[0].isalpha() or word in ALIASES):
        return None
    return ALIASES.get(word.lower(), word.lower()), f"{more}{newline}{rest}".strip()


def nearest(word: str) -> str:
    """The command that a mistyped one may be meant to be; empty when none is near."""
    begun = [name for name in COMMANDS if name.startswith(word)]
    near = begun or close_matches(word, [*COMMANDS, *ALIASES])
    return ALIASES.get(near[0], near[0]) if near else ""


if TYPE_CHECKING:
    Pairs = Iterable[tuple[str, str]]

_ACTIONS = {
    "sessions": ("list", "search", "show", "export", "rename", "delete", "fork", "stats"),
    "tools": ("list", "show", "search"),
    "toolsets": ("list", "show"),
    "permissions": ("list", "show", "check"),
    "config": ("list", "get", "set", "path"),
    "approve": ("once", "session", "always"),
    "model": ("list", "use", "test"),
}


def arguments_of(chat: Chat) -> dict[str, Callable[[], Pairs]]:
    """For the name of a command, what gives the words that may follow it."""
    known: dict[str, Callable[[], Pairs]] = {
        name: partial(_words, words) for name, words in _ACTIONS.items()
    }
    known["resume"] = partial(_sessions, chat)
    known["help"] = _commands
    known["expand"] = chat.view.known_calls
    return known


def _words(words: Iterable[str]) -> Pairs:
    return [(word, "") for word in words]


def _sessions(chat: Chat) -> Pairs:
    import os

    store = chat.talk.sessions()
    if not os.path.exists(store.path):
        return []
    return [(info.id, info.title) for info in store.list(limit=50, children=False)]


def _commands() -> Pairs:

    return [(name, line) for name, (_, line) in COMMANDS.items()]


if TYPE_CHECKING:
    Arguments = Mapping[str, Callable[[], Iterable[tuple[str, str]]]]

_HALF_FILE = re.compile(r"""(?<![^\s(\[{])@("[^"\n]*|(?:\\.|[^\s"\\])*)$""")
_MOST = 200


class Half(NamedTuple):
    """What may stand in place of the last `length` characters, and a word about it."""

    text: str
    length: int
    about: str = ""


def completions(before: str, folder: str, arguments: Arguments) -> Iterator[Half]:
    """What the text before the cursor may become.

    Args:
        before: The text up to the cursor.
        folder: Where relative paths start.
        arguments: For a command's name, what may follow it: words, and a word about each.
    """
    if before.startswith("/") and "\n" not in before:
        yield from _command(before, arguments)
    half = _HALF_FILE.search(before)
    if half is not None:
        yield from _files(half[1], folder)


def _command(before: str, arguments: Arguments) -> Iterator[Half]:
    word, blank, rest = before[1:].partition(" ")
    if not blank:
        for name, (_, line) in COMMANDS.items():
            if name.startswith(word.lower()):
                yield Half(f"/{name}", len(before), line)
        return
    if word in arguments and " " not in rest:
        for value, about in arguments[word]():
            if value.startswith(rest):
                yield Half(value, len(rest), about)


def _files(half: str, folder: str) -> Iterator[Half]:
    typed = half[1:] if half.startswith('"') else re.sub(r"\\(.)", r"\1", half)
    above, _, start = typed.rpartition("/")
    place = os.path.join(folder, os.path.expanduser(f"{above}/" if "/" in typed else above))
    try:
        with os.scandir(place) as entries:
            found = [
                (not entry.is_dir(), entry.name)
                for entry in entries
                if entry.name.lower().startswith(start.lower())
                and (start.startswith(".") or not entry.name.startswith("."))
                and entry.name.isprintable()
            ]
    except (OSError, ValueError):
        return
    for is_file, name in sorted(found)[:_MOST]:
        path = f"{above}/{name}" if "/" in typed else name
        path += "" if is_file else "/"
        spelled = f'"{path}' + ('"' if is_file else "") if re.search(r"[\s\"'\\]", path) else path
        yield Half(spelled, len(half))
