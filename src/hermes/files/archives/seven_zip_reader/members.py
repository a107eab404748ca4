"""A 7z file -> its members and their bytes."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from hermes.files.archives.limits import ArchiveError
from hermes.files.archives.seven_zip_reader.coders import Plain
from hermes.files.archives.seven_zip_reader.fields import Fields, damaged
from hermes.files.archives.seven_zip_reader.files import Listed, read_files
from hermes.files.archives.seven_zip_reader.streams import NOTHING, Folder, Part, read_streams

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from hermes.files.archives.limits import Member, Meter

MAGIC = b"7z\xbc\xaf\x27\x1c"
_START = struct.Struct("<6sBBLQQL")
_END, _HEADER, _PROPERTIES, _STREAMS, _FILES, _PACKED_HEADER = 0x00, 0x01, 0x02, 0x04, 0x05, 0x17
# What a member may take in the header on average, its name included.
_MEMBER_BYTES = 1024
_SLACK = 1024 * 1024
_LONGEST_LINK = 4096
_NESTED = 4


def seven_zip_members(file: BinaryIO, meter: Meter) -> Iterator[tuple[Member, Iterator[bytes]]]:
    """Each member and its bytes; every size is held against the limits before the first."""
    listed, folders = _contents(file, meter)
    contents = _Contents(file, folders, meter)
    parts = (part for folder in range(len(folders)) for part in contents.parts(folder))
    found: list[tuple[Member, _Content | None]] = []
    for entry in listed:
        content = next(parts, None) if entry.has_stream else None
        if entry.has_stream and content is None:
            raise damaged(f"{entry.name!r} has no content")
        member = entry.member(content.part.size if content else 0)
        meter.member(member)
        found.append((member, content))
    if next(parts, None) is not None:
        raise damaged("it has content that belongs to nothing")
    for member, content in found:
        chunks = iter(()) if content is None else content.chunks(member.path)
        if member.kind == "symlink":
            if member.size > _LONGEST_LINK:
                raise damaged(f"the link {member.path!r} is too long")
            member.link = b"".join(chunks).decode("utf-8", "surrogateescape")
            member.size = 0
        yield member, chunks


def _contents(file: BinaryIO, meter: Meter) -> tuple[list[Listed], list[Folder]]:
    most = meter.limits.max_members
    fields = _header(file, meter)
    if fields is None:
        return [], []
    folders: list[Folder] = []
    listed: list[Listed] = []
    while (kind := fields.byte()) != _END:
        if kind == _STREAMS:
            folders = read_streams(fields, most)
        elif kind == _FILES:
            listed = read_files(fields, most)
        elif kind == _PROPERTIES:
            while fields.byte() != _END:
                fields.take(fields.number())
        else:
            raise damaged(f"a header has a part {kind:#x}")
    return listed, folders


def _header(file: BinaryIO, meter: Meter) -> Fields | None:
    """The fields of the header, unpacked if need be; none when there are no members."""
    start = file.read(_START.size)
    if len(start) < _START.size:
        raise damaged("its beginning is cut short")
    _, _, _, check, offset, size, total = _START.unpack(start)
    if zlib.crc32(start[12:]) != check:
        raise damaged("its beginning is not what it should be")
    if not size:
        return None
    longest = meter.limits.max_members * _MEMBER_BYTES + _SLACK
    if size > longest:
        raise ArchiveError("the archive holds too large a directory")
    data = _stretch(file, _START.size + offset, size)
    if zlib.crc32(data) != total:
        raise damaged("its header is not what it should be")
    for _ in range(_NESTED):
        fields = Fields(data)
        kind = fields.byte()
        if kind == _HEADER:
            return fields
        if kind != _PACKED_HEADER:
            break
        folders = read_streams(fields, 1)
        if len(folders) != 1 or folders[0].size > longest:
            raise ArchiveError("the archive holds too large a directory")
        contents = _Contents(file, folders, meter)
        data = b"".join(chunk for part in contents.parts(0) for chunk in part.chunks("header"))
    raise damaged("its header makes no sense")


def _stretch(file: BinaryIO, start: int, size: int) -> bytes:
    file.seek(0, 2)
    if start + size > file.tell():
        raise ArchiveError("the archive is cut short")
    file.seek(start)
    return file.read(size)


class _Contents:
    """The plain bytes of folders: each is unpacked once, in order, as far as somebody asks."""

    def __init__(self, file: BinaryIO, folders: list[Folder], meter: Meter) -> None:
        self._file = file
        self._folders = folders
        self._meter = meter
        self._current = -1
        self._plain = Plain(lambda _: b"", NOTHING, meter)
        self._at = 0
        file.seek(0, 2)
        end = file.tell()
        if any(_START.size + folder.start + folder.packed > end for folder in folders):
            raise ArchiveError("the archive is cut short")

    def parts(self, folder: int) -> Iterator[_Content]:
        """The content of each member in a folder."""
        at = 0
        for part in self._folders[folder].parts:
            yield _Content(self, folder, at, part)
            at += part.size

    def read(self, folder: int, at: int, size: int) -> bytes:
        """Some bytes from a place in a folder; places before it are never asked for again."""
        if folder != self._current:
            source = self._folders[folder]
            packed = _Packed(self._file, _START.size + source.start, source.packed)
            self._plain = Plain(packed.read, source, self._meter)
            self._current, self._at = folder, 0
        while self._at < at:
            self._at += len(self._plain.read(at - self._at))
        data = self._plain.read(size)
        self._at += len(data)
        return data


class _Content:
    """The bytes of one member."""

    __slots__ = ("_at", "_contents", "_folder", "part")

    def __init__(self, contents: _Contents, folder: int, at: int, part: Part) -> None:
        self._contents = contents
        self._folder = folder
        self._at = at
        self.part = part

    def chunks(self, name: str) -> Iterator[bytes]:
        """The bytes, with their check sum."""
        check = 0
        done = 0
        while done < self.part.size:
            data = self._contents.read(self._folder, self._at + done, self.part.size - done)
            done += len(data)
            check = zlib.crc32(data, check)
            yield data
        if self.part.check_sum is not None and check != self.part.check_sum:
            raise damaged(f"{name!r} is not what it should be")


class _Packed:
    """A stretch of a file, wherever the file itself is read in between."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        self._file = file
        self._at = start
        self._left = size

    def read(self, size: int) -> bytes:
        """The next bytes; none at the end."""
        self._file.seek(self._at)
        data = self._file.read(min(size, self._left))
        self._at += len(data)
        self._left -= len(data)
        return data
