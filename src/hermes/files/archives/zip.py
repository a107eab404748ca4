"""Zip files: the directory by `zipfile`, the bytes metered; and output."""

from __future__ import annotations

import itertools
import stat
import struct
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.files.archives.compression import LZMA_MEMORY, Deflate, Plain, Unpacking
from hermes.files.archives.limits import ArchiveError, Member

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO
    from zipfile import ZipInfo

    from hermes.files.archives.compression import Decompressor, Source
    from hermes.files.archives.creation import Content, Item
    from hermes.files.archives.limits import Kind, Meter


_STORED, _DEFLATED, _BZIP2, _LZMA = 0, 8, 12, 14
_ENCRYPTED, _LZMA_MARKED, _PATCHED, _STRONG, _UTF8, _MASKED = 0x1, 0x2, 0x20, 0x40, 0x800, 0x2000
_LOCAL = struct.Struct("<4s5H3L2H")
_ENTRY = b"PK\x01\x02"
# What an entry of the directory may take on average, its name and extra fields included.
_ENTRY_BYTES = 1024
_LONGEST_LINK = 4096


def zip_members(file: BinaryIO, meter: Meter) -> Iterator[tuple[Member, Iterator[bytes]]]:
    """Each member and its bytes; every size is held against the limits before the first."""
    infos, end = _directory(file, meter)
    members = [_member(info) for info in infos]
    for member in members:
        meter.member(member)
    starts = _data_starts(file, infos, end)
    for info, member, start in zip(infos, members, starts, strict=True):
        chunks = _chunks(file, info, start, meter)
        if member.kind == "symlink":
            member.link = b"".join(chunks).decode("utf-8", "surrogateescape")
            member.size = 0
        yield member, chunks


def _directory(file: BinaryIO, meter: Meter) -> tuple[list[ZipInfo], int]:
    """The entries, and where the directory starts."""
    from zipfile import BadZipFile, ZipFile

    guarded = _Guarded(file, meter.limits.max_members)
    try:
        with ZipFile(guarded) as opened:
            return opened.infolist(), opened.start_dir
    except (BadZipFile, NotImplementedError, ValueError, struct.error, OverflowError) as error:
        raise ArchiveError(f"the archive is damaged: {error}") from error


class _Guarded:
    """A file that refuses a directory which would become too many objects."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file = file
        self._most = most
        self.seek = file.seek
        self.tell = file.tell

    def read(self, size: int = -1) -> bytes:
        if size > self._most * _ENTRY_BYTES + 2**20:
            raise ArchiveError("the archive holds too large a directory")
        data = self._file.read(size)
        if data.startswith(_ENTRY) and data.count(_ENTRY) > self._most:
            raise ArchiveError(f"the archive holds more than {self._most} members")
        return data


def _member(info: ZipInfo) -> Member:
    name = info.orig_filename
    flags = info.flag_bits
    if flags & (_ENCRYPTED | _STRONG | _MASKED):
        raise ArchiveError(
            f"the archive is encrypted: {name!r}", hint="Ask for one without a password."
        )
    if flags & _PATCHED or info.compress_type not in (_STORED, _DEFLATED, _BZIP2, _LZMA):
        raise ArchiveError(f"{name!r} is compressed in a way that is not known here")
    mode = info.external_attr >> 16
    kind = _kind(name, mode)
    if kind == "folder" and info.file_size:
        raise ArchiveError(f"the archive is damaged: the folder {name!r} has content")
    if kind == "symlink" and info.file_size > _LONGEST_LINK:
        raise ArchiveError(f"the archive is damaged: the link {name!r} is too long")
    usual = 0o755 if kind == "folder" else 0o644
    return Member(name, kind, size=info.file_size, mode=mode & 0o7777 or usual, mtime=_mtime(info))


def _kind(name: str, mode: int) -> Kind:
    if name.endswith("/"):
        return "folder" if stat.S_IFMT(mode) in (0, stat.S_IFDIR, stat.S_IFREG) else "other"
    kinds: dict[int, Kind] = {
        0: "file",
        stat.S_IFREG: "file",
        stat.S_IFDIR: "folder",
        stat.S_IFLNK: "symlink",
    }
    return kinds.get(stat.S_IFMT(mode), "other")


def _mtime(info: ZipInfo) -> float | None:
    import time

    try:
        return time.mktime((*info.date_time, 0, 0, -1))
    except (OverflowError, ValueError):
        return None


def _data_starts(file: BinaryIO, infos: list[ZipInfo], end: int) -> list[int]:
    """Where each member's bytes start; no two members may share any."""
    starts = []
    spans = []
    for info in infos:
        if not 0 <= info.header_offset <= end - _LOCAL.size:
            raise ArchiveError("the archive is damaged: a member is outside of it")
        file.seek(info.header_offset)
        header = file.read(_LOCAL.size)
        if len(header) < _LOCAL.size or header[:4] != b"PK\x03\x04":
            raise ArchiveError("the archive is damaged: a member has no header")
        fields = _LOCAL.unpack(header)
        name = file.read(fields[9]).decode(
            "utf-8" if info.flag_bits & _UTF8 else "cp437", "replace"
        )
        if name != info.orig_filename:
            raise ArchiveError(f"the archive gives two names to one member: {name!r}")
        start = info.header_offset + _LOCAL.size + fields[9] + fields[10]
        starts.append(start)
        spans.append((info.header_offset, start + info.compress_size))
    spans.sort()
    spans.append((end, end))
    for (_, stop), (following, _) in itertools.pairwise(spans):
        if stop > following:
            raise ArchiveError("the archive is refused: its members overlap")
    return starts


def _chunks(file: BinaryIO, info: ZipInfo, start: int, meter: Meter) -> Iterator[bytes]:
    """The bytes of a member, exactly as many as it declares and with its check sum."""
    import zlib

    source = _source(_Part(file, start, info.compress_size), info, meter)
    left = info.file_size
    check = 0
    # One byte more is asked for, to see whether there are more than there should be.
    while data := source.read(left + 1):
        left -= len(data)
        if left < 0:
            raise ArchiveError(f"the archive is refused: {info.filename!r} is larger than it says")
        check = zlib.crc32(data, check)
        yield data
    if left or check != info.CRC:
        raise ArchiveError(f"the archive is damaged: {info.filename!r} is not what it should be")


class _Part:
    """A stretch of a file, wherever the file itself is read in between."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        self._file = file
        self._at = start
        self._left = size

    def read(self, size: int) -> bytes:
        self._file.seek(self._at)
        data = self._file.read(min(size, self._left))
        self._at += len(data)
        self._left -= len(data)
        return data


def _source(part: _Part, info: ZipInfo, meter: Meter) -> Source:
    if info.compress_type == _STORED or info.compress_size == info.file_size == 0:
        return Plain(part.read, meter)
    if info.compress_type == _DEFLATED:
        return Unpacking(part.read, _inflate, meter)
    if info.compress_type == _BZIP2:
        import bz2

        return Unpacking(part.read, bz2.BZ2Decompressor, meter)
    return _lzma_source(part, info, meter)


def _inflate() -> Decompressor:
    return Deflate(-15)


def _lzma_source(part: _Part, info: ZipInfo, meter: Meter) -> Unpacking:
    """LZMA as zip has it: two bytes of version, the length of the properties, the properties."""
    import lzma

    head = part.read(9)
    if len(head) < 9 or head[2:4] != b"\5\0":
        raise ArchiveError(f"the archive is damaged: {info.filename!r} makes no sense")
    marked = info.flag_bits & _LZMA_MARKED
    size = b"\xff" * 8 if marked else struct.pack("<Q", info.file_size)
    pending = [head[4:] + size]

    def read(wanted: int) -> bytes:
        return pending.pop() if pending else part.read(wanted)

    def start() -> Decompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=LZMA_MEMORY)

    return Unpacking(read, start, meter)


_UNIX = 3
_OLDEST, _NEWEST = (1980, 1, 1, 0, 0, 0), (2107, 12, 31, 23, 59, 58)
_FOLDER_BIT = 0x10


def write_zip(draft: BinaryIO, items: Iterable[Item], content: Content, level: int) -> None:
    """Write the archive: members in turn, then the directory."""
    from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

    way = ZIP_DEFLATED if level else ZIP_STORED
    with ZipFile(draft, "w", way, compresslevel=level or None) as made:
        for item in items:
            info = _info(item)
            if item.kind == "file":
                info.compress_type = way
                with made.open(info, "w", force_zip64=item.status.size >= 2**31) as member:
                    for piece in content.of(item):
                        member.write(piece)
            else:
                made.writestr(info, item.target.encode() if item.kind == "link" else b"")


def _info(item: Item) -> ZipInfo:
    import time
    from zipfile import ZipInfo

    try:
        item.name.encode()
        item.target.encode()
    except UnicodeEncodeError:
        raise ToolError(
            f"the name {item.name!a} is not valid UTF-8, which zip needs",
            hint="Leave it out with exclude, or make a tar.",
        ) from None
    when = time.localtime(item.status.mtime_ns // 1_000_000_000)[:6]
    folder = item.kind == "folder"
    info = ZipInfo(item.name + "/" if folder else item.name, min(max(when, _OLDEST), _NEWEST))
    kinds = {"file": stat.S_IFREG, "folder": stat.S_IFDIR, "link": stat.S_IFLNK}
    info.create_system = _UNIX
    info.external_attr = (kinds[item.kind] | item.status.mode & 0o777) << 16
    if folder:
        info.external_attr |= _FOLDER_BIT
    if item.kind == "file":
        info.file_size = item.status.size
    return info
