"""Where spans are kept: JSON lines in files of their owner's alone, the oldest removed in time.

Every process appends to one file. Once that is large it gets a name with the time, and another one
is begun; what is too old, or too much, goes.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import msgspec

from hermes.core.home import home_path, make_private

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

_NEWEST = "spans.jsonl"
# How many files the room is made of.
_PARTS = 4
_DAY = 86_400.0
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class SpanFiles:
    """The files of one folder; several processes may share it."""

    def __init__(
        self,
        folder: str | None = None,
        *,
        max_bytes: int = 64 * 1024**2,
        keep_days: float = 14,
    ) -> None:
        self.folder = folder or home_path("traces")
        self.path = os.path.join(self.folder, _NEWEST)
        self._max_bytes = max_bytes
        self._keep_days = keep_days
        self._tidied = 0.0
        self._written = False

    def append(self, lines: Sequence[dict[str, Any]]) -> None:
        """Write lines behind those that are there."""
        if self._written and not os.path.isdir(os.path.dirname(self.folder)):
            # The home was removed meanwhile: it is not ours to make again.
            return
        data = b"".join(_encoded(line) + b"\n" for line in lines)
        handle = self._locked()
        try:
            size = os.fstat(handle).st_size
            if size and not _ends_a_line(handle, size):
                # A crash cut the last line short; ours must not become part of it.
                data = b"\n" + data
            with memoryview(data) as rest:
                done = 0
                while done < len(rest):
                    done += os.write(handle, rest[done:])
            self._written = True
            if size + len(data) >= max(self._max_bytes // _PARTS, 1):
                aside = f"spans-{time.time_ns()}.jsonl"
                os.rename(self.path, os.path.join(self.folder, aside))
                self._tidied = 0.0
        finally:
            os.close(handle)
        if time.time() - self._tidied > 3600:
            self._tidy()

    def read(self) -> Iterator[dict[str, Any]]:
        """Every line that can be read, oldest first; half of one at the end is left out."""
        for path in self.paths():
            try:
                with open(path, "rb") as file:
                    for line in file:
                        try:
                            found = _decode(line)
                        except (msgspec.DecodeError, UnicodeDecodeError):
                            continue
                        if isinstance(found, dict) and found.get("span_id"):
                            yield found
            except FileNotFoundError:
                # Another process has removed it.
                continue

    def paths(self) -> list[str]:
        """The files there are, oldest first."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        ours = [n for n in names if n.startswith("spans") and n.endswith(".jsonl")]
        # "-" sorts before ".": the newest, which has no time, comes last.
        return [os.path.join(self.folder, name) for name in sorted(ours)]

    def _locked(self) -> int:
        """The newest file, open and ours alone until it is closed."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        while True:
            try:
                handle = os.open(self.path, flags, 0o600)
            except FileNotFoundError:
                make_private(self.folder)
                continue
            _lock(handle)
            try:
                if os.path.samestat(os.fstat(handle), os.stat(self.path)):
                    return handle
            except FileNotFoundError:
                pass
            # While we waited another process has put it aside.
            os.close(handle)

    def _tidy(self) -> None:
        """Remove what is too old, then the oldest of what is too much."""
        self._tidied = time.time()
        found = []
        for path in self.paths():
            try:
                state = os.stat(path)
            except FileNotFoundError:
                continue
            found.append((path, state.st_mtime, state.st_size))
        total = sum(size for _, _, size in found)
        for path, changed, size in found:
            old = self._tidied - changed > self._keep_days * _DAY
            if path != self.path and (old or total > self._max_bytes):
                total -= size
                _remove(path)


def _encoded(line: dict[str, Any]) -> bytes:
    try:
        return _encode(line)
    except UnicodeEncodeError:
        # A model may send lone surrogates even as a name.
        return _encode(_spelled(line))


def _spelled(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_spelled(key): _spelled(inner) for key, inner in value.items()}
    return [_spelled(inner) for inner in value] if isinstance(value, list) else value


def _ends_a_line(handle: int, size: int) -> bool:
    os.lseek(handle, size - 1, os.SEEK_SET)
    return os.read(handle, 1) == b"\n"


def _lock(handle: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: lines of two processes may end up inside of each other there
        return
    fcntl.flock(handle, fcntl.LOCK_EX)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        # Another process was first.
        return
