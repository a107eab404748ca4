"""Line files: appended by several processes under a lock, rotated by size, buffered in memory.

Used by the audit log, the span files and the logs of MCP servers.
"""

from __future__ import annotations

import atexit
import os
import threading
from typing import TYPE_CHECKING

import msgspec

from hermes.core.log import Log
from hermes.core.paths import flock, is_current, make_private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    T = TypeVar("T")

log = Log("hermes.runtime")

# A full buffer is written at once, a smaller one after this time.
FULL = 512
FLUSH_SECONDS = 1.0
# Items kept in memory while the disk refuses them.
_KEPT = 10_000
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def append_lines(
    path: str,
    lines: bytes | Callable[[int, int], bytes],
    *,
    max_bytes: int = 0,
    rotated: str = "",
) -> int:
    """Append lines to a file, all of them or none; the file's new size.

    Args:
        path: The file; it is created with mode 0600 when it is missing.
        lines: The lines, or a function that makes them of the locked file's handle and size.
        max_bytes: A file that reaches this size is renamed to `rotated`.
        rotated: Where a full file goes.
    """
    handle = _open_locked(path)
    try:
        size = os.fstat(handle).st_size
        data = lines if isinstance(lines, bytes) else lines(handle, size)
        if size and read_at(handle, 1, size - 1) != b"\n":
            # A crash cut the last line short; ours must not become part of it.
            data = b"\n" + data
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(handle, rest) :]
        except OSError:
            os.ftruncate(handle, size)
            raise
        size += len(data)
        if max_bytes and size >= max_bytes:
            os.replace(path, rotated)
        return size
    finally:
        os.close(handle)


def _open_locked(path: str) -> int:
    while True:
        try:
            handle = os.open(path, _FLAGS, 0o600)
        except FileNotFoundError:
            make_private(os.path.dirname(path))
            continue
        flock(handle)
        if is_current(handle, path):
            return handle
        # Another process has rotated it meanwhile.
        os.close(handle)


def read_at(handle: int, count: int, offset: int) -> bytes:
    """`os.pread`, which Windows does not have; appending is not affected by the position."""
    os.lseek(handle, offset, os.SEEK_SET)
    return os.read(handle, count)


def json_line(value: Any) -> bytes:
    """A value as one line of JSON; lone surrogates, which a model may send, become text."""
    try:
        return _encode(value) + b"\n"
    except UnicodeEncodeError:
        return _encode(_escaped(value)) + b"\n"


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_escaped(key): _escaped(inner) for key, inner in value.items()}
    return [_escaped(inner) for inner in value] if isinstance(value, list) else value


def read_json_lines(path: str) -> Iterator[tuple[bytes, Any]]:
    """Every line and its JSON value, or None where it is no JSON."""
    with open(path, "rb") as file:
        for line in file:
            try:
                yield line, _decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                yield line, None


class LineBuffer:
    """Items that wait to be written by a background thread, which the first one starts."""

    def __init__(self, name: str, flush: Callable[[], object]) -> None:
        """`flush` is called by the thread and at the program's exit; it calls `drain`."""
        self._name = name
        self._flush = flush
        self.waiting: list[Any] = []
        self._lock = threading.Lock()
        self.awake = threading.Event()
        self._full = threading.Event()
        self._thread: threading.Thread | None = None
        self._failing = False

    def wake(self) -> None:
        """Have the buffer written within `FLUSH_SECONDS`."""
        if self._thread is None:
            self._start()
        self.awake.set()

    def full(self) -> None:
        """Have the buffer written now, by the thread."""
        self._full.set()

    def drain(self, write: Callable[[list[Any]], T]) -> T | None:
        """Write the waiting items. After an `OSError` they wait for the next time."""
        with self._lock:
            # Taken from the front: other threads append meanwhile.
            items = self.waiting[:]
            try:
                written = write(items)
            except OSError as error:
                if not self._failing:
                    log.warning("%s can't be written: %s", self._name, error)
                self._failing = True
                del self.waiting[:-_KEPT]
                return None
            self._failing = False
            del self.waiting[: len(items)]
            if self.waiting:
                self.awake.set()
            return written

    def _start(self) -> None:
        with self._lock:
            if self._thread is not None:
                return
            self._thread = threading.Thread(
                target=self._run, name=f"hermes-{self._name}", daemon=True
            )
        self._thread.start()
        atexit.register(self._flush)

    def _run(self) -> None:
        while True:
            self.awake.wait()
            self._full.wait(FLUSH_SECONDS)
            self.awake.clear()
            self._full.clear()
            self._flush()
