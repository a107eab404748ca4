"""Decompression streams of bounded memory, and Zstandard by any installed library."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from hermes.files.archives.limits import ArchiveError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from hermes.files.archives.limits import Meter


if TYPE_CHECKING:
    Read = Callable[[int], bytes]

    class Decompressor(Protocol):
        """The part that `bz2`, `lzma` and `compression.zstd` have in common."""

        @property
        def eof(self) -> bool: ...
        @property
        def needs_input(self) -> bool: ...
        @property
        def unused_data(self) -> bytes: ...
        def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...

    class Source(Protocol):
        def read(self, size: int, /) -> bytes: ...

    Start = Callable[[], Decompressor]

CHUNK = 64 * 1024
# More than `xz -9` needs; a header may ask for gigabytes.
LZMA_MEMORY = 256 * 1024 * 1024

GZIP, BZIP2 = b"\x1f\x8b", b"BZh"
XZ, LZMA = b"\xfd7zXZ\x00", b"\x5d\x00\x00"
ZSTD = b"\x28\xb5\x2f\xfd"


class Plain:
    """Bytes as they are, counted."""

    def __init__(self, read: Read, meter: Meter) -> None:
        self._read = read
        self._meter = meter

    def read(self, size: int) -> bytes:
        data = self._read(min(size, CHUNK))
        self._meter.packed(len(data))
        self._meter.unpacked(len(data))
        return data


class Unpacking:
    """The bytes of a compressed stream, and of those that follow it with the same `magic`."""

    def __init__(
        self,
        read: Read,
        start: Start,
        meter: Meter,
        *,
        magic: bytes = b"",
        errors: tuple[type[Exception], ...] = (),
    ) -> None:
        self._read = read
        self._start = start
        self._meter = meter
        self._magic = magic
        self._errors = errors or decompression_errors()
        self._waiting = b""
        try:
            self._decompressor = start()
        except self._errors as error:
            raise corrupt(error) from error

    def read(self, size: int) -> bytes:
        """Some bytes, at most `size` and a chunk; none at the end."""
        size = min(size, CHUNK)
        while size > 0:
            if self._decompressor.eof and not self._next_stream():
                break
            data = self._waiting
            self._waiting = b""
            if self._decompressor.needs_input and not data:
                data = self._packed()
                if not data:
                    raise ArchiveError("the archive is cut short")
            try:
                made = self._decompressor.decompress(data, size)
            except self._errors as error:
                raise corrupt(error) from error
            self._meter.unpacked(len(made))
            if made:
                return made
        return b""

    def _next_stream(self) -> bool:
        """Whether another stream follows; anything else behind the end is left alone."""
        data = self._decompressor.unused_data
        while self._magic and len(data) < len(self._magic):
            more = self._packed()
            if not more:
                return False
            data += more
        if not self._magic or not data.startswith(self._magic):
            self._magic = b""
            return False
        self._decompressor = self._start()
        self._waiting = data
        return True

    def _packed(self) -> bytes:
        data = self._read(CHUNK)
        self._meter.packed(len(data))
        return data


class Deflate:
    """`zlib` with the face of the others."""

    def __init__(self, wbits: int) -> None:
        import zlib

        self._zlib = zlib.decompressobj(wbits)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int = 0) -> bytes:
        made = self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)
        # A full answer may have left more inside, even when all input was taken.
        self.needs_input = len(made) < max_length and not self._zlib.unconsumed_tail
        return made


def unpacking(head: bytes, read: Read, meter: Meter) -> Source | None:
    """The decompression stream of a file, by its magic number; None if it is not compressed."""
    for magic, start in ((GZIP, _gzip), (BZIP2, _bzip2), (XZ, _lzma), (LZMA, _lzma)):
        if head.startswith(magic):
            return Unpacking(read, start, meter, magic=magic)
    if head.startswith(ZSTD):
        return zstd_source(read, meter)
    return None


def corrupt(error: BaseException) -> ArchiveError:
    """The error for bytes that make no sense."""
    return ArchiveError(f"the archive is damaged: {error}")


def decompression_errors() -> tuple[type[Exception], ...]:
    """Exceptions of the standard decompressors for damaged bytes."""
    import lzma
    import zlib

    return (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError)


def _gzip() -> Decompressor:
    return Deflate(31)


def _bzip2() -> Decompressor:
    import bz2

    return bz2.BZ2Decompressor()


def _lzma() -> Decompressor:
    import lzma

    return lzma.LZMADecompressor(memlimit=LZMA_MEMORY)


# A header may ask for a window of gigabytes.
_WINDOW_LOG = 27


def zstd_source(read: Read, meter: Meter) -> Source:
    """The plain bytes of a Zstandard file."""
    library = _library()
    if library.__name__ == "zstandard":
        return _Zstandard(library, read, meter)
    return _like_lzma(library, read, meter)


def zstd_compressor(level: int) -> Any:
    """Something with `compress(data)` and `flush()`, as `lzma` has it."""
    library = _library()
    if library.__name__ == "zstandard":
        return library.ZstdCompressor(level=level, write_checksum=True).compressobj()
    parameter = library.CompressionParameter
    options = {parameter.compression_level: level, parameter.checksum_flag: 1}
    return library.ZstdCompressor(options=options)


def _library() -> Any:
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        try:
            return import_module(name)
        except ImportError:
            continue
    raise ArchiveError(
        "Zstandard is not available here",
        hint="Install the extra `archives`, or use another compression.",
    )


def _like_lzma(library: Any, read: Read, meter: Meter) -> Unpacking:
    options = {library.DecompressionParameter.window_log_max: _WINDOW_LOG}

    def start() -> Decompressor:
        made: Decompressor = library.ZstdDecompressor(options=options)
        return made

    return Unpacking(read, start, meter, magic=ZSTD, errors=(library.ZstdError, EOFError))


class _Zstandard:
    """The `zstandard` package: only its stream reader has bounded output."""

    def __init__(self, library: Any, read: Read, meter: Meter) -> None:
        self._meter = meter
        self._error = library.ZstdError
        decompressor = library.ZstdDecompressor(max_window_size=2**_WINDOW_LOG)
        self._reader = decompressor.stream_reader(
            _Counted(read, meter), read_size=CHUNK, read_across_frames=True
        )

    def read(self, size: int) -> bytes:
        try:
            made: bytes = self._reader.read(min(size, CHUNK))
        except self._error as error:
            raise corrupt(error) from error
        self._meter.unpacked(len(made))
        return made


class _Counted:
    def __init__(self, read: Read, meter: Meter) -> None:
        self._read = read
        self._meter = meter

    def read(self, size: int) -> bytes:
        data = self._read(size)
        self._meter.packed(len(data))
        return data
