"""Memory file on disk: lock, atomic exchange, earlier versions with author and time."""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.core.errors import ToolError
from hermes.core.home import make_private, write_private

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


# Long: several may wait in a row, on a machine that is busy.
_PATIENCE = 60.0
_SETTLING = 0.1
_HERE = -100  # AT_FDCWD
_EXCHANGE = 2  # RENAME_EXCHANGE


@contextmanager
def alone(folder: str) -> Iterator[None]:
    """Keep every other process and thread of ours off a folder's files."""
    try:
        import fcntl
    except ImportError:  # Windows: two programs at the same instant are not kept apart there
        yield
        return
    handle = os.open(
        os.path.join(make_private(folder), ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
    )
    try:
        until, pause = time.monotonic() + _PATIENCE, 0.001
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise ToolError(
                        f"the memory was in use for {_PATIENCE:g} s", hint="Try again later."
                    ) from None
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)
        yield
    finally:
        os.close(handle)


def read(path: str) -> bytes | None:
    """What a file holds; None when there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def read_settled(path: str) -> bytes | None:
    """The same; a file that has just been emptied gets a moment to be filled again."""
    until = time.monotonic() + _SETTLING
    while not (data := read(path)) and time.monotonic() < until:
        try:
            if time.time() - os.stat(path).st_mtime > _SETTLING:
                return data
        except FileNotFoundError:
            return data
        time.sleep(0.002)
    return data


def swap(draft: str, path: str, seen: bytes | None) -> bool:
    """Put a draft in a file's place, and what was there in the draft's.

    False, and nothing is changed, when the file does not hold what was seen.
    """
    if seen is None:
        return _put_new(draft, path)
    if not _exchange(draft, path):
        # The small gap between looking and replacing is the best that such a system offers.
        if read(path) != seen:
            return False
        with open(draft, "rb") as file:
            write_private(path, file.read())
        write_private(draft, seen)
        return True
    if read(draft) == seen:
        return True
    _exchange(draft, path)
    return False


def _put_new(draft: str, path: str) -> bool:
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    except OSError:  # no links here
        if os.path.lexists(path):
            return False
        os.replace(draft, path)
        return True
    os.unlink(draft)
    return True


def _exchange(one: str, other: str) -> bool:
    """Swap two files in one step; False where the system can't."""
    import ctypes

    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    done: int = rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)
    return done == 0


# So many are kept; the rest of a file's past goes, the oldest first.
MOST = 2_000
_TIDY_EVERY = 100


class Version(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change: `number` names the state before it. `digest` is that state's."""

    number: int
    at: float
    action: str
    by: str = ""
    came: tuple[str, ...] = ()
    went: tuple[str, ...] = ()
    digest: str = ""


_decode = msgspec.json.Decoder(Version).decode


class Versions:
    """The past of one file."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._log = os.path.join(folder, "log.jsonl")
        self._latest = os.path.join(folder, "latest")

    def path(self, number: int) -> str:
        """Where a state is kept."""
        return os.path.join(self.folder, f"{number:06}.md")

    def next_number(self) -> int:
        """The number of the change to come."""
        return max(self._numbers(), default=0) + 1

    def draft(self, data: bytes) -> int:
        """Write a state down where the one before it will be; its number."""
        number = self.next_number()
        write_private(self.path(number), data)
        return number

    def latest(self) -> bytes:
        """The file as we left it."""
        return read(self._latest) or b""

    def set_latest(self, data: bytes) -> None:
        """Note how we leave the file."""
        write_private(self._latest, data)

    def note(self, version: Version) -> None:
        """Add a line to the log; makes room now and then."""
        handle = os.open(
            os.path.join(make_private(self.folder), "log.jsonl"),
            os.O_WRONLY | os.O_APPEND | os.O_CREAT,
            0o600,
        )
        try:
            os.write(handle, encoded(version) + b"\n")
        finally:
            os.close(handle)
        if version.number % _TIDY_EVERY == 0:
            self._tidy(version.number - MOST)

    def log(self) -> list[Version]:
        """Every change that is still known, oldest first."""
        found = []
        for line in (read(self._log) or b"").splitlines():
            try:
                found.append(_decode(line))
            except msgspec.DecodeError:  # cut short by a crash
                continue
        return found

    def state(self, number: int) -> bytes | None:
        """The file as it was before a change."""
        return read(self.path(number))

    def _numbers(self) -> Sequence[int]:
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return [int(name[:-3]) for name in names if name[:-3].isdecimal() and name[-3:] == ".md"]

    def _tidy(self, upto: int) -> None:
        for number in self._numbers():
            if number <= upto:
                os.unlink(self.path(number))
        kept = [version for version in self.log() if version.number > upto]
        write_private(self._log, b"".join(encoded(version) + b"\n" for version in kept))


def made(
    number: int,
    action: str,
    *,
    by: str,
    came: Sequence[str] = (),
    went: Sequence[str] = (),
    before: bytes = b"",
) -> Version:
    """A change that has just happened."""
    return Version(number, time.time(), action, by, tuple(came), tuple(went), digest(before))


def digest(data: bytes) -> str:
    """A short name for bytes."""
    return hashlib.sha256(data).hexdigest()[:24]


def encoded(value: Any) -> bytes:
    """JSON; bytes that are no text are shown as such."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        text = msgspec.to_builtins(value)
        for name in ("came", "went"):
            text[name] = [shown(one) for one in text.get(name, ())]
        return msgspec.json.encode(text)


def shown(text: str) -> str:
    """Text that can be written anywhere: bytes that are no UTF-8 become the sign for that."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
