"""Apply patches: locate all hunks of one file, then apply all or none."""

from __future__ import annotations

from hermes.core.errors import EditError
from hermes.text.patches.model import ADDED, CONTEXT, REMOVED, Applied
from hermes.text.replace.engine import TELLING, refusal, refuse_elisions, removed_is_gone
from hermes.text.replace.errors import AlreadyAppliedError, candidates
from hermes.text.replace.match import EXACT, Match, indent_of, nearest, transferred
from hermes.text.replace.needle_variants import find_block, name
from hermes.text.replace.source_lines import ShiftError, Source, fold, is_word

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hermes.text.patches.model import Hunk


class Site:
    """Candidate positions of one hunk, and the differences that were tolerated."""

    __slots__ = ("_bridged", "hunk", "lines", "number", "size", "strategy")

    def __init__(self, number: int, hunk: Hunk, source: Source) -> None:
        self.number = number
        self.hunk = hunk
        self.size = len(hunk.old)
        self.strategy = "exact"
        self._bridged: dict[int, Match] = {}
        self.lines = lines_at(source, hunk.old)
        if not self.lines and any(line.strip() for line in hunk.old):
            # The empty line behind stands for the end of the last one.
            self.strategy, matches = find_block(source, [*hunk.old, ""], [*hunk.new, ""])
            for match in matches:
                line = source.line_at(match.start)
                whole = source.starts[line] == match.start
                if whole and line + self.size <= line_count(source):
                    self._bridged[line] = match
            self.lines = sorted(self._bridged)

    def match(self, source: Source, line: int) -> Match:
        """The place that starts with this line."""
        if line in self._bridged:
            return self._bridged[line]
        last = line + self.size - 1
        start = source.starts[line]
        end = source.starts[last] + len(source.contents[last]) if self.size else start
        return Match(source, start, end, grade=EXACT)

    def allowed(self, source: Source, lines: Sequence[int], size: int) -> list[int]:
        """Those places of so many lines that are below its headings, and last if it is last."""
        kept = list(lines)
        if self.hunk.headings and kept:
            ranges = _below(source, self.hunk.headings, label(self))
            kept = [line for line in kept if _in_any(line, ranges)]
        if self.hunk.at_end:
            kept = [line for line in kept if line + size == line_count(source)]
        return kept

    def outside(self) -> EditError:
        """The error for lines that are in the file, but not where the hunk says."""
        where = ", ".join(str(line + 1) for line in self.lines[:20])
        place = "at the end of the file"
        if self.hunk.headings:
            place = f"below `{self.hunk.headings[-1]}`"
        return EditError(
            f"{label(self)} is at line {where} of the file, but not {place}; nothing was changed",
            hint="Put the line behind `@@` that stands above the place, or none; leave out "
            "`*** End of File` where the file goes on.",
        )


def label(site: Site) -> str:
    """How a message speaks about a hunk."""
    return f"hunk {site.number} (line {site.hunk.line} of the patch)"


def line_count(source: Source) -> int:
    """The number of lines; an empty rest after the last line end does not count."""
    return len(source.contents) - (not source.contents[-1])


def core(hunk: Hunk, size: int) -> tuple[int, int]:
    """The part of so many lines that a hunk changes: without the context on both sides."""
    marks = [mark for mark, _ in hunk.lines]
    head = next(k for k, mark in enumerate(marks) if mark != CONTEXT)
    tail = next(k for k, mark in enumerate(reversed(marks)) if mark != CONTEXT)
    return head, size - tail


def settle(source: Source, sites: Sequence[Site]) -> list[int]:
    """The one line for each hunk that keeps their order; EditError when there are several."""
    cores = [core(site.hunk, site.size) for site in sites]
    places = [site.lines for site in sites]
    first, last = assigned(cores, places)
    if not first:
        raise EditError(
            "the hunks are not in the order of the file, or two of them change the same lines; "
            "nothing was changed",
            hint="Send the hunks in the order of the file, those that touch as one.",
        )
    if first == last:
        return first
    chosen = _by_number(sites, places, first, last)
    settled, latest = assigned(cores, chosen)
    if settled and settled == latest:
        return settled
    unsure = [k for k, (one, other) in enumerate(zip(first, last, strict=True)) if one != other]
    raise _ambiguous(source, sites[next((k for k in unsure if len(chosen[k]) > 1), unsure[0])])


def assigned(
    cores: Sequence[tuple[int, int]], places: Sequence[Sequence[int]]
) -> tuple[list[int], list[int]]:
    """The first and the last way to give each hunk a place in their order; [] if there is none."""
    first: list[int] = []
    above, reached = -1, 0  # where the hunk before starts, and where its change ends
    for (head, end), lines in zip(cores, places, strict=True):
        line = next((p for p in lines if p > above and p + head >= reached), None)
        if line is None:
            return [], []
        first.append(line)
        above, reached = line, line + end
    last: list[int] = []
    below, reached = None, 0
    for (head, end), lines in zip(reversed(cores), reversed(places), strict=True):
        line = next(
            p for p in reversed(lines) if below is None or (p < below and p + end <= reached)
        )
        last.append(line)
        below, reached = line, line + head
    return first, last[::-1]


def _by_number(
    sites: Sequence[Site], places: Sequence[list[int]], first: Sequence[int], last: Sequence[int]
) -> list[list[int]]:
    """The places with only the stated line left where a hunk has several and it is one of them."""
    chosen: list[list[int]] = []
    drift = 0  # how far the hunk before was from its stated line
    for index, site in enumerate(sites):
        lines, start = places[index], site.hunk.start
        if first[index] == last[index]:
            lines = [first[index]]
        elif start is not None and site.strategy == "exact":
            stated = {start - 1, start - 1 + drift}.intersection(lines)
            lines = list(stated) if len(stated) == 1 else lines
        if start is not None and len(lines) == 1:
            drift = lines[0] - (start - 1)
        chosen.append(lines)
    return chosen


def _ambiguous(source: Source, site: Site) -> EditError:
    matches = [site.match(source, line) for line in site.lines]
    listed, copies = candidates(source, [(match.start, match.end) for match in matches])
    return EditError(
        f"{label(site)} fits {len(matches)} places; nothing was changed:\n{listed}",
        hint="Add lines around it to the hunk so that they name one place, or put the line "
        f"above it (its function, its class) behind `@@`.\n{copies}".rstrip(),
    )


def lines_at(source: Source, old: list[str]) -> list[int]:
    """Where lines stand to the letter; without any, the place in an empty file."""
    contents = source.contents
    if not old:
        return [0] if contents == [""] else []
    # The longest line is the rarest one, and the only one that is looked for everywhere.
    offset = max(range(len(old)), key=lambda index: len(old[index]))
    places: list[int] = []
    place = offset
    end = line_count(source) - len(old) + offset + 1
    while place < end:
        try:
            place = contents.index(old[offset], place, end)
        except ValueError:
            break
        if contents[place - offset : place - offset + len(old)] == old:
            places.append(place - offset)
        place += 1
    return places


def _in_any(line: int, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(first <= line < last for first, last in ranges)


def _below(source: Source, headings: Sequence[str], name: str) -> list[tuple[int, int]]:
    """The stretches of lines that belong to the headings, each inside the one before."""
    ranges = [(0, len(source.contents))]
    for heading in headings:
        found = _heading_lines(source, heading)
        if not found:
            raise EditError(
                f"{name}: no line of the file reads `{heading}`; nothing was changed",
                hint="Behind `@@`, put a line as the file has it, or nothing.",
            )
        ranges = [_scope(source.contents, line) for line in found if _in_any(line, ranges)]
    return ranges


def _heading_lines(source: Source, heading: str) -> list[int]:
    wanted = fold(heading).strip()
    stripped = [line.strip() for line in source.folded]
    whole = [line for line, text in enumerate(stripped) if text == wanted]
    if whole:
        return whole
    return [
        line
        for line, text in enumerate(stripped)
        if text.startswith(wanted) and not (is_word(wanted[-1]) and is_word(text[len(wanted)]))
    ]


def _scope(contents: Sequence[str], heading: int) -> tuple[int, int]:
    """The lines that belong to a heading: those indented below it, or all where none are."""
    depth = len(indent_of(contents[heading]).expandtabs())
    last = heading + 1
    deeper = False
    while last < len(contents):
        line = contents[last]
        text = line.strip()
        inside = len(indent_of(line).expandtabs()) > depth
        # A bracket, a label or a remark at the margin ends nothing.
        if text and not inside and text[0] not in "(){}[]#" and not _is_label(text):
            break
        deeper |= bool(text) and inside
        last += 1
    return heading, last if deeper else len(contents)


def _is_label(text: str) -> bool:
    return text.endswith(":") and text[:-1].isalpha()


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


def apply_hunks(text: str, hunks: Sequence[Hunk]) -> Applied:
    """The text with all hunks applied; `already` when it has every one of them in place.

    Line endings, byte order mark and a missing final line end stay as the text has them.

    Raises:
        EditError: A hunk has no place or several, or the hunks are out of order. The message
            names the hunk, the hint has the lines to send it again.
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
    """The opcodes of a hunk, by its line marks."""
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
