"""7z files: all content in one LZMA2 stream, then the header."""

from __future__ import annotations

import stat
import struct
import zlib
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO

    from hermes.files.archives.pack_source import Content, Item

_MAGIC = b"7z\xbc\xaf\x27\x1c\x00\x04"
_START = 32
_END, _HEADER, _STREAMS, _FILES = b"\x00", b"\x01", b"\x04", b"\x05"
_ALL = b"\x01"
_INSIDE = b"\x00"
# How much of what came before is looked at, as a power of two, for each level.
_WINDOWS = (18, 20, 21, 22, 22, 23, 23, 24, 25, 26)
_FOLDER_BIT, _HAS_MODE = 0x10, 0x8000
_EPOCH, _TICKS = 11_644_473_600, 10_000_000


def write_seven_zip(draft: BinaryIO, items: Iterable[Item], content: Content, level: int) -> None:
    """Write the archive; its beginning, which says where its end is, last."""
    ordered = list(items)
    parts: list[tuple[int, int]] = []
    draft.write(bytes(_START))
    packed = _compress(ordered, content, level, draft, parts)
    header = _header(ordered, parts, packed, level)
    draft.write(header)
    start = struct.pack("<QQL", packed, len(header), zlib.crc32(header))
    draft.seek(0)
    draft.write(_MAGIC + struct.pack("<L", zlib.crc32(start)) + start)


def _compress(
    items: list[Item],
    content: Content,
    level: int,
    draft: BinaryIO,
    parts: list[tuple[int, int]],
) -> int:
    """Write the content of all that has some; `parts` gets each one's size and check sum."""
    import lzma

    way = {"id": lzma.FILTER_LZMA2, "preset": level, "dict_size": 1 << _WINDOWS[level]}
    compressor = lzma.LZMACompressor(lzma.FORMAT_RAW, filters=[way])
    for item in items:
        if not _has_content(item):
            continue
        size = check = 0
        for piece in [item.target.encode()] if item.kind == "link" else content.of(item):
            size += len(piece)
            check = zlib.crc32(piece, check)
            draft.write(compressor.compress(piece))
        parts.append((size, check))
    if parts:
        draft.write(compressor.flush())
    return draft.tell() - _START


def _header(items: list[Item], parts: list[tuple[int, int]], packed: int, level: int) -> bytes:
    streams = b""
    if parts:
        window = 2 * (_WINDOWS[level] - 12)
        whole = sum(size for size, _ in parts)
        folder = b"\x01\x21\x21\x01" + bytes([window])
        inner = b"".join(_number(size) for size, _ in parts[:-1])
        sums = b"".join(struct.pack("<L", check) for _, check in parts)
        streams = b"".join(
            (
                *(_STREAMS, b"\x06", _number(0), _number(1), b"\x09", _number(packed), _END),
                *(b"\x07\x0b", _number(1), _INSIDE, folder, b"\x0c", _number(whole), _END),
                *(b"\x08\x0d", _number(len(parts)), b"\x09", inner, b"\x0a", _ALL, sums, _END),
                _END,
            )
        )
    return b"".join((_HEADER, streams, _FILES, _files(items), _END))


def _files(items: list[Item]) -> bytes:
    empty = [item for item in items if not _has_content(item)]
    times = [item.status.mtime_ns // 100 + _EPOCH * _TICKS for item in items]
    found = [_number(len(items))]
    if empty:
        found.append(_property(0x0E, _bits([not _has_content(item) for item in items])))
        found.append(_property(0x0F, _bits([item.kind == "file" for item in empty])))
    found.append(_property(0x11, _INSIDE + b"".join(map(_name, items))))
    found.append(_property(0x14, _ALL + _INSIDE + b"".join(struct.pack("<Q", t) for t in times)))
    modes = b"".join(struct.pack("<L", _attributes(item)) for item in items)
    found.append(_property(0x15, _ALL + _INSIDE + modes))
    found.append(_END)
    return b"".join(found)


def _has_content(item: Item) -> bool:
    return item.kind == "link" or (item.kind == "file" and item.status.size > 0)


def _name(item: Item) -> bytes:
    try:
        item.target.encode()
        return item.name.encode("utf-16-le") + b"\0\0"
    except UnicodeEncodeError:
        raise ToolError(
            f"the name {item.name!a} is not valid Unicode, which 7z needs",
            hint="Leave it out with exclude, or make a tar.",
        ) from None


def _attributes(item: Item) -> int:
    kinds = {"file": stat.S_IFREG, "folder": stat.S_IFDIR, "link": stat.S_IFLNK}
    mode = kinds[item.kind] | item.status.mode & 0o777
    return mode << 16 | _HAS_MODE | (_FOLDER_BIT if item.kind == "folder" else 0)


def _property(kind: int, data: bytes) -> bytes:
    return bytes([kind]) + _number(len(data)) + data


def _bits(flags: list[bool]) -> bytes:
    found = bytearray((len(flags) + 7) // 8)
    for index, flag in enumerate(flags):
        if flag:
            found[index // 8] |= 0x80 >> index % 8
    return bytes(found)


def _number(value: int) -> bytes:
    """A number in as few bytes as it needs; the first says how many follow."""
    for more in range(8):
        if value < 1 << (7 * (more + 1)):
            first = (0xFF00 >> more) & 0xFF | value >> (8 * more)
            return bytes([first]) + (value & (1 << 8 * more) - 1).to_bytes(more, "little")
    return b"\xff" + value.to_bytes(8, "little")
