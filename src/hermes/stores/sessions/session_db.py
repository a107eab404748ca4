"""SQLite file of the session journal: schema, damage flag, marks, error texts; the lock of a
session in use.

Guarantees:

    a process is killed     no committed entry is lost: the kernel has it
    the power fails         commits of the last seconds may be lost, never half of one, never out
                            of order; `power=True` waits for the disk at each commit
    several processes       each waits for its turn, half a minute at most
    the file is damaged     it stays readable as far as possible and is not written any more; a
                            flag file stops all processes until `doctor` finds it sound
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import hermes.stores.sqlite as sqlite
from hermes.core.errors import HermesError
from hermes.core.paths import write_private
from hermes.stores.sessions.records import DamagedError, SessionsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import ExitStack
    from sqlite3 import Connection, Error

    from hermes.stores.sessions import Session, Sessions


_MIGRATIONS = (
    """
CREATE TABLE sessions (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, workspace TEXT NOT NULL,
    model TEXT NOT NULL, front_door TEXT NOT NULL, parent TEXT NOT NULL, relation TEXT NOT NULL,
    began INTEGER NOT NULL, touched INTEGER NOT NULL, messages INTEGER NOT NULL);
CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent <> '';
CREATE TABLE entries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, kind INTEGER NOT NULL,
    at INTEGER NOT NULL, turn TEXT NOT NULL, ref INTEGER, text TEXT NOT NULL, data BLOB);
CREATE INDEX entries_by_session ON entries (session);
CREATE TABLE usage (
    seq INTEGER PRIMARY KEY, session INTEGER NOT NULL, model TEXT NOT NULL,
    input INTEGER NOT NULL, output INTEGER NOT NULL, cached INTEGER NOT NULL,
    written INTEGER NOT NULL, reasoning INTEGER NOT NULL);
CREATE INDEX usage_by_session ON usage (session);
CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO marks VALUES ('index', 1), ('indexed', 0), ('identity', random());
""",
)


def damaged(path: str, reason: str) -> DamagedError:
    """The error for a write to a damaged file."""
    return DamagedError(
        f"the sessions in {path} are damaged ({reason}): they can be read as far as they go, "
        "and nothing is written to them",
        hint="`hermes sessions doctor` says what is readable; put a backup in its place.",
    )


WORDING = sqlite.Wording("sessions", SessionsError, damaged)


class Database(sqlite.Database):
    """The journal's SQLite file."""

    def __init__(self, path: str, *, power: bool = False) -> None:
        self._power = power
        self._read_only = False
        synchronous = "FULL" if power else "NORMAL"
        super().__init__(path, _MIGRATIONS, WORDING, synchronous=synchronous)

    @property
    def damage(self) -> str:
        """Why the file is not written any more; empty when no damage is known."""
        try:
            with open(_flag(self.path), encoding="utf-8") as file:
                return file.read().strip() or "it is damaged"
        except FileNotFoundError:
            return ""

    def set_damage(self, reason: str) -> None:
        """Flag the file as damaged for all processes; an empty reason removes the flag."""
        if reason:
            write_private(_flag(self.path), reason.encode())
        elif os.path.exists(_flag(self.path)):
            os.unlink(_flag(self.path))
        self.close()

    @property
    def in_transaction(self) -> bool:
        """Whether this thread has an uncommitted transaction open."""
        with self.reading() as connection:
            return connection.in_transaction

    def sync(self, **marks: int) -> None:
        """Wait until all commits are on the disk; store some marks with them."""
        with self.reading() as connection:
            connection.execute("PRAGMA synchronous = FULL")
            try:
                with self.writing():
                    marks = marks or {"synced": 1}
                    connection.executemany(
                        "INSERT OR REPLACE INTO marks VALUES (?, ?)", list(marks.items())
                    )
            finally:
                if not self._power:
                    connection.execute("PRAGMA synchronous = NORMAL")

    def mark(self, name: str) -> int:
        """The number stored under a name; 0 when there is none."""
        with self.reading() as connection:
            row = connection.execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()
        return int(row[0]) if row else 0

    def _still_valid(self) -> bool:
        return os.path.exists(_flag(self.path)) == self._read_only

    def _connect(self) -> Connection:
        self._read_only = os.path.exists(_flag(self.path))
        return sqlite.connect(self.path, read_only=True) if self._read_only else super()._connect()

    def _check_writable(self) -> None:
        if self._read_only:
            raise damaged(self.path, self.damage)

    def _explained(self, error: Error) -> HermesError:
        if sqlite.is_damage(error) and not self.damage:
            self.set_damage(str(error))
        return super()._explained(error)


def explained(error: Error, path: str, *, failed: str = "") -> HermesError:
    """The error of the session store for an error of SQLite."""
    return sqlite.explained(error, path, WORDING, failed=failed)


def _flag(path: str) -> str:
    return f"{path}.damaged"


_FOLDER = "open"


@contextmanager
def created_session(
    sessions: Sessions, until: ExitStack, *, workspace: str, front_door: str
) -> Iterator[Session]:
    """A new session, locked until the stack is closed; deleted when the block raises."""
    session = sessions.begin(workspace=workspace, front_door=front_door, model="")
    locked_session(session, until)
    try:
        yield session
    except BaseException:
        with suppress(HermesError):
            sessions.delete(session.id)
        raise


def locked_session(session: Session, until: ExitStack) -> tuple[Session, str]:
    """The session, locked until the stack is closed, or a fork of it when another process has it.

    The second value is a remark for the person, empty without a fork. The lock is released when
    its process ends, however it ends.
    """
    owner = _lock(session.id, until)
    if not owner:
        return session, ""
    copy = session.fork()
    _lock(copy.id, until)
    return copy, (
        f"session {session.id} is open in another process ({owner}): "
        f"this continues as {copy.id}, a copy of its current state"
    )


def _lock(session: str, until: ExitStack) -> str:
    """Take the lock of a session; the process id of its owner when another process has it."""
    from hermes.core.paths import flock, home_path, is_current, open_lock

    path = home_path(_FOLDER, session)
    while True:
        try:
            handle = open_lock(path)
        except OSError:
            # No lock file can be created here.
            return ""
        try:
            if not flock(handle, wait=False):
                owner = os.read(handle, 20).decode("ascii", "replace").strip()
                os.close(handle)
                return owner or "unknown"
        except OSError:
            # The file system has no locks.
            os.close(handle)
            return ""
        if is_current(handle, path):
            break
        # The last owner removed the file meanwhile: no other process would see this lock.
        os.close(handle)
    until.callback(_release, handle, path)
    try:
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
    except OSError:
        # Locked all the same.
        return ""
    return ""


def _release(handle: int, path: str) -> None:
    try:
        # While it is locked, the file is surely our own.
        os.unlink(path)
    except OSError:
        # Removed already.
        pass
    finally:
        os.close(handle)
