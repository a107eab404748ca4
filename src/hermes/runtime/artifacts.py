"""Large results, kept on disk so that the model can page and search them.

An artifact is stored once, under a name made from its content, readable by its owner only. The
store has a size and an age past which the oldest go; a handle that is gone says so.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.core.home import home_path, make_private, write_private

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_PREFIX = "art_"
_DAY = 86_400
# How many characters one page may have, and how long a matching line is shown.
PAGE = 20_000
LINE = 400


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

    def put(self, text: str) -> str:
        """Keep a text; the handle it can be read by. The same text has the same handle."""
        data = text.encode("utf-8", "surrogatepass")
        handle = _PREFIX + hashlib.sha256(data).hexdigest()[:24]
        path = self._path(handle)
        with self._lock:
            make_private(self._folder)
            if os.path.exists(path):
                os.utime(path)
            else:
                self._make_room(len(data))
                write_private(path, data)
        return handle

    def read(
        self, handle: str, *, offset: int = 0, limit: int = PAGE, pattern: str | None = None
    ) -> dict[str, Any]:
        """One page of a text, from a character on; or the lines that match a pattern."""
        text = self._text(handle)
        limit = max(1, min(limit, PAGE))
        if pattern is not None:
            return self._matching(text, pattern, offset, limit)
        piece = text[offset : offset + limit]
        answer: dict[str, Any] = {"text": piece, "offset": offset, "total_chars": len(text)}
        if offset + len(piece) < len(text):
            answer["next_offset"] = offset + len(piece)
        elif not piece and text:
            answer["note"] = f"offset {offset} is past the end"
        return answer

    def _matching(self, text: str, pattern: str, offset: int, limit: int) -> dict[str, Any]:
        import re

        try:
            wanted = re.compile(pattern)
        except re.error as error:
            raise ToolError(
                f"pattern {pattern!r} is no regular expression: {error}",
                hint="Escape special characters with a backslash.",
            ) from None
        matches: list[dict[str, Any]] = []
        total = room = 0
        for number, start, line in _lines(text):
            if start < offset or not wanted.search(line):
                continue
            total += 1
            if room < limit:
                shown = line if len(line) <= LINE else line[:LINE] + "…"
                matches.append({"line": number, "offset": start, "text": shown})
                room += len(shown)
        answer: dict[str, Any] = {"matches": matches, "total_matches": total}
        if total > len(matches):
            answer["next_offset"] = matches[-1]["offset"] + 1
        if not total:
            answer["note"] = f"no line of {len(text)} characters matches"
        return answer

    def _text(self, handle: str) -> str:
        if not handle.startswith(_PREFIX) or not handle[len(_PREFIX) :].isalnum():
            raise ToolError(
                f"{handle!r:.60} is no artifact handle", hint="It looks like art_3f9a…."
            )
        try:
            with open(self._path(handle), "rb") as file:
                return file.read().decode("utf-8", "surrogatepass")
        except FileNotFoundError:
            days = self._keep_seconds / _DAY
            raise ToolError(
                f"artifact {handle} is not there (any more); they are kept for {days:g} days",
                hint="Run the call that made it again.",
            ) from None

    def _path(self, handle: str) -> str:
        return os.path.join(self._folder, handle)

    def usage(self) -> tuple[int, int]:
        """How many artifacts there are, and their bytes."""
        sizes = [size for _, size, _ in self._files()]
        return len(sizes), sum(sizes)

    def _make_room(self, wanted: int) -> None:
        """Drop what is too old, and the oldest until `wanted` bytes more fit."""
        if wanted > self._max_bytes:
            raise OSError(f"{wanted} bytes are more than the artifact store may hold")
        files = sorted(self._files())
        total = sum(size for _, size, _ in files) + wanted
        oldest = time.time() - self._keep_seconds
        for modified, size, path in files:
            if modified >= oldest and total <= self._max_bytes:
                break
            # Another process may have dropped it already.
            if _unlink(path):
                total -= size

    def _files(self) -> Iterator[tuple[float, int, str]]:
        try:
            entries = list(os.scandir(self._folder))
        except FileNotFoundError:
            return
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            yield status.st_mtime, status.st_size, entry.path


def _unlink(path: str) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True


def _lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Number, offset and content of each line."""
    start = 0
    for number, line in enumerate(text.split("\n"), 1):
        yield number, start, line
        start += len(line) + 1
