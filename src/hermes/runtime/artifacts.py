"""Artifact store: large results on disk, which the model reads by page or by search."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.core.paths import home_path, make_private, write_private

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_PREFIX = "art_"
_BESIDE = ".source"
_DAY = 86_400
_DIGITS = 24
_HEX = frozenset("0123456789abcdef")
_UNKNOWN = "somebody unknown"
_WRITING_SECONDS = 3600
# How many characters one page may have.
PAGE = 20_000


class ArtifactStore:
    """A folder of texts by handle."""

    def __init__(
        self,
        folder: str | None = None,
        *,
        max_bytes: int = 512 * 1024 * 1024,
        keep_days: float = 7,
    ) -> None:
        self._folder = folder or home_path("artifacts")
        self._max_bytes = max_bytes
        self._keep_seconds = keep_days * _DAY
        self._lock = threading.Lock()

    def put(self, text: str, *, source: str = "") -> str:
        """Keep a text; the handle it can be read by. The same text has the same handle.

        Args:
            text: The content.
            source: Untrusted source of the text; once set for a text, it stays.
        """
        data = text.encode("utf-8", "surrogatepass")
        handle = _PREFIX + hashlib.sha256(data).hexdigest()[:_DIGITS]
        path = self._path(handle)
        with self._lock:
            make_private(self._folder)
            self._mark(handle, source)
            if _holds(path, len(data)):
                os.utime(path, follow_symlinks=False)
            else:
                self._make_room(len(data))
                write_private(path, data)
            # Another process may just have dropped the text of that name, and this with it.
            self._mark(handle, source)
        return handle

    def adopt(self, path: str, *, source: str = "") -> str:
        """Take over a file of UTF-8 text that was too large to hold; the handle to read it by."""
        handle = _PREFIX + os.urandom(_DIGITS // 2).hex()
        with self._lock:
            make_private(self._folder)
            # It counts already where it was written into the store's own folder.
            self._make_room(0)
            self._mark(handle, source)
            os.replace(path, self._path(handle))
        return handle

    def _mark(self, handle: str, source: str) -> None:
        """Record the untrusted source of a text, before the text can be read."""
        if source and not self.source(handle):
            write_private(self._path(handle) + _BESIDE, source.encode("utf-8", "replace"))

    def source(self, handle: str) -> str:
        """Untrusted source of an artifact; empty for trusted text."""
        if not _is_handle(handle):
            return ""
        try:
            beside = self._path(handle) + _BESIDE
            opened = os.open(beside, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            with os.fdopen(opened, "rb") as file:
                return file.read().decode("utf-8", "replace") or _UNKNOWN
        except FileNotFoundError:
            return ""
        except OSError:
            return _UNKNOWN

    def read(
        self, handle: str, *, offset: int = 0, limit: int = PAGE, pattern: str | None = None
    ) -> dict[str, Any]:
        """One page of a text, from a character on; or the lines that match a pattern."""
        text = self._text(handle)
        offset = max(0, offset)
        limit = max(1, min(limit, PAGE))
        if pattern is not None:
            return _matching(text, pattern, offset, limit)
        piece = _page(text[offset : offset + limit])
        answer: dict[str, Any] = {"text": piece, "offset": offset, "total_chars": len(text)}
        if offset + len(piece) < len(text):
            answer["next_offset"] = offset + len(piece)
        elif not piece and text:
            answer["note"] = f"offset {offset} is past the end"
        return answer

    def _text(self, handle: str) -> str:
        if not _is_handle(handle):
            raise ToolError(
                f"{handle!r:.60} is no artifact handle", hint="It looks like art_3f9a…."
            )
        try:
            # A link that somebody put there is not followed.
            opened = os.open(self._path(handle), os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            with os.fdopen(opened, "rb") as file:
                return file.read().decode("utf-8", "surrogatepass")
        except FileNotFoundError:
            days = self._keep_seconds / _DAY
            raise ToolError(
                f"artifact {handle} is not there (any more); they are kept for {days:g} days",
                hint="Run the call that made it again.",
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise ToolError(
                f"artifact {handle} can't be read: {error}",
                hint="Run the call that made it again.",
            ) from None

    def _path(self, handle: str) -> str:
        return os.path.join(self._folder, handle)

    def usage(self) -> tuple[int, int]:
        """How many artifacts there are, and their bytes."""
        sizes = [size for _, size, _ in self._files()]
        return len(sizes), sum(sizes)

    def _make_room(self, wanted: int) -> None:
        """Remove expired artifacts, and the oldest until `wanted` bytes more fit."""
        if wanted > self._max_bytes:
            raise OSError(f"{wanted} bytes are more than the artifact store may hold")
        files = sorted(self._files())
        total = sum(size for _, size, _ in files) + wanted
        now = time.time()
        for modified, size, path in files:
            if modified >= now - self._keep_seconds and total <= self._max_bytes:
                break
            # What another process is just writing is not ours to drop.
            in_the_making = path.endswith(".new") and modified > now - _WRITING_SECONDS
            if not in_the_making and _unlink(path):
                total -= size
                # Last: a text without it would be anybody's.
                _unlink(path + _BESIDE)

    def _files(self) -> Iterator[tuple[float, int, str]]:
        try:
            entries = list(os.scandir(self._folder))
        except FileNotFoundError:
            return
        texts = {entry.name for entry in entries}
        for entry in entries:
            if entry.name.endswith(_BESIDE) and entry.name.removesuffix(_BESIDE) in texts:
                # It goes with its text.
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if not stat.S_ISDIR(status.st_mode):
                yield status.st_mtime, status.st_size, entry.path


def _is_handle(handle: str) -> bool:
    digits = handle.removeprefix(_PREFIX)
    return handle != digits and len(digits) == _DIGITS and _HEX.issuperset(digits)


def _holds(path: str, size: int) -> bool:
    """Whether the artifact is there as a complete regular file."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == size


def _page(text: str) -> str:
    """As much of a text as fits into a page once it is written as JSON."""
    from hermes.core.json_text import to_json

    while len(to_json(text)) > 2 * PAGE and len(text) > 1:
        text = text[: len(text) // 2]
    return text


def _unlink(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        # Another process has dropped it already, or it can't be dropped.
        return False
    return True


def _matching(text: str, pattern: str, offset: int, limit: int) -> dict[str, Any]:
    import re

    from hermes.text import regex_worker

    try:
        with regex_worker.RegexWorker(pattern) as worker:
            return worker.excerpts(text, offset, limit)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError(
            f"pattern {pattern!r:.200} is no regular expression: {error}",
            hint="Escape special characters with a backslash.",
        ) from None
    except regex_worker.SlowPatternError:
        raise ToolError(
            f"pattern {pattern!r:.200} was stopped after {regex_worker.SECONDS} s",
            hint="Use a simpler one: plain words, and no repetition inside a repetition.",
        ) from None
