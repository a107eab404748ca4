"""The audit log: one line per call, each chained to the one before by its hash.

Lines are gathered and written together, at the latest a second later and at the end of the
program; a call that was refused or had to be approved is on disk before anything else happens. A
line that is changed, left out or moved breaks the chain, and `verify` says where.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from hermes.core.home import home_path, make_private
from hermes.core.log import Log
from hermes.runtime.audit_lines import START, chain, hash_of, split_line
from hermes.safety.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from hermes.runtime.audit_lines import AuditLine

log = Log("hermes.audit")

_GATHER = 1024
# How many lines are kept while the disk does not take them.
_KEPT = 10_000
_FLUSH_SECONDS = 1.0


class AuditLog:
    """Appends to one file; several processes may share it."""

    def __init__(self, path: str | None = None) -> None:
        self.path = path or home_path("audit", "audit.jsonl")
        self._lock = threading.Lock()
        self._waiting: list[AuditLine] = []
        self._last = START
        self._size = -1
        self._failing = False
        # How arguments are masked; a runtime puts its own here, which knows more secrets.
        self.redact: Callable[[str], str] = redact
        self._wake = threading.Event()
        self._writer: threading.Thread | None = None

    def record(self, line: AuditLine, *, now: bool = False) -> None:
        """Note one call; `now` puts it on disk before returning."""
        self._waiting.append(line)
        waiting = len(self._waiting)
        if now or waiting >= _GATHER:
            self.flush()
        elif waiting == 1:
            if self._writer is None:
                self._start()
            self._wake.set()

    def flush(self) -> None:
        """Write what is gathered. What can't be written is kept, and tried again next time."""
        with self._lock:
            # Taken from the front, so that what is appended meanwhile is kept for the next time.
            count = len(self._waiting)
            lines = self._waiting[:count]
            if not lines:
                return
            try:
                self._append(lines)
            except OSError as error:
                if not self._failing:
                    log.warning("%s can't be written: %s", self.path, error)
                self._failing = True
                del self._waiting[:-_KEPT]
                return
            self._failing = False
            del self._waiting[:count]

    def _start(self) -> None:
        with self._lock:
            if self._writer is not None:
                return
            self._writer = threading.Thread(target=self._tick, name="hermes-audit", daemon=True)
        self._writer.start()
        atexit.register(self.flush)

    def _tick(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            time.sleep(_FLUSH_SECONDS)
            self.flush()

    def _append(self, lines: list[AuditLine]) -> None:
        handle = self._open()
        with os.fdopen(handle, "r+b", buffering=0) as file, _locked(file.fileno()):
            size = os.fstat(file.fileno()).st_size
            if size != self._size:
                # Another process has written since, or this is our first line.
                self._last = _last_hash(file.fileno(), size)
            data, last = chain(lines, self._last, self.redact)
            if size and _read_at(file.fileno(), 1, size - 1) != b"\n":
                # A crash cut the last line short; ours must not become part of it.
                data = b"\n" + data
            _write(file.fileno(), data, size)
            self._last, self._size = last, size + len(data)
            # The lines are there: an older hash beside them is no reason to write them twice.
            with suppress(OSError):
                self._note_head()

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        try:
            return os.open(self.path, flags, 0o600)
        except FileNotFoundError:
            make_private(os.path.dirname(self.path))
            return os.open(self.path, flags, 0o600)

    def _note_head(self) -> None:
        """Keep the newest hash beside the log, in place: a rename each time would cost as much."""
        handle = os.open(f"{self.path}.head", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.write(handle, self._last.encode())
        finally:
            os.close(handle)


def lines(path: str) -> Iterator[dict[str, Any]]:
    """The lines of a log, oldest first; one that is no JSON is shown as what it is."""
    with open(path, "rb") as file:
        for line in file:
            try:
                yield json.loads(line)
            except ValueError:
                yield {"status": "unreadable", "tool": line[:80].decode("utf-8", "replace")}


def verify(path: str) -> tuple[int, str | None]:
    """How many lines hold, and what is wrong with the first that does not."""
    last, number, noted = START.encode(), 0, _noted(path)
    met = noted is None
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            given, body = split_line(line.rstrip(b"\n"))
            last = hash_of(body, last)
            if given.encode() != last:
                return number - 1, f"line {number} does not follow from the lines before it"
            met = met or last.decode() == noted
    return number, None if met else "lines are missing at the end"


def _noted(path: str) -> str | None:
    """The hash of the newest line, as it was noted beside the log: shows a log cut short."""
    try:
        with open(f"{path}.head", encoding="ascii") as file:
            return file.read() or None
    except (OSError, UnicodeDecodeError):
        return None


def _last_hash(handle: int, size: int) -> str:
    """The hash of the last whole line of the file."""
    back = 4096
    while size:
        start = max(0, size - back)
        tail = _read_at(handle, size - start, start)
        lines = tail.rstrip(b"\n").split(b"\n")
        if len(lines) > 1 or start == 0:
            return split_line(lines[-1])[0] or START
        back *= 8
    return START


def _write(handle: int, data: bytes, size: int) -> None:
    """All of `data` at the end of a file of that size, or nothing of it."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(handle, rest) :]
    except OSError:
        os.ftruncate(handle, size)
        raise


def _read_at(handle: int, count: int, offset: int) -> bytes:
    """`os.pread`, which Windows has not; writes go to the end whatever was read."""
    os.lseek(handle, offset, os.SEEK_SET)
    return os.read(handle, count)


@contextmanager
def _locked(handle: int) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # Windows: one process per audit file is all we promise there
        yield
        return
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)
