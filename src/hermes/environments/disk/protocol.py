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
    """The disk could not do it: full, read-only, not permitted, swapped meanwhile."""


class Status(NamedTuple):
    """What is known of a file without opening it; a link is described, not followed."""

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
        """The same, from what the system says."""
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
    """One name in a folder, and what it is."""

    name: str
    kind: Kind


def kind_of(mode: int) -> Kind:
    """The word for what a mode describes."""
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
    """Files as bytes, by place. Failures are `OSError` of the usual kinds, or `DiskError`."""

    label: str

    def status(self, place: str) -> Status | None:
        """What is there; None when nothing is."""
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
        """Make a folder and what is missing above it; those that were made, outermost first."""
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
        """What a folder holds, in no order."""
        ...
