"""Streams: knowledge about the bytes that flow from one command into the next; the protocol of
command substitution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from hermes.safety.shell.scope import Origin, Scope


# Where text came from, when it is not spelled out in the command itself.
NETWORK = "network"
DECODED = "decoded"
SECRET = "secret"
FILE = "file"
ARCHIVE = "archive"
ENVIRONMENT = "environment"
UNKNOWN = "unknown"
# Text that was kept from others until a key opened it.
DECRYPTED = "decrypted"
# Lines of `NAME=value`, which a program is given rather than shown.
SETTINGS = "settings"
# Lines by which an installed program sets up the shell that asks it for them.
SET_UP = "set-up"
# What nobody else is meant to get.
PRIVATE = frozenset((SECRET, ENVIRONMENT, DECRYPTED))
# Not the secrets themselves, but the names of the files that hold them.
SECRET_FILES = "secret files"
# Stands among the files that a text fetched for whatever was in an archive.
UNPACKED = "//unpacked"


# What was in a file before this text wrote to it may be in it still.
KEPT = "kept"
_LONGEST = 200_000


class Stream:
    """Output of a command: its `text` when that is certain, and `tags` for where it came from.

    `path` is the file that it is the content of, if it is that and nothing else.
    """

    __slots__ = ("path", "tags", "text")

    def __init__(
        self, text: str | None, tags: frozenset[str] = frozenset(), path: str = ""
    ) -> None:
        self.text = text
        self.tags = tags
        self.path = path


NOTHING = Stream("")
ANYTHING = Stream(None, frozenset((UNKNOWN,)))
FROM_FILE = Stream(None, frozenset((FILE,)))


def tagged(*tags: str) -> Stream:
    """A stream of unknown text with a known origin."""
    return Stream(None, frozenset(tags))


def joined(streams: list[Stream]) -> Stream:
    """Several outputs one after the other."""
    if not streams:
        return NOTHING
    if len(streams) == 1:
        return streams[0]
    tags = frozenset().union(*(stream.tags for stream in streams))
    texts = [stream.text for stream in streams]
    if any(text is None for text in texts):
        return Stream(None, tags)
    if sum(len(text or "") for text in texts) > _LONGEST:
        # More than anyone reads.
        return Stream(None, tags | {DECODED})
    return Stream("".join(text or "" for text in texts), tags)


class Substituter(Protocol):
    """Runs, on paper, what stands inside `$(…)`, backticks and process substitutions."""

    def substitute(self, text: str, origin: Origin, scope: Scope, *, feeds: bool) -> Stream:
        """Judge an inner command and say what it would print."""

    def scan(self, text: str, origin: Origin, scope: Scope) -> None:
        """Judge the substitutions inside text that is no command itself (arithmetic, tests)."""

    def too_large(self) -> None:
        """Note that something was not looked at to its end."""
