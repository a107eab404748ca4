"""Approvals and denials of a person: their duration, and the exact call that they cover."""

from __future__ import annotations

import hashlib
import os
import threading
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ConfigError
from hermes.core.json_text import to_json
from hermes.core.log import Log
from hermes.safety.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from hermes.core.entry import ToolEntry
    from hermes.safety.call_effects import CallEffect


log = Log("hermes.approval")

_WHOLE_SCRIPT = 4 * 1024 * 1024


class Grant(NamedTuple):
    """A yes to one question: the rule, a text for people, and a digest of everything it covers."""

    rule: str
    about: str
    digest: str

    def line(self) -> str:
        """As it stands in the settings."""
        return f"{self.rule} | {self.digest} | {self.about}"

    @classmethod
    def from_line(cls, line: str) -> Grant | None:
        """The inverse of `line`; None for an invalid line."""
        parts = line.split(" | ", 2)
        return cls(parts[0], parts[2], parts[1]) if len(parts) == 3 else None


def command_grant(
    rule: str,
    command: str,
    commands: Sequence[Sequence[str]],
    *,
    cwd: str,
    env: Mapping[str, str | None] | None = None,
) -> Grant:
    """A grant for one command line, to the letter.

    A part of it says too little: `sh` is something else behind another pipe, `rm -rf build` in
    another folder, `git push` with another variable before it.

    Args:
        rule: The rule that the approval answers.
        command: The whole command line.
        commands: The words of each simple command in it; those that are files count by content.
        cwd: Where it runs.
        env: Variables set for it.
    """
    total = hashlib.sha256(f"{rule}\0{command}\0{os.path.realpath(cwd)}\0".encode())
    for name, value in sorted((env or {}).items()):
        total.update(f"{name}={value}\0".encode())
    for path, content in _files(commands, cwd):
        total.update(f"{path}\0".encode("utf-8", "surrogateescape") + content)
    return Grant(rule, _shown(f"{command} (in {cwd})"), total.hexdigest()[:32])


def host_grant(host: str) -> Grant:
    """A grant for connections of confined commands to one host."""
    return Grant("network:host", host, hashlib.sha256(host.encode()).hexdigest()[:32])


def call_grant(
    rule: str, entry: ToolEntry, arguments: str, *, acts: Sequence[CallEffect], workspace: str
) -> Grant:
    """A grant for one call: this tool as it is defined, these arguments, here."""
    what = to_json([entry.toolset, entry.origin, entry.owner, entry.module, entry.schema])
    where = os.path.realpath(workspace)
    bound = "\0".join((rule, entry.name, what, arguments, to_json(acts), where))
    digest = hashlib.sha256(bound.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return Grant(rule, _shown(f"{entry.name} {arguments}"), digest)


def _shown(text: str) -> str:
    """The text of a grant in lists and in the settings file, without secrets."""
    line = " ".join(redact(text).split())
    return line if len(line) <= 200 else f"{line[:200]}…"


def _files(commands: Sequence[Sequence[str]], cwd: str) -> Iterable[tuple[str, bytes]]:
    """The files among the words of commands, each with a digest of its content."""
    # A command line may change its folder before it names a file.
    moves = [words[1] for words in commands if len(words) > 1 and words[0] in ("cd", "pushd")]
    folders = [cwd, *(os.path.join(cwd, os.path.expanduser(move)) for move in moves)]
    words = {word for command in commands for word in command}
    for path in sorted({os.path.join(folder, word) for folder in folders for word in words}):
        try:
            if os.path.isfile(path) and os.path.getsize(path) <= _WHOLE_SCRIPT:
                with open(path, "rb") as file:
                    yield path, hashlib.file_digest(file, "sha256").digest()
        except (OSError, ValueError):
            continue


class Approvals:
    """The grants of one program: those of each session, and those for good."""

    def __init__(self, always: Iterable[str] = (), *, keep: Any = None) -> None:
        self._lock = threading.Lock()
        self._session: dict[str, set[Grant]] = {}
        self._always = {grant for line in always if (grant := Grant.from_line(line))}
        # Called with the lines to be added when something is approved for good.
        self._keep = keep

    def covered_by(self, grants: Iterable[Grant], session: str) -> str:
        """How every one of these was approved before: `always` or `session`; empty if not all."""
        wanted = set(grants)
        if not wanted:
            return ""
        if wanted <= self._always:
            return "always"
        return "session" if wanted <= self._always | self._session.get(session, set()) else ""

    def give(self, grants: Sequence[Grant], session: str, *, always: bool) -> None:
        """Remember an approval."""
        with self._lock:
            if always and self._kept(grants):
                self._always |= set(grants)
            else:
                self._session.setdefault(session, set()).update(grants)

    def _kept(self, grants: Sequence[Grant]) -> bool:
        """Write grants to disk; False if that fails, then they last for the session only."""
        if self._keep is None:
            return True
        try:
            self._keep([grant.line() for grant in grants])
        except (OSError, ConfigError) as error:
            log.warning("an approval can't be kept for good: %s", error)
            return False
        return True

    def end_session(self, session: str) -> None:
        """Forget the approvals of one session."""
        with self._lock:
            self._session.pop(session, None)

    def all(self) -> list[tuple[str, Grant]]:
        """Every grant, with how long it holds."""
        lasting = [("always", grant) for grant in sorted(self._always)]
        passing = [
            (f"session {name}", grant) for name, found in self._session.items() for grant in found
        ]
        return [*lasting, *passing]


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
        """Whether a command has the same target as a recent denial; counts as one command."""
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
