"""The members of a 7z file as its header describes them, without their bytes."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from hermes.files.archives.limits import ArchiveError, Member
from hermes.files.archives.seven_zip_reader.fields import Fields, damaged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.files.archives.limits import Kind

_END, _EMPTY_STREAM, _EMPTY_FILE, _ANTI = 0x00, 0x0E, 0x0F, 0x10
_NAMES, _MODIFIED, _ATTRIBUTES = 0x11, 0x14, 0x15
_FOLDER, _REPARSE, _HAS_MODE = 0x10, 0x400, 0x8000
# Times are tenths of microseconds since 1601.
_EPOCH, _TICKS = 11_644_473_600, 10_000_000


class Listed:
    """A member, and whether it has bytes in a stream."""

    __slots__ = ("attributes", "empty_file", "has_stream", "mtime", "name")

    def __init__(self) -> None:
        self.name = ""
        self.has_stream = True
        self.empty_file = False
        self.attributes = 0
        self.mtime: float | None = None

    def member(self, size: int) -> Member:
        """What callers see of it."""
        kind = self._kind()
        if kind == "folder" and size:
            raise damaged(f"the folder {self.name!r} has content")
        usual = 0o755 if kind == "folder" else 0o644
        mode = self.attributes >> 16 & 0o7777 if self.attributes & _HAS_MODE else 0
        return Member(self.name, kind, size=size, mode=mode or usual, mtime=self.mtime)

    def _kind(self) -> Kind:
        folder = not self.has_stream and not self.empty_file
        if not self.attributes & _HAS_MODE:
            if self.attributes & _REPARSE:
                return "other"
            return "folder" if folder or self.attributes & _FOLDER else "file"
        kinds: dict[int, Kind] = {
            0: "folder" if folder else "file",
            stat.S_IFREG: "file",
            stat.S_IFDIR: "folder",
            stat.S_IFLNK: "symlink",
        }
        kind = kinds.get(stat.S_IFMT(self.attributes >> 16), "other")
        return "folder" if folder and kind == "file" else kind


def read_files(fields: Fields, most: int) -> list[Listed]:
    """The members in order."""
    files = [Listed() for _ in range(fields.count(most, "members"))]
    empty: list[Listed] = []
    while (kind := fields.byte()) != _END:
        part = Fields(fields.take(fields.number()))
        if kind == _EMPTY_STREAM:
            _mark(files, part.bits(len(files)))
            empty = [file for file in files if not file.has_stream]
        elif kind == _EMPTY_FILE:
            for file, there in zip(empty, part.bits(len(empty)), strict=True):
                file.empty_file = there
        elif kind == _ANTI:
            if any(part.bits(len(empty))):
                raise ArchiveError("the archive is refused: it asks for files to be deleted")
        elif kind == _NAMES:
            _name(files, _inside(part))
        elif kind == _MODIFIED:
            _date(files, part)
        elif kind == _ATTRIBUTES:
            defined = part.defined(len(files))
            part = _inside(part)
            for file, given in zip(files, defined, strict=True):
                file.attributes = part.whole("<I") if given else 0
    return files


def _inside(part: Fields) -> Fields:
    if part.byte():
        raise ArchiveError("the archive keeps its names in a way that is not known here")
    return part


def _mark(files: Sequence[Listed], empty: Sequence[bool]) -> None:
    for file, none in zip(files, empty, strict=True):
        file.has_stream = not none


def _name(files: Sequence[Listed], part: Fields) -> None:
    data = part.take(part.left)
    if len(data) % 2:
        raise damaged("its names make no sense")
    names = data.decode("utf-16-le", "surrogatepass").split("\0")
    if len(names) != len(files) + 1 or names[-1]:
        raise damaged("its names are not as many as its members")
    for file, name in zip(files, names, strict=False):
        file.name = name


def _date(files: Sequence[Listed], part: Fields) -> None:
    there = part.defined(len(files))
    part = _inside(part)
    for file, given in zip(files, there, strict=True):
        if given:
            file.mtime = part.whole("<Q") / _TICKS - _EPOCH
