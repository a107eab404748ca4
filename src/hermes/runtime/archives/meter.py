"""What an archive has cost so far, held against its limits while it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.runtime.archives.values import ArchiveError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.runtime.archives.values import ArchiveLimits, Member

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
        """Count a member by what it declares; its reader never gives more bytes than that."""
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
