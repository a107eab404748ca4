"""What may follow a /command: words, and a word about each; looked up while somebody types."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hermes.interfaces.chat.chat import Chat

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
    from hermes.interfaces.chat.catalogue import COMMANDS

    return [(name, line) for name, (_, line) in COMMANDS.items()]
