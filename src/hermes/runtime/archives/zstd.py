"""Zstandard streams, with whichever library is installed: none comes with Python before 3.14."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from hermes.runtime.archives.streams import CHUNK, ZSTD, Unpacking, corrupt
from hermes.runtime.archives.values import ArchiveError

if TYPE_CHECKING:
    from typing import Any

    from hermes.runtime.archives.meter import Meter
    from hermes.runtime.archives.streams import Decompressor, Read, Source

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
    """The `zstandard` package: only its reader bounds what it makes at once."""

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
