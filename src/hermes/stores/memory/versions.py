"""What a memory file held before each change, and who changed it; only its owner may look.

versions/MEMORY.md/000012.md    the file before change 12, to the byte
versions/MEMORY.md/latest       the file as we left it
versions/MEMORY.md/log.jsonl    a line for each change: when, who, what came and went
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.core.home import make_private, write_private
from hermes.stores.memory.place import read

if TYPE_CHECKING:
    from collections.abc import Sequence

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
