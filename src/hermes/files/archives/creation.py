"""Create archives: gather files, folders and links, and write them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.files.archives.tar import tar_pieces
from hermes.text.globs import Patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, BinaryIO, Literal

    from hermes.environments.disk.protocol import Disk, Status


if TYPE_CHECKING:
    Kind = Literal["file", "folder", "link"]

MOST_ITEMS = 300_000


class Source(NamedTuple):
    """Something to pack: its place, and its name in the archive (`""`: its content at the top)."""

    place: str
    name: str


class Item(NamedTuple):
    """One member to be: `name` with slashes, `target` where a link points."""

    name: str
    place: str
    kind: Kind
    status: Status
    target: str = ""


class Gathered(NamedTuple):
    """Members sorted by name, and the skipped special files (devices, pipes)."""

    items: list[Item]
    special: list[str]
    archive_left_out: bool

    @property
    def size(self) -> int:
        """The bytes of all files together."""
        return sum(item.status.size for item in self.items if item.kind == "file")


def gather(
    disk: Disk,
    sources: Iterable[Source],
    archive: str,
    *,
    exclude: Iterable[str] = (),
    permit: Callable[[str], object] = lambda _: None,
    check: Callable[[int], object] = lambda _: None,
) -> Gathered:
    """Collect the members of a new archive; the archive itself is left out.

    Args:
        permit: Called with each file; raises if it must not be read.
        check: Called with the number of members so far; may raise to stop.
    """
    unwanted = Patterns(exclude)
    items: dict[str, Item] = {}
    special: list[str] = []
    left_out = False
    waiting = list(reversed(list(sources)))
    if any(source.place == archive for source in waiting):
        raise ToolError("an archive can't be packed into itself", hint="Name other sources.")
    while waiting:
        path, name = waiting.pop()
        if name and unwanted.fit(name):
            continue
        if path == archive:
            left_out = True
            continue
        status = disk.status(path)
        if status is None:
            raise ToolError(f"{path} is not there")
        if status.kind not in ("file", "folder", "link"):
            special.append(name or path)
            continue
        if status.kind == "folder":
            waiting.extend(_inside(disk, path, name))
        elif status.kind == "file":
            permit(path)
        target = disk.link_target(path) if status.kind == "link" else ""
        if name:
            _put(items, Item(name, path, status.kind, status, target))
        elif status.kind != "folder":
            raise ToolError(f"{path} has no name to be packed under")
        if len(items) % 500 == 0:
            check(len(items))
    ordered = sorted(items.values(), key=lambda item: item.name.split("/"))
    return Gathered(ordered, sorted(special), left_out)


def _inside(disk: Disk, path: str, name: str) -> list[Source]:
    try:
        entries = list(disk.scan(path))
    except PermissionError:
        raise ToolError(f"{path} can't be read", hint="Leave it out with exclude.") from None
    top = path.rstrip("/")
    return [
        Source(f"{top}/{entry.name}", f"{name}/{entry.name}" if name else entry.name)
        for entry in entries
    ]


def _put(items: dict[str, Item], item: Item) -> None:
    there = items.setdefault(item.name, item)
    if there.place != item.place and not there.kind == item.kind == "folder":
        raise ToolError(
            f"{there.place} and {item.place} would both be {item.name} in the archive",
            hint="Pack the folder above them, or make two archives.",
        )
    if len(items) > MOST_ITEMS:
        raise ToolError(
            f"there are more than {MOST_ITEMS} files", hint="Pack parts, or use exclude."
        )


def leads_out(item: Item) -> bool:
    """Whether an item is a link to somewhere outside of the archive, by its text."""
    import posixpath

    if item.kind != "link":
        return False
    end = posixpath.normpath(posixpath.join(posixpath.dirname(item.name), item.target))
    return end.startswith(("/", "../")) or end == ".."


CHUNK = 256 * 1024


class Content:
    """Reads files for an archive; `check` gets the size of each chunk and may raise to stop."""

    def __init__(self, disk: Disk, check: Callable[[int], object]) -> None:
        self._disk = disk
        self._check = check

    def of(self, item: Item) -> Iterator[bytes]:
        """The bytes of a file, exactly as many as it had when it was found."""
        left = item.status.size
        try:
            file = self._disk.open(item.place)
        except PermissionError:
            raise ToolError(
                f"{item.place} can't be read", hint="Leave it out with exclude."
            ) from None
        with file:
            while left:
                data = file.read(min(left, CHUNK))
                if not data:
                    raise ToolError(
                        f"{item.place} became shorter while it was packed", hint="Try again."
                    )
                left -= len(data)
                self._check(len(data))
                yield data


def squeezed(pieces: Iterable[bytes], way: str, level: int) -> Iterator[bytes]:
    """The same bytes compressed: `way` is `gz`, `bz2`, `xz` or `zst`, `level` is 0 to 9."""
    compressor = _compressor(way, level)
    for piece in pieces:
        if made := compressor.compress(piece):
            yield made
    yield compressor.flush()


def _compressor(way: str, level: int) -> Any:
    if way == "gz":
        import zlib

        # A gzip header without name and time: equal content gives equal archives.
        return zlib.compressobj(level, zlib.DEFLATED, 31)
    if way == "bz2":
        import bz2

        return bz2.BZ2Compressor(max(1, level))
    if way == "xz":
        import lzma

        return lzma.LZMACompressor(preset=level)
    from hermes.files.archives.compression import zstd_compressor

    # Its levels go to 19 before they need more memory than others have for unpacking.
    return zstd_compressor(1 + 2 * level)


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


class PackTotals(NamedTuple):
    """How many members were packed, from how many bytes of files, to how many of archive."""

    members: int
    bytes: int
    size: int


class CreatedArchive(NamedTuple):
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
    before: Callable[[CreatedArchive], object] = lambda _: None,
) -> PackTotals:
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
            before(CreatedArchive(size, _digest(draft)))
            draft.seek(0)
            disk.make_folder(os.path.dirname(archive))
            disk.write(archive, iter(lambda: draft.read(CHUNK), b""))
    except OSError as error:
        reason = error.strerror or str(error)
        raise ToolError(f"{archive} was not made: {reason}") from error
    total = sum(item.status.size for item in items if item.kind == "file")
    return PackTotals(len(items), total, size)


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
