"""SQLite file of the checkpoint store: schema, transactions, error texts."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from hermes.core.home import make_private
from hermes.stores.checkpoints.types import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from sqlite3 import Connection, Error

VERSION = 2
_BUSY_SECONDS = 30.0

_SCHEMA = """
CREATE TABLE turns (
    id INTEGER PRIMARY KEY, session TEXT NOT NULL, name TEXT NOT NULL, at REAL NOT NULL,
    UNIQUE (session, name));
CREATE TABLE authors (
    id INTEGER PRIMARY KEY, turn INTEGER NOT NULL, call TEXT NOT NULL, tool TEXT NOT NULL,
    agent TEXT NOT NULL, front_door TEXT NOT NULL, UNIQUE (turn, call, tool, agent, front_door));
CREATE TABLE changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, turn INTEGER NOT NULL, author INTEGER NOT NULL,
    at REAL NOT NULL, disk TEXT NOT NULL, place BLOB NOT NULL, certain INTEGER NOT NULL,
    old_kind TEXT NOT NULL, old_digest TEXT NOT NULL, old_mode INTEGER, old_size INTEGER NOT NULL,
    old_target BLOB NOT NULL,
    new_kind TEXT NOT NULL, new_digest TEXT NOT NULL, new_mode INTEGER, new_size INTEGER NOT NULL,
    new_target BLOB NOT NULL,
    old_traits TEXT NOT NULL DEFAULT '', new_traits TEXT NOT NULL DEFAULT '');
CREATE INDEX changes_by_turn ON changes (turn);
CREATE INDEX changes_by_place ON changes (place, id);
CREATE TABLE undos (
    turn INTEGER PRIMARY KEY, undoes INTEGER NOT NULL, call TEXT NOT NULL,
    finished INTEGER NOT NULL, remarks TEXT NOT NULL);
CREATE TABLE contents (
    digest TEXT PRIMARY KEY, size INTEGER NOT NULL, codec INTEGER NOT NULL, data BLOB,
    pack INTEGER, start INTEGER, length INTEGER NOT NULL);
CREATE INDEX contents_by_pack ON contents (pack) WHERE pack IS NOT NULL;
CREATE INDEX contents_fresh ON contents (length) WHERE codec = 2;
CREATE TABLE packs (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, bytes INTEGER NOT NULL);
CREATE TABLE roots (
    id INTEGER PRIMARY KEY, place BLOB NOT NULL UNIQUE, version INTEGER NOT NULL, at REAL NOT NULL);
CREATE TABLE folders (
    root INTEGER NOT NULL, place BLOB NOT NULL, data BLOB NOT NULL, PRIMARY KEY (root, place));
CREATE TABLE snapshots (
    id INTEGER PRIMARY KEY AUTOINCREMENT, root INTEGER NOT NULL, at REAL NOT NULL,
    watermark INTEGER NOT NULL, author TEXT NOT NULL);
CREATE TABLE frozen (
    snapshot INTEGER NOT NULL, place BLOB NOT NULL, data BLOB, PRIMARY KEY (snapshot, place));
CREATE TABLE prunings (at REAL NOT NULL, turns INTEGER NOT NULL, bytes INTEGER NOT NULL);
"""


# What brings a store of the first version up to this one.
_SECOND = """
ALTER TABLE changes ADD COLUMN old_traits TEXT NOT NULL DEFAULT '';
ALTER TABLE changes ADD COLUMN new_traits TEXT NOT NULL DEFAULT '';
CREATE INDEX contents_fresh ON contents (length) WHERE codec = 2;
"""


class Database:
    """The index of a store; safe for any number of threads, and processes beside it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.path = os.path.join(folder, "index.db")
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        self._process = 0

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """The connection, for one thread at a time."""
        with self._lock, _plainly(self.path):
            yield self._open()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction: on disk as a whole when the block ends, or not at all."""
        with self._lock, _plainly(self.path):
            connection = self._open()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def _open(self) -> Connection:
        if self._connection is not None and self._process == os.getpid():
            return self._connection
        import sqlite3

        private_folder(self.folder)
        # SQLite would make it readable for everybody; its side files take the mode from it. One
        # that is there is not opened: closing it again would end locks that this process holds.
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        connection = sqlite3.connect(
            self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection, self.path)
        except BaseException:
            connection.close()
            raise
        if self._connection is not None:
            # A child process must not use, nor close, what it has of its parent's connection.
            _inherited.append(self._connection)
        self._connection, self._process = connection, os.getpid()
        return connection


# Connections of a parent process, which only it may close.
_inherited: list[Connection] = []


def _use_wal(connection: Connection) -> None:
    """Switch to the write-ahead log; SQLite itself does not wait for another that does the same."""
    import sqlite3

    end = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)


def private_folder(folder: str) -> str:
    """The folder, made if need be, with nobody but its owner allowed in, whoever made it."""
    make_private(folder)
    if os.name != "nt" and os.stat(folder).st_mode & 0o077:
        os.chmod(folder, 0o700)
    return folder


def _prepare(connection: Connection, path: str) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        # Only possible before the first table is made.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    _use_wal(connection)
    # A record must be on the disk before the file it is about changes.
    connection.execute("PRAGMA synchronous = FULL")
    if version < VERSION:
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have been first.
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version < VERSION:
            for statement in (_SECOND if version else _SCHEMA).split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    elif version != VERSION:
        raise CheckpointError(
            f"{path} was made by another version of Hermes (format {version}, not {VERSION})",
            hint="Use that version, or move the folder away.",
        )


@contextmanager
def _plainly(path: str) -> Iterator[None]:
    """Turn what SQLite says into a line that a person can act on."""
    import sqlite3

    try:
        yield
    except sqlite3.Error as error:
        raise _explained(error, path) from error


def _explained(error: Error, path: str) -> CheckpointError:
    text = str(error)
    if "locked" in text or "busy" in text:
        return CheckpointError(
            f"the checkpoints in {path} are in use by another process for too long",
            hint="Try again in a moment.",
        )
    if "full" in text:
        return CheckpointError(
            f"no room for a checkpoint: {text}", hint="Free some space; `hermes checkpoints prune`."
        )
    if "malformed" in text or "not a database" in text or "corrupt" in text:
        return CheckpointError(
            f"the checkpoints in {path} are damaged: {text}",
            hint="Move that folder away to start afresh; what it held can't be undone.",
        )
    return CheckpointError(f"the checkpoints in {path} can't be used: {text}")
