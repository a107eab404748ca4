"""`SharedFolderDisk`: a remote disk with one directory that is mounted from this machine and
accessed locally.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.paths import is_below
from hermes.environments.disk.local_disk import LocalDisk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from hermes.environments.disk.protocol import Disk, Entry, Status
    from hermes.environments.disk.shell_disk import ShellDisk


class SharedFolderDisk:
    """`inside` for everything but `shared`, which is `outside` on this machine.

    Only for folders that were proven to be the same; neither side follows a link out of it.
    """

    def __init__(self, shared: str, outside: str, inside: ShellDisk) -> None:
        self.label = inside.label
        self._shared = shared
        self._outside = outside
        self._inside = inside
        self._local = LocalDisk()

    def status(self, place: str) -> Status | None:
        """The status of a path; None if there is nothing."""
        disk, there = self._at(place)
        return disk.status(there)

    def open(self, place: str) -> BinaryIO:
        """A file for reading, positioned at its start."""
        disk, there = self._at(place)
        return disk.open(there)

    def read(self, place: str) -> bytes:
        """A whole file."""
        disk, there = self._at(place)
        return disk.read(there)

    def write(self, place: str, data: bytes | Iterable[bytes], *, mode: int | None = None) -> None:
        """Replace or make a file as a whole."""
        disk, there = self._at(place)
        disk.write(there, data, mode=mode)

    def make_folder(self, place: str) -> list[str]:
        """Make a folder and its missing parents; the made ones, outermost first."""
        disk, there = self._at(place)
        made = disk.make_folder(there)
        if disk is self._inside:
            return made
        return [f"{self._shared}{one[len(self._outside) :]}" for one in made]

    def make_link(self, place: str, target: str) -> None:
        """Make a symbolic link."""
        disk, there = self._at(place)
        disk.make_link(there, target)

    def link_target(self, place: str) -> str:
        """Where a symbolic link points."""
        disk, there = self._at(place)
        return disk.link_target(there)

    def set_mode(self, place: str, mode: int) -> None:
        """Change the permission bits of a file or folder."""
        disk, there = self._at(place)
        disk.set_mode(there, mode)

    def remove(self, place: str) -> None:
        """Remove a file or link, or an empty folder."""
        disk, there = self._at(place)
        disk.remove(there)

    def run(self, place: str, script: str) -> tuple[int, bytes, bytes]:
        """Run a script inside, in the parent folder of a path: exit code, output, errors."""
        return self._inside.run(place, script)

    def scan(self, place: str) -> Iterator[Entry]:
        """The entries of a folder, in no order."""
        disk, there = self._at(place)
        return disk.scan(there)

    def _at(self, place: str) -> tuple[Disk, str]:
        if is_below(place, self._shared):
            return self._local, f"{self._outside}{place[len(self._shared) :]}"
        return self._inside, place
