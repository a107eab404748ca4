"""What was refused is not tried again in other words.

After a refusal, the next few commands of the session that touch the same path or process are
refused without a question, unless they only look. And what guards a call can't be signalled by it.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# How many commands a refusal is remembered for.
REMEMBERED = 5
# Programs that only look, however they are called.
_LOOKING = frozenset(
    [
        "[",
        "basename",
        "cat",
        "cd",
        "cmp",
        "df",
        "diff",
        "dirname",
        "du",
        "echo",
        "egrep",
        "false",
        "fgrep",
        "file",
        "grep",
        "head",
        "hexdump",
        "id",
        "jobs",
        "less",
        "ls",
        "lsof",
        "md5sum",
        "more",
        "od",
        "pgrep",
        "printf",
        "ps",
        "pwd",
        "readlink",
        "realpath",
        "rg",
        "sha256sum",
        "stat",
        "strings",
        "tail",
        "test",
        "top",
        "tree",
        "true",
        "type",
        "uniq",
        "wc",
        "which",
    ]
)
_SIGNALLING = frozenset({"kill", "taskkill", "skill", "tkill"})


def targets(words: Sequence[str], cwd: str) -> frozenset[str]:
    """The paths and processes that a simple command names."""
    found = set()
    for word in words[1:]:
        path = os.path.normpath(os.path.join(cwd, os.path.expanduser(word)))
        if word.isdigit():
            found.add(f"pid {word}")
        elif word and not word.startswith("-") and ("/" in word or _exists(path)):
            # A word that is no path, as in `npm run build`, is nobody's target.
            found.add(path)
    return frozenset(found)


def _exists(path: str) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:
        return False


def signals_us(commands: Iterable[Sequence[str]]) -> bool:
    """Whether a command would signal this program or the one that started it."""
    ours = {str(os.getpid()), str(os.getppid())}
    return any(
        os.path.basename(words[0]) in _SIGNALLING
        and not ours.isdisjoint(w.lstrip("-") for w in words)
        for words in commands
        if words
    )


class Denials:
    """The refusals of each session that still count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fresh: dict[str, list[tuple[frozenset[str], int]]] = {}

    def note(self, what: frozenset[str], session: str) -> None:
        """Remember a refusal for the next few commands."""
        if what:
            with self._lock:
                self._fresh.setdefault(session, []).append((what, REMEMBERED))

    def repeats(self, commands: Iterable[Sequence[str]], session: str, cwd: str) -> bool:
        """Whether a command goes on about what was refused just before; counts as one command."""
        with self._lock:
            before = self._fresh.get(session)
            if not before:
                return False
            self._fresh[session] = [(what, left - 1) for what, left in before if left > 1]
        acting = [words for words in commands if words and _program(words) not in _LOOKING]
        touched = frozenset[str]().union(*(targets(words, cwd) for words in acting))
        return any(what & touched for what, _ in before)


def _program(words: Sequence[str]) -> str:
    return os.path.basename(words[0])
