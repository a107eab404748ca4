"""Worker process for 7z files: py7zr reads an archive from stdin, with a limit on memory.

A script of its own: a hostile archive can exhaust or crash this process and nothing else. Output on
stdout is a sequence of frames, a JSON line each. `{"members": …}` comes first; `{"data": length,
"member": index, "at": position}` is followed by that many bytes of a member; `{"end": true}` or
`{"error": kind, "text": …}` is the last frame.
"""

from __future__ import annotations

import json
import os
import sys
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

_PIECE = 1024 * 1024
_MOST_IDLE = 16


def main(memory: int, max_members: int) -> None:
    """Send the members of the archive on stdin, then their bytes."""
    _limit_memory(memory)
    output = sys.stdout.buffer
    try:
        _run(output, max_members)
        frame: dict[str, Any] = {"end": True}
    except BrokenPipeError:
        os._exit(1)
    except MemoryError:
        frame = {"error": "memory", "text": ""}
    except Exception as error:  # noqa: BLE001 - py7zr raises any type for a damaged archive
        kind = "encrypted" if type(error).__name__ == "PasswordRequired" else type(error).__name__
        frame = {"error": kind, "text": str(error)[:300]}
    _send(output, frame)
    output.flush()


def _run(output: BinaryIO, max_members: int) -> None:
    import py7zr

    file = os.fdopen(0, "rb")
    archive = py7zr.SevenZipFile(file)
    entries = list(getattr(archive, "files", ()))
    if len(entries) > max_members:
        raise ValueError(f"more than {max_members} members")
    _send(output, {"members": [_described(entry) for entry in entries]})
    if archive.needs_password():
        raise py7zr.PasswordRequired
    streams = archive.header.main_streams if entries else None
    if streams is None:
        return
    start = archive.afterheader + streams.packinfo.packpos
    if start + sum(streams.packinfo.packsizes) > os.fstat(0).st_size:
        raise ValueError("it is cut short")
    by_folder: dict[int, list[Any]] = {}
    for entry in entries:
        if not entry.emptystream:
            by_folder.setdefault(id(entry.folder), []).append(entry)
    for index, folder in enumerate(streams.unpackinfo.folders):
        file.seek(start + streams.packinfo.packpositions[index])
        decompressor = folder.get_decompressor(streams.packinfo.packsizes[index])
        _send_folder(output, file, by_folder.get(id(folder), []), decompressor)


def _send_folder(output: BinaryIO, file: BinaryIO, members: list[Any], decompressor: Any) -> None:
    """Send the members of a folder, which share one compressed stream."""
    pieces = _decompressed(decompressor, file, sum(entry.uncompressed for entry in members))
    rest = b""
    for entry in members:
        check = 0
        left = entry.uncompressed
        while left > 0:
            piece = rest or next(pieces, b"")
            if not piece:
                raise ValueError("its sizes do not add up")
            piece, rest = piece[:left], piece[left:]
            left -= len(piece)
            check = zlib.crc32(piece, check)
            _send(output, {"data": len(piece), "member": entry.id, "at": file.tell()})
            output.write(piece)
        if entry.crc32 is not None and check != entry.crc32:
            raise ValueError(f"wrong check sum of {entry.filename!r}")


def _decompressed(decompressor: Any, file: BinaryIO, left: int) -> Iterator[bytes]:
    idle = 0
    while left > 0:
        piece = bytes(decompressor.decompress(file, min(left, _PIECE)))
        # Filters hold back some bytes, so a step without output is not the end yet.
        idle = 0 if piece else idle + 1
        if idle > _MOST_IDLE:
            raise ValueError("it is cut short")
        left -= len(piece)
        if piece:
            yield piece


def _described(entry: Any) -> list[Any]:
    """Name, size, whether it has a stream, attributes and modification time of a member."""
    time = entry.lastwritetime
    return [
        entry.filename,
        entry.uncompressed or 0,
        not entry.emptystream,
        entry.file_properties().get("attributes") or 0,
        None if time is None else int(time),
    ]


def _send(output: BinaryIO, frame: dict[str, Any]) -> None:
    output.write(json.dumps(frame).encode() + b"\n")


def _limit_memory(size: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
