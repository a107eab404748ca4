"""Zip files."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO
    from zipfile import ZipInfo

    from hermes.files.packing.gathering import Item
    from hermes.files.packing.streaming import Content

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
