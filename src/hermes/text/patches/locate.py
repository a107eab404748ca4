"""Hunk location: by content, headings, order of hunks, and line numbers last."""

from __future__ import annotations

from hermes.core.errors import EditError
from hermes.text.patches.model import CONTEXT
from hermes.text.replace.errors import candidates
from hermes.text.replace.match import EXACT, Match, indent_of
from hermes.text.replace.needle_variants import find_block
from hermes.text.replace.source_lines import fold, is_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes.text.patches.model import Hunk
    from hermes.text.replace.source_lines import Source


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
