"""`create_archive`: what was gathered becomes a file, all of it or nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.files.packing.streaming import CHUNK, Content, squeezed
from hermes.files.packing.tar import tar_pieces

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from hermes.files.packing.gathering import Item
    from hermes.files.packing.naming import Format
    from hermes.runtime.disk import Disk

USUAL_LEVEL = 6


class Packed(NamedTuple):
    """How many members were packed, from how many bytes of files, to how many of archive."""

    members: int
    bytes: int
    size: int


class Made(NamedTuple):
    """The archive to be: its size and the SHA-256 of its bytes."""

    size: int
    digest: str


def create_archive(
    disk: Disk,
    archive: str,
    items: list[Item],
    *,
    form: Format,
    level: int = USUAL_LEVEL,
    check: Callable[[int], object] = lambda _: None,
    before: Callable[[Made], object] = lambda _: None,
) -> Packed:
    """Write an archive at once and durably; when anything fails, what was there before stays.

    Args:
        level: From 0, fastest, to 9, smallest.
        check: Told of every piece of a file that was read; may raise to stop.
        before: Told what will be written, when nothing has been yet.
    """
    from tempfile import TemporaryFile

    # Beside the archive if possible: there must be room for it there anyway.
    near = os.path.dirname(archive) if disk.label == "local" else None
    try:
        with TemporaryFile(dir=near if near and os.access(near, os.W_OK) else None) as draft:
            _write(draft, items, Content(disk, check), form, level)
            size = draft.seek(0, os.SEEK_END)
            before(Made(size, _digest(draft)))
            draft.seek(0)
            disk.make_folder(os.path.dirname(archive))
            disk.write(archive, iter(lambda: draft.read(CHUNK), b""))
    except OSError as error:
        reason = error.strerror or str(error)
        raise ToolError(f"{archive} was not made: {reason}") from error
    total = sum(item.status.size for item in items if item.kind == "file")
    return Packed(len(items), total, size)


def _write(draft: BinaryIO, items: list[Item], content: Content, form: Format, level: int) -> None:
    if form == "7z":
        from hermes.files.packing.seven_zip import write_seven_zip

        write_seven_zip(draft, items, content, level)
    elif form == "zip":
        from hermes.files.packing.zip import write_zip

        write_zip(draft, items, content, level)
    else:
        plain = tar_pieces(items, content)
        way = form.removeprefix("tar.")
        for piece in plain if form == "tar" else squeezed(plain, way, level):
            draft.write(piece)


def _digest(draft: BinaryIO) -> str:
    import hashlib

    found = hashlib.sha256()
    draft.seek(0)
    while data := draft.read(CHUNK):
        found.update(data)
    return found.hexdigest()
