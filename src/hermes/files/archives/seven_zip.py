"""7z files by py7zr, both ways; reading happens in a worker process of bounded memory."""

from __future__ import annotations

import io
import json
import os
import select
import stat
import subprocess
import sys
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.files.archives.limits import ArchiveError, Member

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, BinaryIO

    from hermes.files.archives.creation import Content, Item
    from hermes.files.archives.limits import Kind, Meter

MAGIC = b"7z\xbc\xaf\x27\x1c"
_WORKER = os.path.join(os.path.dirname(__file__), "seven_zip_worker.py")
_WORKER_MEMORY = 1024 * 1024 * 1024
# Between two checks for cancellation while the worker computes.
_POLL_SECONDS = 0.25
# The members frame: an average member needs less than this, its name included.
_MEMBER_BYTES = 1024
_READ = 1024 * 1024
_SLACK = 1024 * 1024
_LONGEST_LINK = 4096
_FOLDER, _REPARSE, _HAS_MODE = 0x10, 0x400, 0x8000
# Times are in units of 100 ns since 1601.
_EPOCH, _TICKS = 11_644_473_600, 10_000_000
# log2 of the LZMA2 dictionary size by level.
_WINDOWS = (18, 20, 21, 22, 22, 23, 23, 24, 25, 26)


def seven_zip_members(file: BinaryIO, meter: Meter) -> Iterator[tuple[Member, Iterator[bytes]]]:
    """Each member and its bytes; declared sizes are checked against the limits before the first."""
    _check_installed()
    with _started(file, meter) as worker:
        entries = [_member(*entry) for entry in worker.members()]
        for member, _ in entries:
            meter.member(member)
        for index, (member, has_data) in enumerate(entries):
            chunks = worker.chunks(index, member) if has_data else iter(())
            if member.kind == "symlink":
                if member.size > _LONGEST_LINK:
                    raise _damaged(f"the link {member.path!r} is too long")
                member.link = b"".join(chunks).decode("utf-8", "surrogateescape")
                member.size = 0
            yield member, chunks


def write_seven_zip(draft: BinaryIO, items: Iterable[Item], content: Content, level: int) -> None:
    """Write the archive: one LZMA2 stream for all content, then the header."""
    _check_installed()
    import py7zr

    way = {"id": py7zr.FILTER_LZMA2, "preset": level, "dict_size": 1 << _WINDOWS[level]}
    with py7zr.SevenZipFile(draft, "w", filters=[way]) as archive:
        for item in items:
            _add(archive, item, content)


def _add(archive: Any, item: Item, content: Content) -> None:
    """Append one member like `SevenZipFile.writef`, but with mode and time of the source."""
    try:
        target = item.target.encode()
        item.name.encode("utf-16-le")
    except UnicodeEncodeError:
        raise ToolError(
            f"the name {item.name!a} is not valid Unicode, which 7z needs",
            hint="Leave it out with exclude, or make a tar.",
        ) from None
    from py7zr.helpers import ArchiveTimestamp

    kinds = {"file": stat.S_IFREG, "folder": stat.S_IFDIR, "link": stat.S_IFLNK}
    mode = kinds[item.kind] | item.status.mode & 0o777
    size = item.status.size if item.kind == "file" else len(target)
    info: dict[str, Any] = {
        "filename": item.name,
        "emptystream": not size,
        "attributes": mode << 16 | _HAS_MODE | (_FOLDER if item.kind == "folder" else 0),
        "lastwritetime": ArchiveTimestamp(item.status.mtime_ns // 100 + _EPOCH * _TICKS),
    }
    if size:
        info["uncompressed"] = size
        info["data"] = io.BytesIO(target) if item.kind == "link" else _Pieces(content.of(item))
    folder = archive.header.initialize()
    archive.header.files_info.files.append(info)
    archive.header.files_info.emptyfiles.append(not size)
    archive.files.append(info)
    archive.worker.archive(archive.fp, archive.files, folder)


class _Pieces:
    """Pieces of bytes as a file to read; at most one of them is in memory."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int) -> bytes:
        if not self._rest:
            self._rest = next(self._pieces, b"")
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


def _check_installed() -> None:
    if find_spec("py7zr") is None:
        raise ArchiveError("7z files need py7zr", hint="Install the extra `archives`.")


def _member(
    name: str, size: int, has_data: bool, attributes: int, time: int | None
) -> tuple[Member, bool]:
    mode = attributes >> 16 if attributes & _HAS_MODE else 0
    kind: Kind = "file"
    if attributes & _FOLDER or stat.S_ISDIR(mode):
        kind = "folder"
    elif stat.S_ISLNK(mode) or (not mode and attributes & _REPARSE):
        kind = "symlink"
    elif stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        kind = "other"
    if kind == "folder" and size:
        raise _damaged(f"the folder {name!r} has content")
    usual = 0o755 if kind == "folder" else 0o644
    mtime = None if time is None else time / _TICKS - _EPOCH
    permissions = stat.S_IMODE(mode) if attributes & _HAS_MODE else usual
    return Member(name, kind, size=size, mode=permissions, mtime=mtime), has_data


@contextmanager
def _started(file: BinaryIO, meter: Meter) -> Iterator[_Worker]:
    # The worker shares the position of the descriptor, not that of the buffer.
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    limits = [str(_WORKER_MEMORY), str(meter.limits.max_members)]
    process = subprocess.Popen(
        [sys.executable, "-I", _WORKER, *limits],
        stdin=file,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
    )
    try:
        yield _Worker(process, meter)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            with suppress(OSError):
                process.stdout.close()


class _Worker:
    """The frames of a worker process, metered; see `seven_zip_worker`."""

    def __init__(self, process: subprocess.Popen[bytes], meter: Meter) -> None:
        assert process.stdout is not None
        self._process = process
        self._output = process.stdout.fileno()
        self._meter = meter
        self._buffer = bytearray()
        self._frame: dict[str, Any] | None = None
        self._position = 0

    def members(self) -> list[list[Any]]:
        """The fields of all members: the first frame."""
        members: list[list[Any]] = self._next_frame()["members"]
        self._frame = None
        return members

    def chunks(self, index: int, member: Member) -> Iterator[bytes]:
        """The bytes of a member; those of members before it are skipped."""
        left = member.size
        while left > 0:
            frame = self._next_frame()
            if frame.get("member", sys.maxsize) > index:
                raise _damaged(f"{member.path!r} has no content")
            data = self._take(frame["data"])
            self._frame = None
            self._meter.packed(max(0, frame["at"] - self._position))
            self._position = max(self._position, frame["at"])
            self._meter.unpacked(len(data))
            if frame["member"] == index:
                left -= len(data)
                yield data
        # A wrong check sum is reported after the bytes.
        self._next_frame()

    def _next_frame(self) -> dict[str, Any]:
        if self._frame is None:
            longest = self._meter.limits.max_members * _MEMBER_BYTES + _SLACK
            while (end := self._buffer.find(b"\n")) < 0:
                if len(self._buffer) > longest:
                    raise ArchiveError("the archive holds too large a directory")
                self._fill()
            self._frame = json.loads(self._buffer[:end])
            del self._buffer[: end + 1]
        if "error" in self._frame:
            raise _error(self._frame["error"], self._frame["text"])
        return self._frame

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._fill()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _fill(self) -> None:
        if os.name == "posix":
            while not select.select([self._output], [], [], _POLL_SECONDS)[0]:
                # Lets the caller cancel.
                self._meter.packed(0)
        data = os.read(self._output, _READ)
        if not data:
            raise _damaged(f"its reader ended with status {self._process.wait()}")
        self._buffer += data


def _error(kind: str, text: str) -> ArchiveError:
    if kind == "encrypted":
        return ArchiveError("the archive is encrypted", hint="Ask for one without a password.")
    if kind == "memory":
        return ArchiveError(
            f"the archive takes more than {_WORKER_MEMORY} bytes of memory to unpack"
        )
    if kind == "UnsupportedCompressionMethodError":
        return ArchiveError("the archive is packed by a method that py7zr does not know")
    return _damaged(text or kind)


def _damaged(reason: str) -> ArchiveError:
    return ArchiveError(f"the archive is damaged: {reason}")
