"""SQLite files of the stores: opening, schema migrations, transactions, retry, error texts.

`sqlite3` is imported when a file is first opened.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.paths import make_private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from sqlite3 import Connection, Error

    from hermes.core.errors import HermesError

BUSY_SECONDS = 30.0
_WAL_BYTES = 16 * 1024**2
_NO_SPACE = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
# The size of the shared-memory file, which SQLite needs at once.
_PROBE_BYTES = 32 * 1024

# Connections inherited by fork: closing them here could remove files that the parent still uses.
_inherited: list[Connection] = []


class Wording(NamedTuple):
    """Error class and texts of a store."""

    noun: str
    error: Callable[..., HermesError]
    damaged: Callable[[str, str], HermesError]
    """Error for a damaged file, from its path and SQLite's reason."""
    no_space: str = "{failed}: no room on the disk"
    free_space: str = "Free some space where {folder} is; what was kept is safe."


class Database:
    """One SQLite file; safe for threads, and for other processes that have it open."""

    def __init__(
        self,
        path: str,
        migrations: tuple[str, ...],
        wording: Wording,
        *,
        synchronous: str = "NORMAL",
    ) -> None:
        """Nothing is opened yet.

        Args:
            path: The file.
            migrations: SQL for each schema version, from the version before it.
            wording: Error class and texts.
            synchronous: `FULL` waits for the disk at each commit.
        """
        self.path = path
        self.lock = threading.RLock()
        self._migrations = migrations
        self._wording = wording
        self._synchronous = synchronous
        self._connection: Connection | None = None
        self._process = 0

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """The connection, for one thread at a time."""
        with self.lock, self._translated():
            yield self._open()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A write transaction, committed at the end of the block; nested ones are part of it."""
        with self.lock, self._translated():
            connection = self._open()
            self._check_writable()
            if connection.in_transaction:
                yield connection
            else:
                with transaction(connection):
                    yield connection

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self.lock:
            if self._connection is not None:
                if self._process == os.getpid():
                    self._connection.close()
                else:
                    _inherited.append(self._connection)
            self._connection = None

    def _open(self) -> Connection:
        if self._connection is not None:
            if self._process == os.getpid() and self._still_valid():
                return self._connection
            self.close()
        self._connection, self._process = self._connect(), os.getpid()
        return self._connection

    def _connect(self) -> Connection:
        connection = connect(self.path)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: Connection) -> None:
        prepare(
            connection, self.path, self._migrations, self._wording, synchronous=self._synchronous
        )

    def _still_valid(self) -> bool:
        return True

    def _check_writable(self) -> None:
        pass

    @contextmanager
    def _translated(self) -> Iterator[None]:
        import sqlite3

        try:
            yield
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def _explained(self, error: Error) -> HermesError:
        return explained(error, self.path, self._wording)


def connect(path: str, *, read_only: bool = False, wait: float = BUSY_SECONDS) -> Connection:
    """A connection in autocommit mode; a new file is private to its owner."""
    import sqlite3

    if not read_only:
        make_private(os.path.dirname(path))
        try:
            # SQLite would create it with the umask; its side files take their mode from it.
            # An existing file is never opened here: closing it would release SQLite's locks.
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
    connection: Connection,
    path: str,
    migrations: tuple[str, ...],
    wording: Wording,
    *,
    synchronous: str = "NORMAL",
) -> None:
    """Set pragmas and migrate the schema to the newest version."""
    version = _version(connection)
    if version == 0:
        # Only possible before the first table is created.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        _use_wal(connection)
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    if version > len(migrations):
        raise wording.error(
            f"{path} was made by a newer Hermes (format {version}, not {len(migrations)})",
            hint="Use that version; nothing was changed.",
        )
    while version < len(migrations):
        with transaction(connection):
            # Another process may have been first.
            version = _version(connection)
            if version < len(migrations):
                for statement in migrations[version].split(";\n"):
                    connection.execute(statement)
                version += 1
                connection.execute(f"PRAGMA user_version = {version}")


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """A write transaction: committed at the end of the block, rolled back on an error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _use_wal(connection: Connection) -> None:
    """Switch to the write-ahead log, with retry: SQLite's busy timeout does not apply here."""
    import sqlite3

    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _version(connection: Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def is_damage(error: Error) -> bool:
    """Whether the file itself is damaged."""
    text = str(error)
    return "malformed" in text or "not a database" in text or "corrupt" in text


def explained(error: Error, path: str, wording: Wording, *, failed: str = "") -> HermesError:
    """The error of a store for an error of SQLite; `failed` is the first part of its text."""
    text = str(error)
    if is_damage(error):
        return wording.damaged(path, text)
    if "locked" in text or "busy" in text:
        return wording.error(
            f"the {wording.noun} in {path} are in use by another process for too long",
            hint="Try again in a moment.",
        )
    failed = failed or f"the {wording.noun} in {path} can't be used"
    folder = os.path.dirname(path)
    refusal = None if "full" in text else _write_error(folder)
    if "full" in text or (refusal is not None and refusal.errno in _NO_SPACE):
        return wording.error(
            wording.no_space.format(failed=failed), hint=wording.free_space.format(folder=folder)
        )
    if refusal is not None:
        return wording.error(
            f"{failed}: {text} ({refusal.strerror})",
            hint=f"Let {folder} be written to, or set HERMES_HOME to another folder.",
        )
    return wording.error(f"{failed}: {text}")


def _write_error(folder: str) -> OSError | None:
    """The system's error when a file is written in a folder: SQLite does not pass it on."""
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
