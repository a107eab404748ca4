"""Extract, list and check archives: into a staging folder, then to the target, all or nothing."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from hermes.files.archives.limits import (
    ArchiveError,
    ArchiveLimits,
    Extracted,
    Member,
    Meter,
    PlacedPath,
    Tree,
    refusal,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from hermes.files.archives.limits import Existing


class Draft:
    """The private staging folder, and the existing files that it met; paths below the target."""

    __slots__ = ("folder", "replaced", "skipped", "skipped_bytes")

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.skipped: list[str] = []
        self.skipped_bytes = 0
        self.replaced: list[str] = []


class Move(NamedTuple):
    """A part of the draft, where it goes, and whether it takes the place of something."""

    source: str
    place: str
    replaces: bool


@contextmanager
def staging(
    target: str,
    existing: Existing = "refuse",
    before: Callable[[list[PlacedPath]], object] | None = None,
) -> Iterator[Draft]:
    """A private folder near the target, which ends as the target or leaves nothing behind."""
    missing = _missing(os.path.dirname(target))
    near = os.path.dirname(missing[0]) if missing else _near(os.path.dirname(target), target)
    name = os.path.join(near, f".{os.urandom(12).hex()}.unpacking")
    draft = Draft(name)
    # Whatever is replaced waits here until everything is in its place.
    aside = f"{name}.old"
    done: list[tuple[str, str]] = []
    try:
        os.mkdir(name, 0o700)
        yield draft
        moves = list(_moves(draft, target, "", existing))
        if before is not None:
            above = [PlacedPath(folder, "") for folder in missing]
            before([*above, *(placed for move in moves for placed in _all(move, name, target))])
        for folder in missing:
            done.append(("", folder))
            os.mkdir(folder)
        if draft.replaced:
            os.mkdir(aside, 0o700)
        _move(moves, aside, done)
    except BaseException:
        _undo(done)
        _remove(name)
        _remove(aside)
        raise
    _remove(name)
    _remove(aside)


def usual_mode(draft: str) -> int:
    """The permissions that a new folder gets here, all that the umask leaves."""
    # To ask for the umask is to set it, for every thread.
    probe = os.path.join(draft, ".mode")
    os.mkdir(probe, 0o777)
    mode = stat.S_IMODE(os.stat(probe).st_mode) & 0o777
    os.rmdir(probe)
    return mode


def _missing(folder: str) -> list[str]:
    """The folders that have to be made, outermost first."""
    missing = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    missing.reverse()
    return missing


def _near(parent: str, target: str) -> str:
    """Where a folder can be renamed to the target, or its entries into it."""
    if not os.path.lexists(target):
        return parent
    if not os.path.isdir(target):
        raise ArchiveError(f"the target {target!r} is there already, and is no folder")
    apart = os.stat(parent).st_dev != os.stat(target).st_dev or os.path.ismount(target)
    return target if apart or not os.access(parent, os.W_OK | os.X_OK) else parent


def _moves(draft: Draft, target: str, path: str, existing: Existing) -> Iterator[Move]:
    """Which part of the draft goes where; folders may meet folders, nothing else meets a folder."""
    if not os.path.lexists(target):
        yield Move(os.path.join(draft.folder, path), target, False)
        return
    with os.scandir(os.path.join(draft.folder, path)) as scanned:
        entries = sorted(scanned, key=lambda entry: entry.name)
    for entry in entries:
        below = f"{path}/{entry.name}" if path else entry.name
        real_path = os.path.join(target, entry.name)
        kind = _kind(real_path)
        folder = entry.is_dir(follow_symlinks=False)
        if folder and kind == "folder":
            yield from _moves(draft, real_path, below, existing)
        elif kind == "nothing":
            yield Move(entry.path, real_path, False)
        elif folder or kind == "folder" or existing == "refuse":
            raise ArchiveError(
                f"{real_path!r} is there already, and nothing is overwritten",
                hint="Unpack into an empty folder.",
            )
        elif existing == "skip":
            draft.skipped.append(below)
            if entry.is_file(follow_symlinks=False):
                draft.skipped_bytes += entry.stat(follow_symlinks=False).st_size
        else:
            draft.replaced.append(below)
            yield Move(entry.path, real_path, True)


def _move(moves: list[Move], aside: str, done: list[tuple[str, str]]) -> None:
    """Rename everything; a step is noted first: an interruption may come before the next line."""
    for number, (source, real_path, replaces) in enumerate(moves):
        kind = _kind(real_path)
        if kind == "folder" or (kind != "nothing" and not replaces):
            raise ArchiveError(f"{real_path!r} has appeared meanwhile, and nothing is overwritten")
        if kind != "nothing":
            kept = os.path.join(aside, str(number))
            done.append((real_path, kept))
            os.rename(real_path, kept)
        done.append((source, real_path))
        os.rename(source, real_path)


def _undo(done: list[tuple[str, str]]) -> None:
    """Take every step back that was made, last first; a source of `""` is a folder made."""
    for source, real_path in reversed(done):
        if not source:
            with suppress(OSError):
                os.rmdir(real_path)
        elif not os.path.lexists(source) and os.path.lexists(real_path):
            with suppress(OSError):
                os.rename(real_path, source)


def _all(move: Move, draft: str, target: str) -> Iterator[PlacedPath]:
    """Every path that a move creates, with its source."""
    yield PlacedPath(move.place, move.source)
    if os.path.isdir(move.source) and not os.path.islink(move.source):
        for above, folders, files in os.walk(move.source):
            below = os.path.normpath(os.path.join(target, os.path.relpath(above, draft)))
            for name in (*folders, *files):
                yield PlacedPath(os.path.join(below, name), os.path.join(above, name))


def _kind(real_path: str) -> str:
    try:
        # A link to a folder is not one: it may lead out of the target.
        return "folder" if stat.S_ISDIR(os.lstat(real_path).st_mode) else "file"
    except FileNotFoundError:
        return "nothing"


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(path)


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
    before: Callable[[list[PlacedPath]], object] | None = None,
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
