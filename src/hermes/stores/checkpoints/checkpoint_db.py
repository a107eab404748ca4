"""SQLite file of the checkpoint store: schema, error texts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import hermes.stores.sqlite as sqlite
from hermes.core.paths import make_private
from hermes.stores.checkpoints.types import CheckpointError

if TYPE_CHECKING:
    from sqlite3 import Connection

_MIGRATIONS = (
    """
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
    new_target BLOB NOT NULL);
CREATE INDEX changes_by_turn ON changes (turn);
CREATE INDEX changes_by_place ON changes (place, id);
CREATE TABLE undos (
    turn INTEGER PRIMARY KEY, undoes INTEGER NOT NULL, call TEXT NOT NULL,
    finished INTEGER NOT NULL, remarks TEXT NOT NULL);
CREATE TABLE contents (
    digest TEXT PRIMARY KEY, size INTEGER NOT NULL, codec INTEGER NOT NULL, data BLOB,
    pack INTEGER, start INTEGER, length INTEGER NOT NULL);
CREATE INDEX contents_by_pack ON contents (pack) WHERE pack IS NOT NULL;
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
""",
    """
ALTER TABLE changes ADD COLUMN old_traits TEXT NOT NULL DEFAULT '';
ALTER TABLE changes ADD COLUMN new_traits TEXT NOT NULL DEFAULT '';
CREATE INDEX contents_fresh ON contents (length) WHERE codec = 2;
""",
    """
ALTER TABLE changes ADD COLUMN quiet INTEGER NOT NULL DEFAULT 0;
""",
    """
ALTER TABLE snapshots ADD COLUMN background INTEGER NOT NULL DEFAULT 0;
ALTER TABLE roots ADD COLUMN author TEXT NOT NULL DEFAULT '';
""",
)


def _damaged(path: str, reason: str) -> CheckpointError:
    return CheckpointError(
        f"the checkpoints in {path} are damaged: {reason}",
        hint="Move that folder away to start afresh; what it held can't be undone.",
    )


_WORDING = sqlite.Wording(
    "checkpoints",
    CheckpointError,
    _damaged,
    no_space="no room for a checkpoint on the disk",
    free_space="Free some space; `hermes checkpoints prune`.",
)


class Database(sqlite.Database):
    """The index of a checkpoint store."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        # A record must be on the disk before the file it describes changes.
        super().__init__(
            os.path.join(folder, "index.db"), _MIGRATIONS, _WORDING, synchronous="FULL"
        )

    def _connect(self) -> Connection:
        private_folder(self.folder)
        return super()._connect()


def private_folder(folder: str) -> str:
    """Create a folder that only its owner may enter; an existing one is restricted."""
    make_private(folder)
    if os.name != "nt" and os.stat(folder).st_mode & 0o077:
        os.chmod(folder, 0o700)
    return folder
