"""Memory file on disk: lock, atomic exchange, earlier versions with author and time.

Editors do not take our lock. So a new version does not overwrite the file: both are exchanged in
one system call (`renameat2`), and the old file is compared with the bytes read before. If it
differs, the exchange is reverted and the change starts over. An editor that opened the file before
the exchange still writes into the old one; `Versions.written_late` finds that text.

    versions/MEMORY.md/000012.md    the file before change 12, byte for byte
    versions/MEMORY.md/latest       the file after our last change
    versions/MEMORY.md/log.jsonl    a line for each change: time, author, entries added and removed
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import msgspec

from hermes.core.errors import ToolError
from hermes.core.paths import locked, make_private, write_private

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Long: several processes may queue for the lock on a busy machine.
_LOCK_SECONDS = 60.0
# How long a file that an editor has just truncated may stay empty before it counts as emptied.
_TRUNCATED_SECONDS = 2.0
# How long after an exchange an editor's write into the old file is still looked for.
_LATE_SECONDS = 120.0
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
# Versions kept; the oldest are deleted first.
MAX_VERSIONS = 2_000
_PRUNE_EVERY = 100
# Log line that acknowledges a late write: the new digest of a version that is logged already.
_LATE = "late"


@contextmanager
def folder_lock(folder: str) -> Iterator[None]:
    """Exclusive lock on the memory files of a folder, across processes and threads."""
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(os.path.join(folder, ".lock"), timeout=_LOCK_SECONDS))
        except TimeoutError:
            raise ToolError(
                f"the memory was locked by another process for {_LOCK_SECONDS:g} s",
                hint="Try again later.",
            ) from None
        yield


def read(path: str) -> bytes | None:
    """The bytes of a file; None when it does not exist."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def read_settled(path: str, *, last: bytes) -> bytes | None:
    """The bytes of a file; waits for an editor that has truncated it and not written yet.

    No wait when our own last version (`last`) is empty as well.
    """
    deadline = time.monotonic() + _TRUNCATED_SECONDS
    while not (data := read(path)) and last and time.monotonic() < deadline:
        try:
            if time.time() - os.stat(path).st_mtime > _TRUNCATED_SECONDS:
                return data
        except FileNotFoundError:
            return data
        time.sleep(0.002)
    return data


def exchange(draft: str, path: str, expected: bytes | None) -> bool:
    """Exchange a draft and a file that holds the expected bytes (None: does not exist).

    False when the file holds other bytes; then it keeps them.
    """
    if expected is None:
        return _create(draft, path)
    if not _rename_exchange(draft, path):
        # Without the system call a small race between comparing and replacing remains.
        if read(path) != expected:
            return False
        with open(draft, "rb") as file:
            write_private(path, file.read())
        write_private(draft, expected)
        return True
    if read(draft) == expected:
        return True
    _rename_exchange(draft, path)
    return False


def _create(draft: str, path: str) -> bool:
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            return False
        os.replace(draft, path)
        return True
    os.unlink(draft)
    return True


def _rename_exchange(first: str, second: str) -> bool:
    """Exchange two files atomically; False where the system or the file system can't."""
    import ctypes

    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    status: int = renameat2(
        _AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE
    )
    return status == 0


class Version(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change; `number` names the file before it, and `digest` is that file's."""

    number: int
    at: float
    action: str
    by: str = ""
    added: tuple[str, ...] = msgspec.field(default=(), name="came")
    removed: tuple[str, ...] = msgspec.field(default=(), name="went")
    digest: str = ""


_decode = msgspec.json.Decoder(Version).decode


class Versions:
    """Earlier versions of one file, and the log of its changes."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._log = os.path.join(folder, "log.jsonl")
        self._latest = os.path.join(folder, "latest")
        # Version number -> modification time and size at which its digest was right.
        self._verified: dict[int, tuple[int, int]] = {}

    def path(self, number: int) -> str:
        """Path of a version."""
        return os.path.join(self.folder, f"{number:06}.md")

    def draft(self, data: bytes) -> int:
        """Write a new file where the version before it will be kept; its number."""
        number = max(self._numbers(), default=0) + 1
        write_private(self.path(number), data)
        return number

    def latest(self) -> bytes:
        """The file after our last change."""
        return read(self._latest) or b""

    def set_latest(self, data: bytes) -> None:
        """Record the file after our last change."""
        write_private(self._latest, data)

    def append(
        self,
        number: int,
        action: str,
        before: bytes,
        *,
        by: str = "",
        added: Sequence[str] = (),
        removed: Sequence[str] = (),
    ) -> None:
        """Log a change of the file that was `before`; deletes old versions now and then."""
        version = Version(
            number, time.time(), action, by, tuple(added), tuple(removed), _digest(before)
        )
        handle = os.open(
            os.path.join(make_private(self.folder), "log.jsonl"),
            os.O_WRONLY | os.O_APPEND | os.O_CREAT,
            0o600,
        )
        try:
            os.write(handle, _encoded(version) + b"\n")
        finally:
            os.close(handle)
        if number % _PRUNE_EVERY == 0:
            self._prune(number - MAX_VERSIONS)

    def log(self) -> list[Version]:
        """The changes whose versions are kept, oldest first."""
        versions: dict[int, Version] = {}
        for line in (read(self._log) or b"").splitlines():
            try:
                version = _decode(line)
            except msgspec.DecodeError:  # cut short by a crash
                continue
            if version.action == _LATE and version.number in versions:
                logged = versions[version.number]
                version = msgspec.structs.replace(logged, digest=version.digest)
            versions[version.number] = version
        return list(versions.values())

    def content(self, number: int) -> bytes | None:
        """The file as it was before a change."""
        return read(self.path(number))

    def written_late(self, log: Sequence[Version]) -> Iterator[tuple[int, bytes]]:
        """Versions that an editor wrote into after their exchange: position in the log, bytes.

        Only recent ones and the last one are checked.
        """
        since = time.time() - _LATE_SECONDS
        for position, version in enumerate(log):
            if version.at < since and position < len(log) - 1:
                continue
            try:
                status = os.stat(self.path(version.number))
            except FileNotFoundError:
                continue
            stamp = (status.st_mtime_ns, status.st_size)
            if self._verified.get(version.number) == stamp:
                continue
            data = self.content(version.number)
            if data is None:
                continue
            if _digest(data) == version.digest:
                self._verified[version.number] = stamp
            else:
                yield position, data

    def acknowledge(self, number: int, data: bytes) -> None:
        """Record that a late write is part of the file now."""
        self.append(number, _LATE, data)

    def _numbers(self) -> Sequence[int]:
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return [int(name[:-3]) for name in names if name[:-3].isdecimal() and name[-3:] == ".md"]

    def _prune(self, upto: int) -> None:
        for number in self._numbers():
            if number <= upto:
                os.unlink(self.path(number))
        kept = [version for version in self.log() if version.number > upto]
        write_private(self._log, b"".join(_encoded(version) + b"\n" for version in kept))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:24]


def _encoded(version: Version) -> bytes:
    try:
        return msgspec.json.encode(version)
    except UnicodeEncodeError:
        fields = msgspec.to_builtins(version)
        for name in ("came", "went"):
            fields[name] = [printable(text) for text in fields.get(name, ())]
        return msgspec.json.encode(fields)


def printable(text: str) -> str:
    """Text without surrogates: bytes that are no UTF-8 become replacement characters."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
