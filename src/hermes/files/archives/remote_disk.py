"""Archives on any disk: a local copy to read, and the extracted tree uploaded to its target.

On the local disk nothing is copied. Elsewhere an archive is extracted locally first, by the same
rules, and the tree is uploaded file by file; on failure the uploaded files are removed again.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from hermes.files.archives.extraction import extract_archive
from hermes.files.archives.limits import ArchiveError, Extracted, PlacedPath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from hermes.environments.disk.protocol import Disk
    from hermes.files.archives.limits import Existing

_CHUNK = 1 << 20


@contextmanager
def at_hand(disk: Disk, real_path: str, check: Callable[[], object]) -> Iterator[str]:
    """A local path of an archive: its own, or that of a temporary copy."""
    if disk.label == "local":
        yield real_path
        return
    with tempfile.TemporaryDirectory(prefix="hermes-archive-") as folder:
        copy = os.path.join(folder, os.path.basename(real_path))
        with disk.open(real_path) as far, open(copy, "wb") as near:
            for chunk in _chunks(far, check):
                near.write(chunk)
        yield copy


def extract_to(
    disk: Disk,
    archive: str,
    target: str,
    *,
    choose: Callable[[str], bool],
    existing: Existing,
    before: Callable[[list[PlacedPath]], object],
    watch: Callable[[int], object],
    check: Callable[[], object],
) -> Extracted:
    """Extract a local archive into a folder of a disk; see `extract_archive`."""
    if disk.label == "local":
        return extract_archive(
            archive, target, choose=choose, existing=existing, before=before, watch=watch
        )
    with tempfile.TemporaryDirectory(prefix="hermes-archive-") as folder:
        root = os.path.join(folder, "unpacked")
        made = extract_archive(archive, root, choose=choose, watch=watch)
        carried = _Carried(disk, root, target, existing, os.path.join(folder, "old"))
        carried.plan()
        before([PlacedPath(step.place, step.source) for step in carried.steps])
        carried.carry_out(check)
    left = set(carried.skipped)
    return Extracted(
        target,
        [path for path in made.paths if path not in left],
        made.bytes - carried.skipped_bytes,
        skipped=carried.skipped,
        replaced=carried.replaced,
    )


class _Step(NamedTuple):
    """One path to create on the disk, from a local source; without a source, a folder."""

    place: str
    source: str
    replaces: bool


class _Carried:
    """Upload of a local tree into a folder of another disk."""

    def __init__(self, disk: Disk, root: str, target: str, existing: Existing, aside: str) -> None:
        self.steps: list[_Step] = []
        self.skipped: list[str] = []
        self.skipped_bytes = 0
        self.replaced: list[str] = []
        self._disk = disk
        self._root = root
        self._target = target
        self._existing = existing
        self._aside = aside

    def plan(self) -> None:
        """Plan all steps; raises when an existing file is in the way."""
        missing = []
        above = self._target
        while (status := self._disk.status(above)) is None:
            missing.append(above)
            above = os.path.dirname(above)
        if status.kind != "folder":
            raise ArchiveError(f"{above!r} is there already, and is no folder")
        self.steps = [_Step(folder, "", False) for folder in reversed(missing)]
        self._plan_below("", new=bool(missing))

    def _plan_below(self, path: str, *, new: bool) -> None:
        with os.scandir(os.path.join(self._root, path)) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
        for entry in entries:
            below = f"{path}/{entry.name}" if path else entry.name
            real_path = f"{self._target.rstrip('/')}/{below}"
            there = None if new else self._disk.status(real_path)
            folder = entry.is_dir(follow_symlinks=False)
            if folder:
                if there is None:
                    self.steps.append(_Step(real_path, entry.path, False))
                if there is None or there.kind == "folder":
                    self._plan_below(below, new=there is None)
                    continue
            if there is None:
                self.steps.append(_Step(real_path, entry.path, False))
            elif folder or there.kind == "folder" or self._existing == "refuse":
                raise ArchiveError(
                    f"{real_path!r} is there already, and nothing is overwritten",
                    hint="Unpack into an empty folder.",
                )
            elif self._existing == "skip":
                self.skipped.append(below)
                if entry.is_file(follow_symlinks=False):
                    self.skipped_bytes += entry.stat(follow_symlinks=False).st_size
            else:
                self.replaced.append(below)
                self.steps.append(_Step(real_path, entry.path, True))

    def carry_out(self, check: Callable[[], object]) -> None:
        """Run all steps, or roll back and raise."""
        done: list[tuple[str, str]] = []
        try:
            for number, step in enumerate(self.steps):
                check()
                kept = self._put_aside(step.place, number, check) if step.replaces else ""
                done.append((step.place, kept))
                self._make(step.source, step.place, check)
        except BaseException:
            for real_path, kept in reversed(done):
                with suppress(OSError):
                    self._disk.remove(real_path)
                if kept:
                    with suppress(OSError):
                        self._make(kept, real_path, lambda: None)
            raise

    def _put_aside(self, real_path: str, number: int, check: Callable[[], object]) -> str:
        os.makedirs(self._aside, exist_ok=True)
        kept = os.path.join(self._aside, str(number))
        status = self._disk.status(real_path)
        if status is not None and status.kind == "link":
            os.symlink(self._disk.link_target(real_path), kept)
        else:
            with self._disk.open(real_path) as far, open(kept, "wb") as near:
                for chunk in _chunks(far, check):
                    near.write(chunk)
            if status is not None:
                os.chmod(kept, status.mode)
        self._disk.remove(real_path)
        return kept

    def _make(self, source: str, real_path: str, check: Callable[[], object]) -> None:
        if not source:
            self._disk.make_folder(real_path)
            return
        mode = os.lstat(source).st_mode
        if stat.S_ISLNK(mode):
            self._disk.make_link(real_path, os.readlink(source))
        elif stat.S_ISDIR(mode):
            self._disk.make_folder(real_path)
        else:
            with open(source, "rb") as near:
                self._disk.write(real_path, _chunks(near, check), mode=stat.S_IMODE(mode))


def _chunks(file: BinaryIO, check: Callable[[], object]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        check()
        yield chunk
