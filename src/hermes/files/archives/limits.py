"""Archive limits, the meter that enforces them, and the values that callers pass and get."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal


if TYPE_CHECKING:
    Existing = Literal["refuse", "skip", "replace"]
    Kind = Literal["file", "folder", "symlink", "hardlink", "other"]

_MIB = 1024 * 1024


class ArchiveError(ToolError):
    """An archive was refused or can't be read; nothing was extracted."""


class ArchiveLimits:
    """Limits of an extraction; the ratio counts from `ratio_from` extracted bytes on."""

    __slots__ = (
        "max_bytes",
        "max_depth",
        "max_file_bytes",
        "max_members",
        "max_ratio",
        "ratio_from",
    )

    def __init__(
        self,
        *,
        max_bytes: int = 2048 * _MIB,
        max_members: int = 100_000,
        max_ratio: float = 200,
        ratio_from: int = 10 * _MIB,
        max_file_bytes: int = 1024 * _MIB,
        max_depth: int = 64,
    ) -> None:
        self.max_bytes = max_bytes
        self.max_members = max_members
        self.max_ratio = max_ratio
        self.ratio_from = ratio_from
        self.max_file_bytes = max_file_bytes
        self.max_depth = max_depth


class Member:
    """One entry as the archive describes it; `path` and `link` are not checked yet."""

    __slots__ = ("kind", "link", "mode", "mtime", "path", "size")

    def __init__(
        self, path: str, kind: Kind, *, size: int, mode: int, mtime: float | None, link: str = ""
    ) -> None:
        self.path = path
        self.kind = kind
        self.size = size
        self.mode = mode
        self.mtime = mtime
        self.link = link

    def __repr__(self) -> str:
        return f"Member({self.path!r}, {self.kind!r}, size={self.size})"


class Placed(NamedTuple):
    """A path that will be created or replaced, and its source in the staging folder.

    `drafted` is empty for a new parent folder of the target.
    """

    place: str
    drafted: str


class Extracted:
    """Result of an extraction: `paths` of files and links below `target`, in archive order.

    `skipped` and `replaced` are the files that existed before.
    """

    __slots__ = ("bytes", "paths", "replaced", "skipped", "target")

    def __init__(
        self,
        target: str,
        paths: list[str],
        size: int,
        *,
        skipped: Sequence[str] = (),
        replaced: Sequence[str] = (),
    ) -> None:
        self.target = target
        self.paths = paths
        self.bytes = size
        self.skipped = list(skipped)
        self.replaced = list(replaced)

    @property
    def files(self) -> int:
        """How many files and links there are."""
        return len(self.paths)

    def __repr__(self) -> str:
        return f"Extracted({self.target!r}, files={self.files}, bytes={self.bytes})"


# What a member may need beside its bytes: headers, long names, padding.
_OVERHEAD = 4096
_SLACK = 1024 * 1024


class Meter:
    """Counts bytes in, bytes out and members; raises as soon as one is too many."""

    __slots__ = ("_declared", "_members", "_packed", "_unpacked", "_watch", "limits")

    def __init__(self, limits: ArchiveLimits, watch: Callable[[int], object] | None = None) -> None:
        self.limits = limits
        # Told how many bytes of the file were taken so far; may raise to stop.
        self._watch = watch
        self._declared = 0
        self._members = 0
        self._packed = 0
        self._unpacked = 0

    def member(self, member: Member) -> None:
        """Count a member by its declared size, which its reader never exceeds."""
        limits = self.limits
        self._members += 1
        if self._members > limits.max_members:
            raise _too_much(f"more than {limits.max_members} members")
        if member.size > limits.max_file_bytes:
            raise _too_much(f"a file of more than {limits.max_file_bytes} bytes: {member.path!r}")
        self._declared += member.size
        if self._declared > limits.max_bytes:
            raise _too_much(f"more than {limits.max_bytes} bytes")

    def packed(self, size: int) -> None:
        """Count bytes taken from the archive file."""
        self._packed += size
        if self._watch is not None:
            self._watch(self._packed)

    def unpacked(self, size: int) -> None:
        """Count bytes that came out of it, headers and padding included."""
        limits = self.limits
        self._unpacked += size
        if self._unpacked > limits.max_bytes + _OVERHEAD * limits.max_members + _SLACK:
            raise _too_much(f"more than {limits.max_bytes} bytes")
        if self._unpacked > limits.ratio_from and self._unpacked > limits.max_ratio * self._packed:
            raise _too_much(f"bytes compressed more than {limits.max_ratio:g} to 1")


def _too_much(what: str) -> ArchiveError:
    return ArchiveError(
        f"the archive holds {what}", hint="Nothing was unpacked; it may be a decompression bomb."
    )
