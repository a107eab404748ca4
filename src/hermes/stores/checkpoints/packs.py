"""Pack files: append-only storage for large blobs, fsynced before they are indexed; compaction."""

from __future__ import annotations

import hashlib
import os
import zlib
from typing import TYPE_CHECKING, NamedTuple, Protocol

from hermes.stores.checkpoints.checkpoint_db import private_folder
from hermes.stores.checkpoints.types import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from sqlite3 import Connection
    from typing import BinaryIO


# How the bytes lie there; fresh ones are to be compressed when that delays nobody.
# Those of a chunked one are the digests of its chunks.
RAW, ZLIB, FRESH, CHUNKED = 0, 1, 2, 3
CHUNK = 1 << 20
# Bytes that tell whether the rest can be compressed; fewer are not worth it.
_SAMPLE, _SHORT = 16_384, 64
# A pack is left for the next one past this; what is dropped is dropped by whole packs.
_FULL = 64 << 20


class Source(Protocol):
    """Something to read from its present position on."""

    def read(self, count: int, /) -> bytes:
        """Some bytes; none at the end."""
        ...


class Part:
    """The next bytes of a file, and no more than those."""

    def __init__(self, file: BinaryIO, length: int) -> None:
        self._file = file
        self._left = length

    def read(self, count: int, /) -> bytes:
        """Some bytes; none at the end."""
        piece = self._file.read(min(count, self._left))
        self._left -= len(piece)
        return piece


class Packed(NamedTuple):
    """Where a content lies."""

    digest: str
    size: int
    codec: int
    name: str
    start: int
    length: int


class PackWriter:
    """The packs that one operation writes; nothing is in the index before `settle`."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file: BinaryIO | None = None
        self._name = ""
        self.sizes: dict[str, int] = {}

    def append(self, source: Source) -> Packed:
        """Everything that is left in `source`, compressed where that helps."""
        file = self._room()
        start = file.tell()
        hashed = hashlib.sha256()
        first = source.read(CHUNK)
        size = 0
        codec = RAW if incompressible(first) else ZLIB
        squeeze = zlib.compressobj(1)
        piece = first
        while piece:
            hashed.update(piece)
            size += len(piece)
            _put(file, squeeze.compress(piece) if codec == ZLIB else piece)
            piece = source.read(CHUNK)
        if codec == ZLIB:
            _put(file, squeeze.flush())
        length = file.tell() - start
        self.sizes[self._name] = start + length
        return Packed(hashed.hexdigest(), size, codec, self._name, start, length)

    def put(self, data: bytes, digest: str) -> Packed:
        """Bytes as they are, to be compressed another time."""
        file = self._room()
        start = file.tell()
        _put(file, data)
        self.sizes[self._name] = start + len(data)
        return Packed(digest, len(data), FRESH, self._name, start, len(data))

    def copy(self, source: BinaryIO, length: int, digest: str, size: int, codec: int) -> Packed:
        """Take over a content as it is packed already."""
        file = self._room()
        start = file.tell()
        part = Part(source, length)
        while piece := part.read(CHUNK):
            _put(file, piece)
        self.sizes[self._name] = file.tell()
        return Packed(digest, size, codec, self._name, start, length)

    def take_back(self, packed: Packed) -> None:
        """Drop the blob appended last: the store has it already."""
        if self._file is not None and packed.name == self._name:
            self._file.seek(packed.start)
            self._file.truncate()
            self.sizes[self._name] = packed.start

    def settle(self) -> None:
        """Have everything on the disk, names included."""
        for name in [name for name, size in self.sizes.items() if not size]:
            # Everything in it was taken back.
            self._finish()
            del self.sizes[name]
            os.unlink(os.path.join(self._folder, name))
        if self.sizes:
            self._finish()
            sync_folder(self._folder)

    def abandon(self) -> None:
        """Remove the pack file."""
        if self._file is not None:
            self._file.close()
            self._file = None
        for name in self.sizes:
            os.unlink(os.path.join(self._folder, name))
        self.sizes = {}

    def _room(self) -> BinaryIO:
        if self._file is not None and self._file.tell() >= _FULL:
            self._finish()
        if self._file is None:
            private_folder(self._folder)
            self._name = f"{os.urandom(12).hex()}.pack"
            path = os.path.join(self._folder, self._name)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            self._file = os.fdopen(os.open(path, flags, 0o600), "w+b", buffering=0)
            self.sizes[self._name] = 0
        return self._file

    def _finish(self) -> None:
        if self._file is not None:
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None


def _put(file: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[file.write(view) :]
    except OSError as error:
        raise CheckpointError(
            f"no room for a checkpoint: {error.strerror}", hint="`hermes checkpoints prune`"
        ) from None


def read_packed(file: BinaryIO, path: str, codec: int, start: int, length: int) -> Iterator[bytes]:
    """The bytes of a content, piece by piece; raises `CheckpointError` when they are not whole."""
    try:
        file.seek(start)
        yield from _unpacked(_pieces(file, length, path), codec)
    except OSError as error:
        raise CheckpointError(f"{path} can't be read: {error.strerror}") from None
    except zlib.error as error:
        raise CheckpointError(f"{path} is damaged: {error}") from None


def _pieces(file: BinaryIO, length: int, path: str) -> Iterator[bytes]:
    while length:
        piece = file.read(min(CHUNK, length))
        if not piece:
            raise CheckpointError(f"{path} is damaged: its end is missing")
        length -= len(piece)
        yield piece


def _unpacked(pieces: Iterator[bytes], codec: int) -> Iterator[bytes]:
    if codec != ZLIB:
        yield from pieces
        return
    unsqueeze = zlib.decompressobj()
    for piece in pieces:
        data = piece
        while data:
            # Bounded: a few damaged bytes may unpack to any number of gigabytes.
            yield unsqueeze.decompress(data, CHUNK)
            data = unsqueeze.unconsumed_tail
    yield unsqueeze.flush()


def incompressible(data: bytes) -> bool:
    """Whether a sample says that compressing costs more than it saves."""
    return squeezed(data[:_SAMPLE])[0] == RAW


def squeezed(data: bytes) -> tuple[int, bytes]:
    """Codec and bytes, compressed where that helps."""
    if len(data) < _SHORT or (len(data) > _SAMPLE and incompressible(data)):
        return RAW, data
    packed = zlib.compress(data, 1)
    return (ZLIB, packed) if len(packed) <= len(data) * 0.9 else (RAW, data)


def sync_folder(folder: str) -> None:
    """Put the names in a folder on the disk."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# What a pack takes, how much of it is wanted, and whether some of that is to be compressed.
_PACKS = (
    "SELECT packs.id, name, bytes, coalesce(sum(length), 0) AS live, coalesce(max(codec), 0)"
    " FROM packs LEFT JOIN contents ON contents.pack = packs.id GROUP BY packs.id"
)


def needed(connection: Connection) -> int:
    """How many bytes the packs take once they are compacted."""
    rows = connection.execute(_PACKS)
    return sum(live if _wasteful(size, live) else size for _, _, size, live, _ in rows)


def _wasteful(size: int, live: int) -> bool:
    """Whether so much of a pack is dead weight that room is worth the work."""
    return (size - live) * 8 > size


def compact(connection: Connection, folder: str) -> list[str]:
    """Rewrite packs with too much waste, within a transaction; the names of the old files.

    These can be deleted once the transaction is committed.
    """
    writer = PackWriter(folder)
    try:
        left, moved = _moved(connection, folder, writer)
        writer.settle()
    except BaseException:
        writer.abandon()
        raise
    ids = {
        name: connection.execute(
            "INSERT INTO packs (name, bytes) VALUES (?, ?)", (name, size)
        ).lastrowid
        for name, size in writer.sizes.items()
    }
    connection.executemany(
        "UPDATE contents SET codec = ?, pack = ?, start = ?, length = ? WHERE digest = ?",
        [(one.codec, ids[one.name], one.start, one.length, one.digest) for one in moved],
    )
    return left


def _moved(
    connection: Connection, folder: str, writer: PackWriter
) -> tuple[list[str], list[Packed]]:
    """The rewritten packs, and the new positions of their blobs."""
    left: list[str] = []
    moved: list[Packed] = []
    for pack, name, size, live, codec in connection.execute(_PACKS).fetchall():
        if not _wasteful(size, live) and codec != FRESH:
            continue
        found = connection.execute(
            "SELECT digest, size, codec, start, length FROM contents WHERE pack = ? ORDER BY start",
            (pack,),
        )
        if live:
            try:
                moved += _copied(writer, os.path.join(folder, name), found.fetchall())
            except OSError:
                # Gone or unreadable: what it held is missed when it is asked for.
                continue
        connection.execute("DELETE FROM packs WHERE id = ?", (pack,))
        left.append(name)
    return left, moved


def _copied(
    writer: PackWriter, path: str, rows: list[tuple[str, int, int, int, int]]
) -> list[Packed]:
    with open(path, "rb") as file:
        placed = []
        for digest, size, codec, start, length in rows:
            file.seek(start)
            if codec == FRESH:
                # Known by the name that it has, whatever became of its bytes.
                placed.append(writer.append(Part(file, length))._replace(digest=digest))
            else:
                placed.append(writer.copy(file, length, digest, size, codec))
    return placed
