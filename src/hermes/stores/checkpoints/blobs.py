"""Blob store: contents by SHA-256 digest, deduplicated and compressed, small ones in SQLite."""

from __future__ import annotations

import hashlib
import io
import os
import zlib
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from hermes.core.paths import flock, open_lock
from hermes.stores.checkpoints.packs import (
    CHUNKED,
    FRESH,
    RAW,
    PackWriter,
    compact,
    read_packed,
    squeezed,
)
from hermes.stores.checkpoints.types import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from sqlite3 import Connection

    from hermes.stores.checkpoints.checkpoint_db import Database
    from hermes.stores.checkpoints.packs import Packed, Source

# Up to this size a content is kept in the database.
INLINE = 128 * 1024
# Up to this size it is read at once, so that one that is known already is not written again.
_WHOLE = 8 << 20
# From this size on it is kept in chunks: what stays the same in them is kept once.
LARGE, _CHUNK = 64 << 20, 4 << 20
_DIGEST = 32
# So much may lie in the store uncompressed, and a single content of this size.
MOST_FRESH, _FRESH = 32 << 20, 4 << 20


class NoRoomError(CheckpointError):
    """A content does not fit into the room that there is."""


class Contents:
    """The contents of one store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.folder = os.path.join(database.folder, "packs")
        self._guard = os.path.join(database.folder, "contents.lock")

    @contextmanager
    def draft(self, *, hurry: bool = False) -> Iterator[Draft]:
        """Collect the blobs of an operation; those not stored by the end are dropped.

        In a `hurry` large blobs are not compressed yet; see `compress`.
        """
        with self._guarded(exclusive=False):
            draft = Draft(self._database, self.folder, hurry=hurry)
            try:
                yield draft
            finally:
                draft.end()

    @contextmanager
    def dropping(self) -> Iterator[bool]:
        """Whether no process is adding blobs; none can until the block ends."""
        with self._guarded(exclusive=True) as alone:
            yield alone

    def fresh(self) -> int:
        """How many bytes are still to be compressed."""
        with self._database.reading() as connection:
            # Spelled out, or the index would not be used.
            found = connection.execute(
                f"SELECT coalesce(sum(length), 0) FROM contents WHERE codec = {FRESH}"
            )
            return int(found.fetchone()[0])

    def compress(self) -> None:
        """Compress blobs that were stored in a hurry, unless blobs are being dropped."""
        with self._guarded(exclusive=False, wait=False) as allowed:
            if not allowed:
                return
            with self._database.writing() as connection:
                left = compact(connection, self.folder)
            # Only once the database has forgotten them: until then they hold the only copy.
            for name in left:
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.folder, name))

    def has(self, digest: str) -> bool:
        """Whether the store says that it has a content."""
        with self._database.reading() as connection:
            return _has(connection, digest)

    def read(self, digest: str) -> Iterator[bytes]:
        """A content, piece by piece; raises `CheckpointError` at the latest at its end when the
        bytes are not those that were kept."""
        hashed = hashlib.sha256()
        with self._opened(digest) as pieces:
            for piece in pieces:
                hashed.update(piece)
                yield piece
        if hashed.hexdigest() != digest:
            raise CheckpointError(f"content {digest[:16]} is damaged in the store")

    def verify(self, digest: str) -> None:
        """Raise `CheckpointError` when a content can't be given back as it was."""
        for _ in self.read(digest):
            pass

    @contextmanager
    def _opened(self, digest: str) -> Iterator[Iterator[bytes]]:
        """The pieces of a content, of a file that can be removed meanwhile without harm."""
        row = self._row(digest)
        while True:
            codec, data, name, start, length = row
            if data is not None and codec == CHUNKED:
                yield self._chunks(data)
                return
            if data is not None:
                yield iter((_inflated(data, codec, digest),))
                return
            path = os.path.join(self.folder, name)
            try:
                file = open(path, "rb")  # noqa: SIM115
            except OSError as error:
                moved = self._row(digest)
                if moved == row:
                    message = f"{path} can't be read: {error.strerror}"
                    raise CheckpointError(message) from None
                row = moved
                continue
            with file:
                yield read_packed(file, path, codec, start, length)
                return

    def _chunks(self, digests: bytes) -> Iterator[bytes]:
        for at in range(0, len(digests), _DIGEST):
            yield from self.read(digests[at : at + _DIGEST].hex())

    def _row(self, digest: str) -> tuple[int, bytes | None, str, int, int]:
        with self._database.reading() as connection:
            row: tuple[int, bytes | None, str, int, int] | None = connection.execute(
                "SELECT codec, data, packs.name, start, length FROM contents"
                " LEFT JOIN packs ON packs.id = contents.pack WHERE digest = ?",
                (digest,),
            ).fetchone()
        if row is None or (row[1] is None and row[2] is None):
            raise CheckpointError(f"the store has lost content {digest[:16]}")
        return row

    @contextmanager
    def _guarded(self, *, exclusive: bool, wait: bool | None = None) -> Iterator[bool]:
        handle = open_lock(self._guard)
        try:
            yield flock(handle, exclusive=exclusive, wait=not exclusive if wait is None else wait)
        finally:
            os.close(handle)


class Draft:
    """Contents on their way into the store."""

    def __init__(self, database: Database, folder: str, *, hurry: bool = False) -> None:
        self._database = database
        self._packs = PackWriter(folder)
        self._hurry = hurry
        self._rows: dict[str, tuple[str, int, int, bytes | None, str | None, int | None, int]] = {}
        # Bytes that wait for the next transaction, and all that were new since the beginning.
        self.gathered = self.added = 0
        # How many of them are still to be compressed.
        self.fresh = 0

    def add(self, data: bytes) -> str:
        """Keep bytes; their digest."""
        digest = hashlib.sha256(data).hexdigest()
        if digest in self._rows or self._known(digest):
            return digest
        if len(data) > INLINE:
            if self._hurry and len(data) <= _FRESH:
                self._enter(self._packs.put(data, digest))
                self.fresh += len(data)
            else:
                self._enter(self._packs.append(io.BytesIO(data)))
            return digest
        codec, packed = squeezed(data)
        self._rows[digest] = (digest, len(data), codec, packed, None, None, len(packed))
        self._count(len(packed))
        return digest

    def add_file(self, file: Source, size: int, *, room: int = 1 << 62) -> tuple[str, int]:
        """Keep the rest of a file of about that size; the digest and the size that was read.

        Raises `NoRoomError` where a large file takes more than `room`.
        """
        if size >= LARGE:
            return self._add_large(file, room)
        if size <= _WHOLE:
            data = file.read(size + 1)
            # What grows meanwhile is read on as a large one.
            while len(data) <= _WHOLE and (more := file.read(INLINE)):
                data += more
            if len(data) <= _WHOLE:
                return self.add(data), len(data)
            file = _Resumed(data, file)
        packed = self._packs.append(file)
        if packed.digest in self._rows or self._known(packed.digest):
            self._packs.take_back(packed)
        else:
            self._enter(packed)
        return packed.digest, packed.size

    def _add_large(self, file: Source, room: int) -> tuple[str, int]:
        hashed, size, chunks, before = hashlib.sha256(), 0, b"", self.added
        while piece := file.read(_CHUNK):
            hashed.update(piece)
            size += len(piece)
            chunks += bytes.fromhex(self.add(piece))
            if self.added - before > room:
                raise NoRoomError("no room for a checkpoint")
            if self.gathered > LARGE:
                with self.storing():
                    pass
        digest = hashed.hexdigest()
        self._rows[digest] = (digest, size, CHUNKED, chunks, None, None, len(chunks))
        self._count(len(chunks))
        return digest, size

    def _enter(self, packed: Packed) -> None:
        self._rows[packed.digest] = (
            packed.digest, packed.size, packed.codec, None,
            packed.name, packed.start, packed.length,
        )  # fmt: skip
        self._count(packed.length)

    @contextmanager
    def storing(self) -> Iterator[Connection]:
        """A transaction that stores the collected blobs; the caller adds rows that use them."""
        # Large contents are on the disk before the database says so.
        self._packs.settle()
        with self._database.writing() as connection:
            self._write(connection)
            yield connection
        self._rows.clear()
        self._packs.sizes = {}
        self.gathered = 0

    def _write(self, connection: Connection) -> None:
        packs: dict[str | None, int | None] = {None: None}
        for name, size in self._packs.sizes.items():
            found = connection.execute(
                "INSERT INTO packs (name, bytes) VALUES (?, ?)", (name, size)
            )
            packs[name] = found.lastrowid
        connection.executemany(
            "INSERT OR IGNORE INTO contents (digest, size, codec, data, pack, start, length)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(*row[:4], packs[row[4]], *row[5:]) for row in self._rows.values()],
        )

    def end(self) -> None:
        """Drop blobs that were not stored."""
        self._packs.abandon()

    def _count(self, size: int) -> None:
        self.gathered += size
        self.added += size

    def _known(self, digest: str) -> bool:
        with self._database.reading() as connection:
            return _has(connection, digest)


class _Resumed:
    """A file object that continues after bytes that were read already."""

    def __init__(self, head: bytes, file: Source) -> None:
        self._head = head
        self._file = file

    def read(self, count: int, /) -> bytes:
        if self._head:
            head, self._head = self._head, b""
            return head
        return self._file.read(count)


def _has(connection: Connection, digest: str) -> bool:
    found = connection.execute("SELECT 1 FROM contents WHERE digest = ?", (digest,)).fetchone()
    return found is not None


def _inflated(data: bytes, codec: int, digest: str) -> bytes:
    if codec == RAW:
        return data
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise CheckpointError(f"content {digest[:16]} is damaged: {error}") from None
