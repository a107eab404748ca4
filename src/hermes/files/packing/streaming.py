"""The bytes of what is packed, and how they are squeezed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from hermes.files.packing.gathering import Item
    from hermes.runtime.disk import Disk

CHUNK = 256 * 1024


class Content:
    """Reads files for an archive; `check` is told of every piece, and may raise to stop."""

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
    from hermes.runtime.archives.zstd import zstd_compressor

    # Its levels go to 19 before they need more memory than others have for unpacking.
    return zstd_compressor(1 + 2 * level)
