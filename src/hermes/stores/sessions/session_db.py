"""SQLite file of the session journal: schema, transactions, damage, error texts."""

from __future__ import annotations

import errno
import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes.core.home import make_private, write_private
from hermes.stores.sessions.records import DamagedError, SessionsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from sqlite3 import Connection, Error


_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
# As much as SQLite wants at once: the file that processes share.
_PROBE_BYTES = 32 * 1024


def is_damage(error: Error) -> bool:
    """Whether the file itself is at fault."""
    text = str(error)
    return "malformed" in text or "not a database" in text or "corrupt" in text


def explained(error: Error, path: str, *, what: str = "") -> SessionsError:
    """The error for a person; `what` could not be done, said of the sessions in `path` if empty."""
    text = str(error)
    if is_damage(error):
        return damaged(path, text)
    if "locked" in text or "busy" in text:
        return SessionsError(
            f"the sessions in {path} are in use by another process for too long",
            hint="Try again in a moment.",
        )
    what = what or f"the sessions in {path} can't be used"
    folder = os.path.dirname(path)
    refused = None if "full" in text else _refusal(folder)
    if "full" in text or (refused is not None and refused.errno in _FULL):
        return SessionsError(
            f"{what}: no room on the disk",
            hint=f"Free some space where {folder} is; what was kept is safe.",
        )
    if refused is not None:
        return SessionsError(
            f"{what}: {text} ({refused.strerror})",
            hint=f"Let {folder} be written to, or set HERMES_HOME to another folder.",
        )
    return SessionsError(f"{what}: {text}")


def damaged(path: str, reason: str) -> DamagedError:
    """The error for whoever wants to write to a damaged file."""
    return DamagedError(
        f"the sessions in {path} are damaged ({reason}): they can be read as far as they go, "
        "and nothing is written to them",
        hint="`hermes sessions doctor` says what is readable; put a backup in its place.",
    )


def _refusal(folder: str) -> OSError | None:
    """Why nothing can be written in a folder, tried out: SQLite does not pass on what it heard."""
    name = os.path.join(folder, f".{os.urandom(8).hex()}")
    try:
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.unlink(name)
            os.write(handle, b"\0" * _PROBE_BYTES)
        finally:
            os.close(handle)
    except OSError as error:
        return error
    return None


_BUSY_SECONDS = 30.0
_WAL_BYTES = 16 * 1024**2

# One step per version: the statements that lead there from the one before.
_STEPS = (
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

# Connections of a parent process: closing them here could remove files that it still uses.
_inherited: list[Connection] = []


class Database:
    """The journal's file; safe for any number of threads, and processes beside it."""

    def __init__(self, path: str, *, power: bool = False) -> None:
        self.path = path
        self.lock = threading.RLock()
        self._power = power
        self._connection: Connection | None = None
        self._process = 0
        self._read_only = False

    @property
    def damage(self) -> str:
        """Why nothing is written to the file; empty when it is sound as far as anybody knows."""
        try:
            with open(_flag(self.path), encoding="utf-8") as file:
                return file.read().strip() or "it is damaged"
        except FileNotFoundError:
            return ""

    def set_damage(self, reason: str) -> None:
        """Tell every process that the file is damaged; with no reason, that it is sound again."""
        if reason:
            write_private(_flag(self.path), reason.encode())
        elif os.path.exists(_flag(self.path)):
            os.unlink(_flag(self.path))
        self.close()

    @property
    def within(self) -> bool:
        """Whether this thread is inside of a transaction: what it sees is not kept yet."""
        with self.reading() as connection:
            return connection.in_transaction

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """The connection, for one thread at a time."""
        with self.lock, self._plainly():
            yield self._open()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction: kept as a whole when the block ends, or not at all.

        One inside of another is part of it.
        """
        with self.lock, self._plainly():
            connection = self._open()
            if self._read_only:
                raise damaged(self.path, self.damage)
            within = connection.in_transaction
            if within:
                yield connection
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def sync(self, **marks: int) -> None:
        """Wait until all that was committed is on the disk; keep some marks with it."""
        with self.lock, self._plainly():
            connection = self._open()
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
        """A number kept under a name; 0 when there is none."""
        with self.reading() as connection:
            found = connection.execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()
        return int(found[0]) if found else 0

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        with self.lock:
            if self._connection is not None:
                if self._process == os.getpid():
                    self._connection.close()
                else:
                    _inherited.append(self._connection)
            self._connection = None

    def _open(self) -> Connection:
        read_only = os.path.exists(_flag(self.path))
        if self._connection is not None:
            if self._process == os.getpid() and read_only == self._read_only:
                return self._connection
            self.close()
        self._read_only = read_only
        connection = connect(self.path, read_only=self._read_only)
        try:
            if not self._read_only:
                prepare(connection, self.path, _STEPS, power=self._power)
        except BaseException:
            connection.close()
            raise
        self._connection, self._process = connection, os.getpid()
        return connection

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        """Turn what SQLite says into a line that a person can act on."""
        import sqlite3

        try:
            yield
        except sqlite3.Error as error:
            if is_damage(error) and not self.damage:
                self.set_damage(str(error))
            raise explained(error, self.path) from error


def connect(path: str, *, read_only: bool = False, wait: float = _BUSY_SECONDS) -> Connection:
    """A connection with transactions in our hands; a file that is made is its owner's alone."""
    import sqlite3

    if not read_only:
        make_private(os.path.dirname(path))
        try:
            # SQLite would make it readable for everybody; its side files take the mode from it.
            # A file that is there is never opened here: closing it would drop SQLite's locks.
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
            os.close(os.open(path, flags, 0o600))
        except FileExistsError:
            pass
    connection = sqlite3.connect(
        path, timeout=wait, isolation_level=None, check_same_thread=False, cached_statements=64
    )
    if read_only:
        connection.execute("PRAGMA query_only = ON")
    return connection


def prepare(
    connection: Connection, path: str, steps: tuple[str, ...], *, power: bool = False
) -> None:
    """Set the connection up, and bring the file to the newest version."""
    version = _version(connection)
    if version == 0:
        # Only possible before the first table is made.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        _use_wal(connection)
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
    connection.execute(f"PRAGMA synchronous = {'FULL' if power else 'NORMAL'}")
    if version > len(steps):
        raise SessionsError(
            f"{path} was made by a newer Hermes (format {version}, not {len(steps)})",
            hint="Use that version; nothing was changed.",
        )
    while version < len(steps):
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have been first.
            version = _version(connection)
            if version < len(steps):
                for statement in steps[version].split(";\n"):
                    connection.execute(statement)
                version += 1
                connection.execute(f"PRAGMA user_version = {version}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _use_wal(connection: Connection) -> None:
    """Choose the kind of log; several processes may be making the file at once."""
    import sqlite3

    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            # SQLite does not wait by itself here.
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def _flag(path: str) -> str:
    return f"{path}.damaged"


def _version(connection: Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
