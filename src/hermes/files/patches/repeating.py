"""Hunks whose result is in the file already: a patch that is sent twice changes nothing."""

from __future__ import annotations

from hermes.core.errors import EditError
from hermes.core.replace import AlreadyAppliedError
from hermes.core.replace.applied import TELLING, removed_is_gone
from hermes.core.replace.engine import refusal
from hermes.core.replace.folding import is_word
from hermes.core.replace.nearest import nearest
from hermes.files.patches.locating import assigned, core, label, line_count, lines_at
from hermes.files.patches.values import ADDED, CONTEXT, REMOVED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.core.replace.source import Source
    from hermes.files.patches.locating import Site
    from hermes.files.patches.values import Hunk


def result_lines(source: Source, sites: Sequence[Site]) -> dict[int, int]:
    """By their number, the line where the result of each hunk is; their old lines are nowhere.

    Raises:
        EditError: One is nowhere either; the hint has the place that was probably meant.
    """
    places = [
        site.allowed(source, lines_at(source, site.hunk.new), len(site.hunk.new)) for site in sites
    ]
    first, last = assigned([core(site.hunk, len(site.hunk.new)) for site in sites], places)
    result: dict[int, int] = {}
    for index, site in enumerate(sites):
        # Equal results in several places are told apart by the order of the hunks.
        known = first[index] if first and first[index] == last[index] else None
        line = _in_context(source, site.hunk, places[index], known)
        result[site.number] = _otherwise(source, site) if line is None else line
    return result


def _otherwise(source: Source, site: Site) -> int:
    hunk = site.hunk
    if site.lines:
        raise site.outside()
    if not hunk.old:
        if hunk.new and source.contents[: line_count(source)] == hunk.new:
            return 0
        raise EditError(
            f"{label(site)} has no line of the file, so its place is not known; "
            "nothing was changed",
            hint="Add the lines above and below the place to the hunk.",
        )
    error = refusal(source, "\n".join(hunk.old), "\n".join(hunk.new))
    if isinstance(error, AlreadyAppliedError):
        return error.line - 1
    raise EditError(f"{label(site)}: {error}", hint=error.hint)


def repeated_line(source: Source, site: Site, line: int) -> int | None:
    """The line where the result of a hunk is, although its old lines are there; None if not."""
    hunk = site.hunk
    old, new = hunk.old, hunk.new
    if len("".join(new).strip()) < TELLING:
        return None
    stated = (hunk.new_start or 0) - 1
    if 0 <= stated != line and stated in lines_at(source, new) and line != _start(hunk):
        return stated  # what is left elsewhere is another place
    for offset in range(len(new) - len(old) + 1):
        start = line - offset
        added = "".join(new[:offset] + new[offset + len(old) :])
        # A closing bracket more may be what is wanted; a word that is there already is not.
        if start < 0 or new[offset : offset + len(old)] != old or not any(map(is_word, added)):
            continue
        if line == _start(hunk) and start != stated:
            continue  # the file is as the numbers say it is before, not after
        there = source.contents[start : min(start + len(new), line_count(source))]
        bridged = site.strategy != "exact" and [*map(str.strip, there)] == [*map(str.strip, new)]
        if there == new or bridged:
            return start
    return None


def _start(hunk: Hunk) -> int:
    return (hunk.start or 0) - 1


def _in_context(source: Source, hunk: Hunk, places: Sequence[int], known: int | None) -> int | None:
    """Where the result stands between its context, if that can only be this hunk's."""
    stated = (hunk.new_start or 0) - 1
    line = stated if stated in places else known
    if line is None or not hunk.old or not (line == stated or _tells(source, hunk)):
        return None
    if not removed_is_gone(source, hunk.old, hunk.new, line, line + len(hunk.new)):
        return None
    start = nearest(source, hunk.old)
    # Where something else resembles the old lines more, that is what was meant.
    meant = start is None or start - len(hunk.new) <= line <= start + len(hunk.old)
    return line if meant or hunk.headings or hunk.at_end else None


def _tells(source: Source, hunk: Hunk) -> bool:
    """Whether the result of a hunk is no coincidence: something new in a place that is named."""
    context = "".join([text for mark, text in hunk.lines if mark == CONTEXT] + hunk.headings)
    added = "".join(text for mark, text in hunk.lines if mark == ADDED)
    if any(map(is_word, added)):
        return hunk.at_end or any(map(is_word, context))
    if len("".join(context.split())) >= TELLING and any(map(is_word, context)):
        return True
    # Lines were taken from between two others, and are nowhere else.
    removed = {text.strip() for mark, text in hunk.lines if mark == REMOVED}
    between = all(
        mark == CONTEXT and any(map(is_word, text))
        for mark, text in (hunk.lines[0], hunk.lines[-1])
    )
    return between and removed.isdisjoint(line.strip() for line in source.contents)
