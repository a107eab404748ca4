"""apply_hunks: the text after all hunks of one file, or the reason why none was applied."""

from __future__ import annotations

from hermes.core.errors import EditError
from hermes.core.replace.engine import refuse_elisions
from hermes.core.replace.indentation import ShiftError
from hermes.core.replace.naming import name
from hermes.core.replace.source import Source
from hermes.core.replace.transfer import transferred
from hermes.files.patches.locating import Site, core, label, line_count, settle
from hermes.files.patches.repeating import repeated_line, result_lines
from hermes.files.patches.values import ADDED, CONTEXT, REMOVED, Applied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes.files.patches.values import Hunk


def apply_hunks(text: str, hunks: Sequence[Hunk]) -> Applied:
    """The text with all hunks applied; `already` when it has every one of them in place.

    Line endings, byte order mark and a missing final line end stay as the text has them.

    Raises:
        EditError: A hunk has no place or several, or the hunks are out of order. The message
            names the hunk, the hint has what is needed to send it again.
    """
    try:
        return _applied(text, hunks)
    except EditError as error:
        name(error, "the old part of the hunk", "the new part")
        raise


def _applied(text: str, hunks: Sequence[Hunk]) -> Applied:
    source = Source(text)
    sites = [Site(number, hunk, source) for number, hunk in enumerate(hunks, 1)]
    places = {site.number: site.allowed(source, site.lines, site.size) for site in sites}
    done = result_lines(source, [site for site in sites if not places[site.number]])
    todo = [site for site in sites if site.number not in done]
    for site in todo:
        site.lines = places[site.number]
    lines = settle(source, todo) if todo else []
    for site, line in zip(todo, lines, strict=True):
        repeated = repeated_line(source, site, line)
        if repeated is not None:
            done[site.number] = repeated
    if sites and len(done) == len(sites):
        return Applied(text, ["already-applied"] * len(sites), already=True)
    for site in sites:
        if site.number in done:
            raise EditError(
                f"{label(site)} is already applied at line {done[site.number] + 1}, others are "
                "not; nothing was changed",
                hint="Send the patch again without that hunk.",
            )
    edits = [_edit(source, site, line) for site, line in zip(sites, lines, strict=True)]
    result = _spliced(source, edits, bare=_ends_bare(source, sites, lines))
    if sites and result == text:
        # White space and typography that were to change are as the patch wants them; a line that
        # is removed and added unchanged asks for nothing.
        if all(hunk.old == hunk.new and hunk.old_bare == hunk.new_bare for hunk in hunks):
            raise EditError(
                "the patch removes and adds the same lines: nothing to change",
                hint="Line endings stay as they are; to change them, write the whole file.",
            )
        return Applied(text, ["already-applied"] * len(sites), already=True)
    return Applied(result, [site.strategy for site in sites])


def _edit(source: Source, site: Site, place: int) -> tuple[int, int, list[tuple[str, str]]]:
    """The lines that a hunk replaces, and (content, ending) of those that take their place."""
    old, new = site.hunk.old, site.hunk.new
    match = site.match(source, place)
    try:
        refuse_elisions(source, match, "\n".join(old), new)
        lines = transferred(match, old, new, _stretches(site.hunk))
    except ShiftError as error:
        raise EditError(
            f"{label(site)} is at line {place + 1} with another indentation, and its new lines "
            f"can't be moved there: {error}; nothing was changed",
            hint="Send the hunk with the indentation of the file.",
        ) from None
    except EditError as error:
        raise EditError(f"{label(site)}: {error}", hint=error.hint) from None
    head, end = core(site.hunk, site.size)
    ending = source.ending_at(min(place + head, len(source.contents) - 1)) or "\n"
    pairs: list[tuple[str, str]] = []
    for content, origin in lines[head : len(lines) - len(old) + end]:
        if origin is not None:
            ending = source.endings[place + origin] or ending
        pairs.append((content, ending))
    return place + head, place + end, pairs


def _stretches(hunk: Hunk) -> Iterator[tuple[str, int, int, int, int]]:
    """What becomes of the old lines of a hunk, as its marks say."""
    first = last = start = end = 0
    before = ""
    for mark, _ in [*hunk.lines, ("", "")]:
        kept = mark == CONTEXT
        if before and (kept != (before == CONTEXT) or not mark):
            yield "equal" if before == CONTEXT else "replace", first, last, start, end
            first, start = last, end
        last += mark in (CONTEXT, REMOVED)
        end += mark in (CONTEXT, ADDED)
        before = mark


def _ends_bare(source: Source, sites: Sequence[Site], lines: Sequence[int]) -> bool:
    """Whether the result has no line end at its end: as before, unless a hunk says otherwise."""
    if sites:
        hunk = sites[-1].hunk
        reaches = lines[-1] + sites[-1].size >= line_count(source)
        if reaches and (hunk.old_bare != hunk.new_bare or not line_count(source)):
            return hunk.new_bare
    return bool(source.contents[-1])


def _spliced(
    source: Source, edits: Sequence[tuple[int, int, list[tuple[str, str]]]], *, bare: bool
) -> str:
    text, starts = source.text, source.starts
    endings = ("\n", "\r") if source.returns else ("\n",)
    near = source.ending_at(0) or "\n"
    pieces: list[str] = []
    reached = 0
    for first, last, pairs in edits:
        kept = text[reached : starts[first]]
        if pairs and len(kept) > starts[0] and not kept.endswith(endings):
            kept += near  # the last line of the file had no end so far
        pieces += [kept, *(content + ending for content, ending in pairs)]
        reached = starts[last]
    result = "".join([*pieces, text[reached:]])
    ended = result.endswith(endings)
    if bare and ended:
        return result[: -2 if result.endswith("\r\n") else -1]
    if not bare and not ended and len(result) > starts[0]:
        return result + near
    return result
