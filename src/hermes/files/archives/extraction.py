"""`extract_archive`, `list_archive`, `check_archive`: the format is detected by content."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes.files.archives.limits import ArchiveError, ArchiveLimits, Extracted, Member, Meter
from hermes.files.archives.member_tree import Tree, refusal
from hermes.files.archives.placement import staging, usual_mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from hermes.files.archives.limits import Existing, Placed


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
    """The members of an archive with their bytes, in order."""
    from zipfile import is_zipfile

    from hermes.files.archives.compression import Plain, unpacking
    from hermes.files.archives.seven_zip import MAGIC, seven_zip_members
    from hermes.files.archives.tar import looks_like_tar, tar_members
    from hermes.files.archives.zip import zip_members

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


# Times further away are mistakes, and not every file system can hold them.
_OLDEST, _NEWEST = -(2**31), 2**33


def extract_archive(
    archive: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    limits: ArchiveLimits | None = None,
    choose: Callable[[str], bool] | None = None,
    existing: Existing = "refuse",
    before: Callable[[list[Placed]], object] | None = None,
    watch: Callable[[int], object] | None = None,
) -> Extracted:
    """Extract an archive into a folder, which is created if needed; or raise and change nothing.

    Links inside the target are kept, set-user-id and similar bits are dropped, and existing files
    are not overwritten unless `existing` allows it.

    Args:
        choose: Filter of members by path; the names of all members are checked.
        existing: For a file that exists: `refuse` the archive, `skip` or `replace` the file.
        before: Called with all files to create or replace, before any of it; may raise.
        watch: Called with the number of archive bytes read so far; may raise to stop.

    Raises:
        ArchiveError: The archive can't be read, is too large, or has a forbidden member.
    """
    path = os.fsdecode(archive)
    meter = Meter(limits or ArchiveLimits(), watch)
    try:
        real_path = os.path.realpath(os.fsdecode(target))
        with opened(path) as file, staging(real_path, existing, before) as draft:
            unpacking = _Unpacking(draft.folder, real_path, meter, choose)
            for member, chunks in members(file, meter):
                unpacking.add(member, chunks)
            unpacking.finish()
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise ArchiveError(f"{path!r} could not be unpacked: {reason}") from error
    left = set(draft.skipped)
    paths = [one for one in unpacking.paths if one not in left] if left else unpacking.paths
    return Extracted(
        real_path,
        paths,
        unpacking.size - draft.skipped_bytes,
        skipped=draft.skipped,
        replaced=draft.replaced,
    )


def list_archive(
    archive: str | os.PathLike[str],
    *,
    limits: ArchiveLimits | None = None,
    watch: Callable[[int], object] | None = None,
) -> list[Member]:
    """The members of an archive in its order; names and links are not checked.

    Raises:
        ArchiveError: The archive can't be read or is too large.
    """
    return [member for member, _ in _read(archive, limits, watch)]


def check_archive(
    archive: str | os.PathLike[str],
    *,
    limits: ArchiveLimits | None = None,
    watch: Callable[[int], object] | None = None,
) -> list[Member]:
    """The members of an archive after a full test: it would extract into an empty folder.

    Raises:
        ArchiveError: It would not.
    """
    judged = Tree(limits or ArchiveLimits())
    checked = []
    for member, chunks in _read(archive, limits, watch):
        if member.kind == "other":
            raise refusal(member.path, "is a device or a pipe")
        if member.kind == "hardlink":
            judged.hardlink(member)
        judged.add(member)
        for _ in chunks:
            pass
        checked.append(member)
    judged.check_links(None)
    return checked


def _read(
    archive: str | os.PathLike[str],
    limits: ArchiveLimits | None,
    watch: Callable[[int], object] | None,
) -> Iterator[tuple[Member, Iterator[bytes]]]:
    path = os.fsdecode(archive)
    meter = Meter(limits or ArchiveLimits(), watch)
    try:
        with opened(path) as file:
            yield from members(file, meter)
    except (OSError, ValueError) as error:
        raise ArchiveError(f"{path!r} could not be read: {error}") from error


class _Unpacking:
    """Extraction of members into a private staging folder."""

    def __init__(
        self, draft: str, target: str, meter: Meter, choose: Callable[[str], bool] | None
    ) -> None:
        self._draft = draft
        self._target = target
        self._choose = choose
        self._tree = Tree(meter.limits)
        self._allowed = usual_mode(draft)
        self._made = {draft}
        self._folders: dict[str, Member] = {}
        self._link_times: dict[str, float | None] = {}
        self._left: set[str] = set()
        self.paths: list[str] = []
        self.size = 0

    def add(self, member: Member, chunks: Iterator[bytes]) -> None:
        # Asked first: a link to itself is a link to nothing.
        original = self._tree.hardlink(member) if member.kind == "hardlink" else ""
        path = self._tree.add(member)
        if self._choose is not None and not self._choose(path):
            self._left.add(path)
            return
        if member.kind == "other":
            raise refusal(member.path, "is a device or a pipe")
        if original in self._left:
            raise refusal(member.path, f"is a hard link to {original!a}, which was not chosen")
        if member.kind == "folder":
            self._make(self._place(path))
            self._folders[path] = member
            return
        self.paths.append(path)
        self._make(os.path.dirname(self._place(path)))
        if member.kind == "file":
            self._write(self._place(path), member, chunks)
        elif member.kind == "hardlink":
            os.link(self._place(original), self._place(path))
        else:
            # Made last, so that nothing is ever written through one.
            self._link_times[path] = member.mtime

    def finish(self) -> None:
        """Make the links, then give folders the modes and times that writing has changed."""
        self._tree.check_links(self._target, self._left)
        for node in self._tree.links():
            if node.path in self._left:
                continue
            real_path = self._place(node.path)
            # Windows alone has two kinds of links.
            folder = os.name == "nt" and os.path.isdir(
                os.path.join(real_path, os.pardir, node.link)
            )
            os.symlink(node.link, real_path, target_is_directory=folder)
            _set_time(real_path, self._link_times[node.path])
        for path in reversed(self._tree.folders()):
            if not os.path.isdir(self._place(path)):
                # Not chosen, nor anything in it.
                continue
            member = self._folders.get(path)
            # The owner keeps the right to change and remove what was unpacked.
            mode = 0o777 if member is None else member.mode
            os.chmod(self._place(path), mode & self._allowed | 0o700)
            _set_time(self._place(path), None if member is None else member.mtime)
        os.chmod(self._draft, self._allowed)

    def _make(self, folder: str) -> None:
        if folder not in self._made:
            os.makedirs(folder, 0o700, exist_ok=True)
            self._made.add(folder)

    def _write(self, real_path: str, member: Member, chunks: Iterator[bytes]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(real_path, flags, 0o600), "wb") as file:
            for data in chunks:
                file.write(data)
                self.size += len(data)
        os.chmod(real_path, member.mode & self._allowed | 0o400)
        _set_time(real_path, member.mtime)

    def _place(self, path: str) -> str:
        return os.path.join(self._draft, path)


def _set_time(real_path: str, mtime: float | None) -> None:
    if mtime is not None and _OLDEST <= mtime <= _NEWEST:
        follow = os.utime not in os.supports_follow_symlinks
        when = round(mtime * 1_000_000_000)
        if not (follow and os.path.islink(real_path)):
            os.utime(real_path, ns=(when, when), follow_symlinks=follow)
