"""`create_archive`: pack files into an archive of the format that its name asks for, all or
nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.files.archives.pack_source import CHUNK, Content, squeezed
from hermes.files.archives.tar import tar_pieces

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO, Literal

    from hermes.environments.disk.protocol import Disk
    from hermes.files.archives.pack_source import Item


if TYPE_CHECKING:
    Format = Literal["zip", "tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst", "7z"]

FORMATS: dict[str, Format] = {
    "zip": "zip",
    "tar": "tar",
    "tar.gz": "tar.gz",
    "tgz": "tar.gz",
    "tar.bz2": "tar.bz2",
    "tbz2": "tar.bz2",
    "tbz": "tar.bz2",
    "tar.xz": "tar.xz",
    "txz": "tar.xz",
    "tar.zst": "tar.zst",
    "tzst": "tar.zst",
    "7z": "7z",
}


def format_of(name: str) -> Format:
    """The format that goes with a file's name."""
    ending = _ending(name)
    if ending:
        return FORMATS[ending]
    raise ToolError(
        f"the name {name!r} says no format that can be made",
        hint=f"End it with one of {', '.join('.' + ending for ending in FORMATS)}; or give format.",
    )


def name_for(source: str, workspace: str) -> str:
    """The member name of a source: its path relative to the workspace, or its base name.

    The workspace itself has an empty name: its content goes to the top level.
    """
    top = os.path.normpath(workspace)
    path = os.path.normpath(os.path.join(top, os.path.expanduser(source)))
    if path == top:
        return ""
    below = os.path.join(top, "")
    name = path[len(below) :] if path.startswith(below) else os.path.basename(path)
    return name.replace(os.sep, "/")


def folder_for(archive: str) -> str:
    """The default target folder of an archive."""
    name = os.path.basename(archive)
    ending = _ending(name)
    return (
        name[: -len(ending) - 1] if ending and len(name) > len(ending) + 1 else f"{name}.unpacked"
    )


def _ending(name: str) -> str:
    lowered = name.lower()
    longest_first = sorted(FORMATS, key=len, reverse=True)
    return next((ending for ending in longest_first if lowered.endswith(f".{ending}")), "")


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
    """Write an archive atomically and durably; on failure the old file stays.

    Args:
        level: From 0, fastest, to 9, smallest.
        check: Called with the size of each chunk that was read; may raise to stop.
        before: Called with size and digest of the archive before it is written.
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
        from hermes.files.archives.seven_zip import write_seven_zip

        write_seven_zip(draft, items, content, level)
    elif form == "zip":
        from hermes.files.archives.zip import write_zip

        write_zip(draft, items, content, level)
    else:
        plain = tar_pieces(items, content)
        way = form.removeprefix("tar.")
        for piece in plain if form == "tar" else squeezed(plain, way, level):
            draft.write(piece)


def _digest(draft: BinaryIO) -> str:
    import hashlib

    digest = hashlib.sha256()
    draft.seek(0)
    while data := draft.read(CHUNK):
        digest.update(data)
    return digest.hexdigest()
