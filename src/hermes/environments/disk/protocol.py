"""`Disk` protocol: files as bytes by path, on this machine or behind a shell; `Status`, `Entry`,
`DiskError`.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, NamedTuple, Protocol

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO, Literal

    Kind = Literal["file", "folder", "link", "device", "pipe", "socket"]


class DiskError(ToolError):
    """A disk operation failed: full, read-only, not permitted, a link in the way."""


class Status(NamedTuple):
    """Metadata of a file; a link is not followed."""

    kind: Kind
    size: int
    mode: int  # the permission bits alone
    mtime_ns: int
    inode: int
    device: int
    links: int
    uid: int
    gid: int

    @classmethod
    def of(cls, found: os.stat_result) -> Status:
        """From the result of `os.stat`."""
        return cls(
            kind_of(found.st_mode),
            found.st_size,
            stat.S_IMODE(found.st_mode),
            found.st_mtime_ns,
            found.st_ino,
            found.st_dev,
            found.st_nlink,
            found.st_uid,
            found.st_gid,
        )


class Entry(NamedTuple):
    """A name in a folder, and its kind."""

    name: str
    kind: Kind


def kind_of(mode: int) -> Kind:
    """The kind of file of a mode."""
    for test, word in _KINDS:
        if test(mode):
            return word
    return "device"


_KINDS: tuple[tuple[Callable[[int], bool], Kind], ...] = (
    (stat.S_ISREG, "file"),
    (stat.S_ISDIR, "folder"),
    (stat.S_ISLNK, "link"),
    (stat.S_ISFIFO, "pipe"),
    (stat.S_ISSOCK, "socket"),
)


class Disk(Protocol):
    """Files as bytes, by path. Failures are `OSError` of the usual kinds, or `DiskError`."""

    label: str

    def status(self, place: str) -> Status | None:
        """The status of a path; None if there is nothing."""
        ...

    def open(self, place: str) -> BinaryIO:
        """A file for reading, positioned at its start; only plain files are opened."""
        ...

    def read(self, place: str) -> bytes:
        """A whole file."""
        ...

    def write(self, place: str, data: bytes | Iterable[bytes], *, mode: int | None = None) -> None:
        """Replace or make a file as a whole, durably: old bytes or new ones, never a mixture.

        Mode and owner of a file that is replaced stay unless `mode` is given.
        """
        ...

    def make_folder(self, place: str) -> list[str]:
        """Make a folder and its missing parents; the made ones, outermost first."""
        ...

    def make_link(self, place: str, target: str) -> None:
        """Make a symbolic link."""
        ...

    def link_target(self, place: str) -> str:
        """Where a symbolic link points."""
        ...

    def set_mode(self, place: str, mode: int) -> None:
        """Change the permission bits of a file or folder."""
        ...

    def remove(self, place: str) -> None:
        """Remove a file or link, or an empty folder."""
        ...

    def scan(self, place: str) -> Iterator[Entry]:
        """The entries of a folder, in no order."""
        ...
