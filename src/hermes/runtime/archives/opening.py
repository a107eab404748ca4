"""An archive file, opened: which format it is, by its content."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes.runtime.archives.values import ArchiveError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from hermes.runtime.archives.meter import Meter
    from hermes.runtime.archives.values import Member

_HEAD = 512
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """A regular file for reading; anything else is refused without waiting for it."""
    try:
        regular = stat.S_ISREG(os.stat(path).st_mode)
        if regular:
            flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
            handle = os.open(path, flags)
            regular = stat.S_ISREG(os.fstat(handle).st_mode)
    except (OSError, ValueError) as error:
        raise ArchiveError(f"{path!r} can't be opened: {_reason(error)}") from error
    if not regular:
        raise ArchiveError(f"{path!r} is not a regular file")
    with os.fdopen(handle, "rb") as file:
        yield file


def members(file: BinaryIO, meter: Meter) -> Iterator[tuple[Member, Iterator[bytes]]]:
    """Each member of an archive and its bytes, in order."""
    from zipfile import is_zipfile

    from hermes.runtime.archives.seven_zip import MAGIC, seven_zip_members
    from hermes.runtime.archives.streams import Plain, unpacking
    from hermes.runtime.archives.tar import looks_like_tar, tar_members
    from hermes.runtime.archives.zip import zip_members

    head = file.read(_HEAD)
    file.seek(0)
    if head.startswith(_ZIP):
        return zip_members(file, meter)
    if head.startswith(MAGIC):
        return seven_zip_members(file, meter)
    if looks_like_tar(head):
        return tar_members(Plain(file.read, meter), meter)
    unpacked = unpacking(head, file.read, meter)
    if unpacked is not None:
        return tar_members(unpacked, meter)
    # A zip may have anything in front, such as the program that unpacks it.
    if is_zipfile(file):
        return zip_members(file, meter)
    raise ArchiveError(
        "the file is no archive of a known format",
        hint="Zip, 7z and tar are known, and tar with gzip, bzip2, xz or Zstandard.",
    )


def _reason(error: OSError | ValueError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
