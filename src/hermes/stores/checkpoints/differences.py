"""Two states of a place as text for people."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from hermes.runtime.disk import Disk
    from hermes.stores.checkpoints.contents import Contents
    from hermes.stores.checkpoints.values import State

# Past this, comparing line by line takes longer than anybody reads.
_COMPARED = 1 << 20
_SHOWN_LINES = 400


class Differences:
    """Compares what the store and the disk hold."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def between(
        self, place: str, one: State, other: State, *, disk: Disk | None, names: tuple[str, str]
    ) -> str:
        """A unified diff; a line about both where they are not text that can be compared."""
        if one.kind == other.kind == "file" and one.digest == other.digest:
            return _modes(place, one, other)
        before, after = self._text(one, place, disk), self._text(other, place, disk)
        if before is None or after is None:
            return f"{place}: {names[0]} {one.described}, {names[1]} {other.described}\n"
        lines = list(
            difflib.unified_diff(
                before.splitlines(keepends=True),
                after.splitlines(keepends=True),
                f"{place} ({names[0]})",
                f"{place} ({names[1]})",
            )
        )
        shown = [line if line.endswith("\n") else f"{line}\n\\ no newline at the end\n"
                 for line in lines[:_SHOWN_LINES]]  # fmt: skip
        if len(lines) > _SHOWN_LINES:
            shown.append(f"… {len(lines) - _SHOWN_LINES} more lines\n")
        return "".join(shown)

    def _text(self, state: State, place: str, disk: Disk | None) -> str | None:
        """The text of a state; None where it is not a text that we have."""
        if state.kind == "absent":
            return ""
        if state.kind != "file" or not state.readable or state.size > _COMPARED:
            return None
        data = self._bytes(state, place, disk)
        if data is None or b"\0" in data:
            return None
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data.decode("latin-1")

    def _bytes(self, state: State, place: str, disk: Disk | None) -> bytes | None:
        if self._contents.has(state.digest):
            return b"".join(self._contents.read(state.digest))
        # What a tool has just written is not in the store, but still at its place.
        from hermes.stores.checkpoints.values import digest_of

        try:
            data = None if disk is None else disk.read(place)
        except (OSError, ToolError):
            return None
        return data if data is not None and digest_of(data) == state.digest else None


def _modes(place: str, one: State, other: State) -> str:
    if None in (one.mode, other.mode) or one.mode == other.mode:
        return ""
    return f"{place}: mode {one.mode:o} becomes {other.mode:o}\n"
