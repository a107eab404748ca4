"""The bytes of a tar file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hermes.files.packing.gathering import Item
    from hermes.files.packing.streaming import Content

_BLOCK, _RECORD = 512, 10_240


def tar_pieces(items: Iterable[Item], content: Content) -> Iterator[bytes]:
    """Headers and files in turn; a second name of a file is stored as a hard link."""
    import tarfile

    written = 0
    names: dict[tuple[int, int], str] = {}
    for item in items:
        info = tarfile.TarInfo(item.name)
        info.mode = item.status.mode & 0o777
        info.mtime = max(0, item.status.mtime_ns // 1_000_000_000)
        if item.kind == "folder":
            info.type = tarfile.DIRTYPE
        elif item.kind == "link":
            info.type = tarfile.SYMTYPE
            info.linkname = item.target
        else:
            first = item.name
            if item.status.links > 1:
                first = names.setdefault((item.status.device, item.status.inode), item.name)
            if first != item.name:
                info.type = tarfile.LNKTYPE
                info.linkname = first
            else:
                info.size = item.status.size
        header = info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
        written += len(header) + info.size
        yield header
        if info.size:
            yield from content.of(item)
            padding = -info.size % _BLOCK
            written += padding
            yield bytes(padding)
    written += 2 * _BLOCK
    yield bytes(2 * _BLOCK + -written % _RECORD)
