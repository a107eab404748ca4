"""From a stretch of a 7z file to its plain bytes, through one coder after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.files.archives.compression import BZIP2, CHUNK, LZMA_MEMORY, Deflate, Unpacking
from hermes.files.archives.limits import ArchiveError
from hermes.files.archives.seven_zip_reader.fields import damaged

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hermes.files.archives.compression import Decompressor, Read
    from hermes.files.archives.limits import Meter
    from hermes.files.archives.seven_zip_reader.streams import Coder, Folder

_COPY, _LZMA, _LZMA2, _DELTA = b"\x00", b"\x03\x01\x01", b"\x21", b"\x03"
_DEFLATE, _BZIP2, _ZSTD = b"\x04\x01\x08", b"\x04\x02\x02", b"\x04\xf7\x11\x01"
_PPMD, _AES = b"\x03\x04\x01", b"\x06\xf1\x07\x01"
# What undoes the changes that were made to programs: the names `lzma` has for it.
_BRANCHES = {
    b"\x03\x03\x01\x03": "FILTER_X86",
    b"\x04": "FILTER_X86",
    b"\x03\x03\x02\x05": "FILTER_POWERPC",
    b"\x05": "FILTER_POWERPC",
    b"\x03\x03\x04\x01": "FILTER_IA64",
    b"\x06": "FILTER_IA64",
    b"\x03\x03\x05\x01": "FILTER_ARM",
    b"\x07": "FILTER_ARM",
    b"\x03\x03\x07\x01": "FILTER_ARMTHUMB",
    b"\x08": "FILTER_ARMTHUMB",
    b"\x03\x03\x08\x05": "FILTER_SPARC",
    b"\x09": "FILTER_SPARC",
}
_LITTLE = 4096


class _Quiet:
    """Stands for the meter between coders: only what goes in first and comes out last counts."""

    def packed(self, size: int) -> None:
        """Not counted."""

    def unpacked(self, size: int) -> None:
        """Not counted."""


class Plain:
    """The plain bytes of a folder, in order."""

    def __init__(self, read: Read, folder: Folder, meter: Meter) -> None:
        self._meter = meter
        self._left = folder.size

        def counted(size: int) -> bytes:
            data = read(size)
            meter.packed(len(data))
            return data

        taken: Read = counted
        for coder in folder.coders:
            if coder.size > meter.limits.max_bytes:
                raise ArchiveError(f"the archive holds more than {meter.limits.max_bytes} bytes")
            taken = _bounded(_decoded(coder, taken), coder.size)
        self._read = taken

    def read(self, size: int) -> bytes:
        """Some bytes, at most `size`; fewer than there should be are damage."""
        if not self._left or not size:
            return b""
        data = self._read(min(size, CHUNK))
        if not data:
            raise ArchiveError("the archive is cut short")
        self._meter.unpacked(len(data))
        self._left -= len(data)
        return data


def _decoded(coder: Coder, read: Read) -> Read:
    """The output of one coder whose input is read from another."""
    method = coder.method
    if method == _COPY:
        return read
    if method == _AES:
        raise ArchiveError("the archive is encrypted", hint="Ask for one without a password.")
    if method in (_LZMA, _LZMA2):
        return _unpacking(read, _raw_lzma(coder))
    if method == _DEFLATE:
        return _unpacking(read, lambda: Deflate(-15))
    if method == _BZIP2:
        import bz2

        return _unpacking(read, bz2.BZ2Decompressor, magic=BZIP2)
    if method == _ZSTD:
        from hermes.files.archives.compression import zstd_source

        return zstd_source(read, _Quiet()).read  # type: ignore[arg-type]
    if method == _PPMD:
        # The library there is for it can be made to crash by what it unpacks.
        raise ArchiveError("the archive is packed with PPMd, which is not unpacked here")
    if method == _DELTA or method in _BRANCHES:
        return _filtered(coder, read)
    raise ArchiveError(f"the archive is packed in a way that is not known here ({method.hex()})")


def _unpacking(read: Read, start: Callable[[], Decompressor], magic: bytes = b"") -> Read:
    return Unpacking(read, start, _Quiet(), magic=magic).read  # type: ignore[arg-type]


def _bounded(read: Read, left: int) -> Read:
    def bounded(size: int) -> bytes:
        nonlocal left
        data = read(min(size, left)) if left else b""
        left -= len(data)
        return data

    return bounded


def _raw_lzma(coder: Coder) -> Callable[[], Decompressor]:
    import lzma

    given = coder.properties
    if coder.method == _LZMA2:
        if len(given) != 1 or given[0] > 40:
            raise damaged("a coder has properties that make no sense")
        window = (2 | given[0] & 1) << (given[0] // 2 + 11)
        chain: dict[str, Any] = {"id": lzma.FILTER_LZMA2}
    else:
        if len(given) != 5 or given[0] >= 9 * 5 * 5:
            raise damaged("a coder has properties that make no sense")
        window = int.from_bytes(given[1:], "little")
        rest, context = divmod(given[0], 9)
        chain = {"id": lzma.FILTER_LZMA1, "lc": context, "lp": rest % 5, "pb": rest // 5}
        if chain["lc"] + chain["lp"] > 4:
            raise ArchiveError("the archive is packed with settings that are not known here")
    # No more is needed than there is to unpack.
    chain["dict_size"] = max(_LITTLE, min(window, coder.size))
    if chain["dict_size"] > LZMA_MEMORY:
        raise ArchiveError(f"the archive takes {window} bytes of memory to unpack")
    return lambda: lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[chain])


def _filtered(coder: Coder, read: Read) -> Read:
    """What undoes a filter, which `lzma` only knows behind a compression: so one is put there."""
    import lzma

    if coder.method == _DELTA:
        step: dict[str, Any] = {"id": lzma.FILTER_DELTA, "dist": (coder.properties or b"\0")[0] + 1}
    else:
        step = {"id": getattr(lzma, _BRANCHES[coder.method])}
    chain = [step, {"id": lzma.FILTER_LZMA2, "dict_size": _LITTLE}]
    stored = _stored(read)
    return _unpacking(stored, lambda: lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=chain))


def _stored(read: Read) -> Read:
    """Bytes as LZMA2 that compresses nothing: pieces with their length, then a zero."""
    first = True
    ended = False

    def stored(_: int) -> bytes:
        nonlocal first, ended
        if ended:
            return b""
        data = read(CHUNK)
        if not data:
            ended = True
            return b"\0"
        head = b"\x01" if first else b"\x02"
        first = False
        return head + (len(data) - 1).to_bytes(2, "big") + data

    return stored
