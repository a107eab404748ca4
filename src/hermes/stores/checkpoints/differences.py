"""Two states of a place as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes.runtime.disk import Disk
    from hermes.stores.checkpoints.contents import Contents
    from hermes.stores.checkpoints.values import State

# Past this, comparing line by line takes longer than anybody reads.
_COMPARED = 1 << 20
_SHOWN_LINES = 400
_CONTEXT = 3
# Letters of a line that are shown, and how many of them in front of what changed.
_LETTERS, _LEAD = 1_000, 100
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


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
        lines = [f"--- {place} ({names[0]})", f"+++ {place} ({names[1]})"]
        lines += _unified(_lines(before), _lines(after))
        shown = lines[:_SHOWN_LINES]
        if len(lines) > _SHOWN_LINES:
            shown.append(f"… {len(lines) - _SHOWN_LINES} more lines")
        return "".join(f"{line}\n" for line in shown)

    def _text(self, state: State, place: str, disk: Disk | None) -> str | None:
        """The text of a state; None where it is not a text that we have."""
        if state.kind == "absent":
            return ""
        if state.kind != "file" or not state.readable or state.size > _COMPARED:
            return None
        data = self._bytes(state, place, disk)
        if data is None:
            return None
        try:
            text = data.decode("utf-16" if data[:2] in _UTF_16 else "utf-8")
        except UnicodeDecodeError:
            text = data.decode("latin-1")
        return None if "\0" in text else text

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


def _lines(text: str) -> list[str]:
    """The lines of a text; the last one says so when it has no end."""
    end = "\n" if "\n" in text else "\r"
    *lines, rest = text.split(end)
    return [*lines, f"{rest}\n\\ no newline at the end"] if rest else lines


def _unified(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """What differs, with some lines around it."""
    from hermes.core.excerpts import excerpt, first_letters
    from hermes.core.line_changes import groups, hunk_range, line_changes, span

    for group in groups(line_changes(old, new), _CONTEXT):
        start, end, begin, stop = span(group, _CONTEXT, len(old))
        yield f"@@ -{hunk_range(start, end)} +{hunk_range(begin, stop)} @@"
        at = start
        for one in group:
            yield from (f" {excerpt(line, 0, _LETTERS)}" for line in old[at : one.old_start])
            gone, come = old[one.old_start : one.old_end], new[one.new_start : one.new_end]
            firsts = first_letters(gone, come, most=_LETTERS, lead=_LEAD)
            for mark, lines in (("-", gone), ("+", come)):
                for line, first in zip(lines, firsts, strict=False):
                    yield f"{mark}{excerpt(line, first, _LETTERS)}"
            at = one.old_end
        yield from (f" {excerpt(line, 0, _LETTERS)}" for line in old[at:end])
