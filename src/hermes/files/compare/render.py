"""Changes between lines as text: unified, side by side, or a summary of places."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes.text.diff import excerpt, first_shown, groups, hunk_lines, span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes.text.diff import Change

LONGEST_LINE = 2_000
_NO_NEWLINE = "\\ No newline at end of file"
_COLUMN = 72
# Letters of a long line in front of what changed in it.
_LEAD, _COLUMN_LEAD = 200, 20


class Pair(NamedTuple):
    """The lines of both inputs, the numbers of their first lines, and the changes."""

    old: Sequence[str]
    new: Sequence[str]
    old_first: int
    new_first: int
    changes: Sequence[Change]


def unified(pair: Pair, old_label: str, new_label: str, context: int) -> str:
    """The changes as a unified diff."""
    shown = [f"--- {old_label}", f"+++ {new_label}"]
    firsts = (pair.old_first, pair.new_first)
    for mark, line, start in hunk_lines(
        pair.old, pair.new, pair.changes, context=context, most=LONGEST_LINE, lead=_LEAD,
        firsts=firsts,
    ):  # fmt: skip
        shown.append(mark + cut(line.removesuffix("\n"), start))
        if mark != "@" and not line.endswith("\n"):
            shown.append(_NO_NEWLINE)
    return "\n".join(shown) + "\n"


def side_by_side(pair: Pair, context: int) -> str:
    """The changes in two columns: `|` changed, `<` only on the left, `>` only on the right."""
    rows: list[tuple[str, str, str]] = []
    for group in groups(pair.changes, context):
        start, end, begin, _ = span(group, context, len(pair.old))
        if rows:
            rows.append(("", "", ""))
        rows.append((f"line {start + pair.old_first}", " ", f"line {begin + pair.new_first}"))
        at = start
        for change in group:
            rows.extend((_cell(line), " ", _cell(line)) for line in pair.old[at : change.old_start])
            rows.extend(_changed_rows(pair, change))
            at = change.old_end
        rows.extend((_cell(line), " ", _cell(line)) for line in pair.old[at:end])
    width = max((len(left) for left, _, _ in rows), default=0)
    return "\n".join(f"{left:<{width}} {mark} {right}".rstrip() for left, mark, right in rows)


def places(pair: Pair) -> list[str]:
    """Where lines were changed, added or removed, one sentence each."""
    changes = []
    for change in pair.changes:
        old = _lines(change.old_start, change.old_end, pair.old_first)
        new = _lines(change.new_start, change.new_end, pair.new_first)
        if change.old_start == change.old_end:
            changes.append(f"{new} added")
        elif change.new_start == change.new_end:
            changes.append(f"{old} removed")
        else:
            changes.append(f"{old} changed to {new}")
    return changes


def _sides(pair: Pair, change: Change) -> tuple[Sequence[str], Sequence[str]]:
    old = pair.old[change.old_start : change.old_end]
    return old, pair.new[change.new_start : change.new_end]


def cut(line: str, start: int = 0) -> str:
    """A line as far as it is shown, from about a letter on."""
    if len(line) <= LONGEST_LINE:
        return line
    return f"{excerpt(line, start, LONGEST_LINE)} [{len(line) - LONGEST_LINE} more characters]"


def _changed_rows(pair: Pair, change: Change) -> Iterator[tuple[str, str, str]]:
    from itertools import zip_longest

    old, new = ([_plain(line) for line in side] for side in _sides(pair, change))
    starts = first_shown(old, new, most=_COLUMN - 2, lead=_COLUMN_LEAD)
    for left, right, start in zip_longest(old, new, starts):
        mark = ">" if left is None else "<" if right is None else "|"
        yield _cell(left or "", start), mark, _cell(right or "", start)


def _plain(line: str) -> str:
    return line.rstrip("\r\n").expandtabs(4)


def _cell(line: str, start: int = 0) -> str:
    return excerpt(_plain(line), start, _COLUMN - 2)


def _lines(start: int, end: int, first: int) -> str:
    if end - start == 1:
        return f"line {start + first}"
    return f"lines {start + first}-{end + first - 1}"
