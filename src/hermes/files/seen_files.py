"""Files that a task has seen: versions for the stale-write check, private keys to redact.

A file counts as changed when its content differs, never by its times: a sync program or a checkout
that touches a file has changed nothing. A page, a match or a diff may show part of a private key
without its first and last line, so each line of a key becomes a secret of the runtime as soon as
a tool has read the file.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hermes.core.context import ToolContext
    from hermes.environments.disk.protocol import Disk


# How much text is kept to show what changed; beyond it only digests are.
KEPT_BYTES = 32 * 1024 * 1024
_MOST_FILES = 10_000


class Version(NamedTuple):
    """One state of a file as a task saw it, or made it."""

    digest: str
    call: str
    wrote: bool
    data: bytes | None


class Versions:
    """The last seen version of each file, and which pages of it were shown."""

    def __init__(self, *, kept_bytes: int = KEPT_BYTES) -> None:
        self._known: OrderedDict[str, Version] = OrderedDict()
        self._shown: dict[tuple[str, int, int], tuple[str, str]] = {}
        self._room = kept_bytes
        self._lock = threading.Lock()

    def last(self, path: str) -> Version | None:
        """The last seen version of a file."""
        return self._known.get(path)

    def note(
        self, path: str, digest: str, call: str, *, wrote: bool = False, data: bytes | None = None
    ) -> None:
        """Record the current version of a file."""
        with self._lock:
            self._drop(path)
            if data is not None and len(data) > self._room:
                self._make_room(len(data))
                data = data if len(data) <= self._room else None
            self._room -= len(data or b"")
            self._known[path] = Version(digest, call, wrote, data)
            while len(self._known) > _MOST_FILES:
                self._drop(next(iter(self._known)))

    def forget(self, path: str) -> None:
        """Drop the version of a file."""
        with self._lock:
            self._drop(path)

    def shown_before(self, path: str, offset: int, limit: int, digest: str) -> str:
        """The call that showed the same page of the same content; empty if none did."""
        shown_digest, call = self._shown.get((path, offset, limit), ("", ""))
        return call if shown_digest == digest else ""

    def shown(self, path: str, offset: int, limit: int, digest: str, call: str) -> None:
        """Remember that a page was shown."""
        if len(self._shown) >= _MOST_FILES:
            self._shown.clear()
        self._shown[path, offset, limit] = (digest, call)

    def _drop(self, path: str) -> None:
        gone = self._known.pop(path, None)
        if gone is not None:
            self._room += len(gone.data or b"")

    def _make_room(self, wanted: int) -> None:
        """Let go of the oldest texts; their digests stay."""
        for path, version in list(self._known.items()):
            if self._room >= wanted:
                return
            if version.data:
                self._room += len(version.data)
                self._known[path] = version._replace(data=None)


def versions_of(ctx: ToolContext) -> Versions:
    """The versions that the task of a call has seen."""
    versions: Versions = ctx.task.keep("file_versions", Versions, lambda _: None)
    return versions


def digest_of(data: bytes) -> str:
    """The SHA-256 of some content."""
    return hashlib.sha256(data).hexdigest()


_MARK = b"PRIVATE KEY-----"
_KEY = re.compile(rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(.*?)(?:-----END|\Z)", re.DOTALL)
# Shorter lines say too little, and might be words.
_SHORTEST = 20
_LARGEST = 1024 * 1024


def hide_keys(ctx: ToolContext, data: bytes) -> None:
    """Redact the lines of private keys in some content from now on."""
    if _MARK not in data:
        return
    runtime = ctx.services.runtime
    if runtime is None:
        return
    for key in _KEY.finditer(data):
        for line in key[1].split():
            if len(line) >= _SHORTEST:
                runtime.redactor.add(line.decode("ascii", "replace"))


def hide_keys_at(ctx: ToolContext, disk: Disk, path: str) -> None:
    """The same for a file, where it is one and not too large to hold keys."""
    status = disk.status(path)
    if status is not None and status.kind == "file" and status.size <= _LARGEST:
        hide_keys(ctx, disk.read(path))
