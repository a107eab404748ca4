"""What was approved, for how long, and for exactly what.

A grant names the rule it answers and the thing it was given for: one simple command in one folder
with the scripts it names as they are now, or one call with its arguments. It covers later calls
only where every reason to ask is covered by a grant. `session` grants are forgotten with the
session; `always` grants are written to `command_allowlist` in the settings.
"""

from __future__ import annotations

import hashlib
import os
import threading
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_WHOLE_SCRIPT = 4 * 1024 * 1024


class Grant(NamedTuple):
    """The answer to one reason to ask: the rule, what it was about, and a digest of all of it."""

    rule: str
    about: str
    digest: str

    def line(self) -> str:
        """As it stands in the settings."""
        return f"{self.rule} | {self.digest} | {self.about}"

    @classmethod
    def from_line(cls, line: str) -> Grant | None:
        """What `line` wrote; None for anything else."""
        parts = line.split(" | ", 2)
        return cls(parts[0], parts[2], parts[1]) if len(parts) == 3 else None


def command_grant(
    rule: str,
    command: str,
    *,
    cwd: str,
    words: Iterable[str] = (),
    env: Mapping[str, str | None] | None = None,
) -> Grant:
    """A grant for one simple command: bound to its folder, its environment and the files named.

    Args:
        rule: The rule that the approval answers.
        command: The simple command as text.
        cwd: Where it runs.
        words: Every word of the whole command line; those that are files count by their content.
        env: Variables set for it.
    """
    total = hashlib.sha256(f"{rule}\0{command}\0{os.path.realpath(cwd)}\0".encode())
    for name, value in sorted((env or {}).items()):
        total.update(f"{name}={value}\0".encode())
    for path, content in _files(words, cwd):
        total.update(f"{path}\0".encode() + content)
    return Grant(rule, f"{command} (in {cwd})", total.hexdigest()[:32])


def call_grant(rule: str, tool: str, arguments: str) -> Grant:
    """A grant for one call with exactly these arguments (JSON text)."""
    digest = hashlib.sha256(f"{rule}\0{tool}\0{arguments}".encode()).hexdigest()[:32]
    shown = arguments if len(arguments) <= 200 else f"{arguments[:200]}…"
    return Grant(rule, f"{tool} {shown}", digest)


def _files(words: Iterable[str], cwd: str) -> Iterable[tuple[str, bytes]]:
    """The files among some words, with a digest of what they hold."""
    for word in sorted(set(words)):
        path = os.path.join(cwd, word)
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
        # Called with the lines to be written when something is approved for good.
        self._keep = keep

    def cover(self, grants: Iterable[Grant], session: str) -> bool:
        """Whether every one of these was approved."""
        wanted = set(grants)
        return bool(wanted) and wanted <= self._always | self._session.get(session, set())

    def give(self, grants: Iterable[Grant], session: str, *, always: bool) -> None:
        """Remember an approval."""
        with self._lock:
            if not always:
                self._session.setdefault(session, set()).update(grants)
                return
            self._always |= set(grants)
            if self._keep is not None:
                self._keep(sorted(grant.line() for grant in self._always))

    def end_session(self, session: str) -> None:
        """Forget what was approved for a session only."""
        with self._lock:
            self._session.pop(session, None)

    def all(self) -> list[tuple[str, Grant]]:
        """Every grant, with how long it holds."""
        lasting = [("always", grant) for grant in sorted(self._always)]
        passing = [
            (f"session {name}", grant) for name, found in self._session.items() for grant in found
        ]
        return [*lasting, *passing]
