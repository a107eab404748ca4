"""replace_text: match strategies in order of how much they tolerate."""

from __future__ import annotations

from hermes.core.errors import EditError
from hermes.text.already_applied import TELLING, applied_at
from hermes.text.replace.elision import elisions
from hermes.text.replace.errors import AlreadyAppliedError, ambiguous, elided, not_found
from hermes.text.replace.match import EXACT, Match, exact_positions, find_lines, nearest
from hermes.text.replace.needle_variants import NEW, OLD, find, name
from hermes.text.replace.reindent import rewritten
from hermes.text.replace.source_lines import ShiftError, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_REPEATING = 8  # letters that do not repeat themselves by chance
_SHORTEST = 4  # letters of a line that can be told from chance
_NEIGHBOURS = 20  # lines around an edit that tell what it means


class Replacement:
    """A text after the edit, how the place was found, and the spans replaced in the original."""

    __slots__ = ("count", "spans", "strategy", "text")

    def __init__(self, text: str, *, strategy: str, spans: list[tuple[int, int]]) -> None:
        self.text = text
        self.count = len(spans)
        self.strategy = strategy
        self.spans = spans


def replace_text(
    text: str,
    old: str,
    new: str,
    *,
    replace_all: bool = False,
    names: tuple[str, str] = ("old", "new"),
) -> Replacement:
    """Replace `old`, which must occur once, by `new`.

    Args:
        text: The whole text; everything outside the replaced spans stays byte for byte.
        old: The text to replace. Without an exact match, differences in white space,
            indentation, line endings, typography, escapes or pasted line numbers are tolerated.
        new: Its replacement; it takes the line endings and the indentation of the match.
        replace_all: Replace every occurrence instead of refusing more than one.
        names: The names of `old` and `new` in errors.

    Raises:
        EditError: No place or more than one was found, or the edit leaves text out or changes
            nothing. The hint has the text to send instead.
    """
    try:
        return _replace(text, old, new, replace_all=replace_all)
    except EditError as error:
        name(error, *names)
        raise


def _replace(text: str, old: str, new: str, *, replace_all: bool) -> Replacement:
    if not old:
        raise EditError(f"{OLD} is empty", hint="Send the text that is to be replaced.")
    if old == new:
        raise EditError(
            f"{OLD} and {NEW} are the same: nothing to change", hint=f"Send another {NEW}."
        )
    positions = exact_positions(text, old)
    if positions:
        return _exact(text, old, new, positions, replace_all=replace_all)
    source = Source(text)
    found = find(source, old, new)
    if found is None:
        raise refusal(source, old, new)
    strategy, matches, read_old, read_new = found
    return _replaced(source, matches, read_old, read_new, strategy, replace_all=replace_all)


def _exact(
    text: str, old: str, new: str, positions: list[int], *, replace_all: bool
) -> Replacement:
    if not replace_all:
        # Two of three equal lines are in two places, which overlap.
        overlapping = text.find(old, positions[0] + 1, positions[0] + 2 * len(old) - 1)
        if overlapping >= 0 and len(old) >= _REPEATING:
            positions.insert(1, overlapping)
        if len(positions) > 1:
            raise ambiguous(Source(text), [(start, start + len(old)) for start in positions])
        _refuse_other_indentation(text, old, new, positions[0])
    if "\r" in text or "\r" in new or elisions(new):
        source = Source(text)
        matches = [Match(source, p, p + len(old), grade=EXACT) for p in positions]
        return _replaced(source, matches, old, new, "exact", replace_all=replace_all)
    spans = [(start, start + len(old)) for start in positions]
    if not replace_all:
        _refuse_repetition(text, spans[0], new)
    return Replacement(_spliced(text, spans, [new] * len(spans)), strategy="exact", spans=spans)


def _refuse_other_indentation(text: str, old: str, new: str, start: int) -> None:
    """Refuse a place that is exact only because it starts inside a deeper indentation.

    The same lines in another depth are then just as good.
    """
    before = text[text.rfind("\n", 0, start) + 1 : start]
    if not before or before.strip() or not old[0].isspace() or len(old.strip()) < _SHORTEST:
        return
    source = Source(text)
    here = source.starts[source.line_at(start)]
    matches = find_lines(source, source.lines_of(old), source.lines_of(new))
    others = [(match.start, match.end) for match in matches if match.start != here]
    if others:
        raise ambiguous(source, sorted([(start, start + len(old)), *others]))


def _replaced(
    source: Source, matches: list[Match], old: str, new: str, strategy: str, *, replace_all: bool
) -> Replacement:
    text = source.text
    if len(matches) > 1 and not replace_all:
        raise ambiguous(source, [(match.start, match.end) for match in matches])
    spans: list[tuple[int, int]] = []
    pieces: list[str] = []
    for match in matches:
        if spans and match.start < spans[-1][1]:
            continue
        before, after = source.lines_of(old), source.lines_of(new)
        refuse_elisions(source, match, old, after)
        if match.shift is not None:
            _keep_last_ending(match, before, after)
        try:
            pieces.append(rewritten(source, match, before, after))
        except ShiftError as error:
            line = source.line_at(match.start) + 1
            raise EditError(
                f"{OLD} is at line {line} with another indentation, "
                f"and {NEW} can't be moved there: {error}",
                hint=f"Send {OLD} and {NEW} with the indentation of the file.",
            ) from None
        spans.append((match.start, match.end))
    if not replace_all:
        _refuse_repetition(text, spans[0], pieces[0])
    result = _spliced(text, spans, pieces)
    if result == text:
        if strategy == "exact":
            raise EditError(
                f"{OLD} and {NEW} differ in line endings alone, and those stay: nothing to change",
                hint="To change line endings, write the whole file.",
            )
        raise AlreadyAppliedError(source.line_at(spans[0][0]) + 1)
    return Replacement(result, strategy=strategy, spans=spans)


def _keep_last_ending(match: Match, old: list[str], new: list[str]) -> None:
    """Let the line end behind a block of lines stay, unless the block goes as a whole."""
    if len(old) == len(match.segments) + 1 and not old[-1]:
        old.pop()  # the file ends here, and has one line end less
        if match.segments[-1]:
            if len(new) > 1 and not new[-1]:
                new.pop()
        elif new[-1]:
            # What was taken for an empty line is the end of the file, whose line end stays.
            new.append("")
    elif len(old) > 1 and not old[-1] and new[-1]:
        match.end -= len(match.separators.pop())
        match.segments.pop()
        old.pop()


def _spliced(text: str, spans: Sequence[tuple[int, int]], pieces: Sequence[str]) -> str:
    result: list[str] = []
    reached = 0
    for (start, end), piece in zip(spans, pieces, strict=True):
        result += [text[reached:start], piece]
        reached = end
    return "".join([*result, text[reached:]])


def _refuse_repetition(text: str, span: tuple[int, int], piece: str) -> None:
    """Refuse an edit that adds something around a place which has it already."""
    start, end = span
    found = text[start:end]
    offset = piece.find(found)
    added = len("".join(piece.split())) - len("".join(found.split()))
    if offset < 0 or added < TELLING or start < offset:
        return
    if text.startswith(piece, start - offset):
        raise AlreadyAppliedError(text.count("\n", 0, start) + 1)


def refuse_elisions(source: Source, match: Match, old: str, new: list[str]) -> None:
    """Refuse a new text with elisions, judged together with its surroundings."""
    if not new:
        return
    first, last = source.line_at(match.start), source.line_at(match.end)
    indent = source.text[source.starts[first] : match.start]
    lines = [indent + new[0], *new[1:]] if not indent.strip() else new
    known = {line.strip() for line in source.lines_of(old)}
    left_out = [
        line
        for line in elisions(
            "\n".join(lines),
            before=source.contents[max(first - _NEIGHBOURS, 0) : first],
            after=source.contents[last + 1 : last + 1 + _NEIGHBOURS],
        )
        if line not in known
    ]
    if left_out:
        raise elided(left_out, NEW)


def refusal(source: Source, old: str, new: str) -> EditError:
    """Why the old text has no place: it is replaced already, it leaves text out, it differs."""
    known = {line.strip() for line in source.lines_of(old)}
    left_out = [line for line in elisions(new) if line not in known]
    if left_out:
        return elided(left_out, NEW)
    lines = source.lines_of(old)
    start = nearest(source, lines)
    applied = applied_at(source, old, new, start)
    if applied is not None:
        return AlreadyAppliedError(applied + 1)
    left_out = elisions(old)
    return elided(left_out, OLD) if left_out else not_found(source, lines, start)
