"""Sources of an archive: files, folders and links to pack (links are not followed), and their
bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.text.path_patterns import Patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Literal

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
