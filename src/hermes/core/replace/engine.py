"""replace_text: exact first, then by how little has to be bridged."""

from __future__ import annotations

from hermes.core.errors import EditError
from hermes.core.replace.elision import elisions
from hermes.core.replace.indentation import ShiftError
from hermes.core.replace.matching import (
    EXACT,
    Match,
    exact_positions,
    find_lines,
    find_matches,
    whole_words,
)
from hermes.core.replace.nearest import nearest
from hermes.core.replace.refusals import AlreadyAppliedError, ambiguous, elided, not_found
from hermes.core.replace.source import BOM, Source
from hermes.core.replace.spelling import first_number, readings
from hermes.core.replace.transfer import rewritten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMES = ("exact", "line-endings", "typography", "trailing-whitespace", "indentation",
          "typography", "whitespace")  # fmt: skip
_REACH = 200  # lines that others may have been added or removed since a paste
_UNMISTAKABLE = 40  # of them are no coincidence anywhere
_TELLING = 6  # letters and signs that have to be there before a repetition is no coincidence


class Replacement:
    """A text after the edit, how the place was found, and the spans replaced in the original."""

    __slots__ = ("count", "spans", "strategy", "text")

    def __init__(self, text: str, *, strategy: str, spans: list[tuple[int, int]]) -> None:
        self.text = text
        self.count = len(spans)
        self.strategy = strategy
        self.spans = spans


def replace_text(text: str, old: str, new: str, *, replace_all: bool = False) -> Replacement:
    """Put `new` in the place of `old`, which has to be in the text once.

    Args:
        text: The whole text; what lies outside the replaced spans is returned as it is.
        old: What to replace. Where it is not there to the letter, differences in white space,
            indentation, line endings, typography, escapes or pasted line numbers are bridged.
        new: What to put there; it takes the line endings and the indentation of the place.
        replace_all: Replace every occurrence instead of refusing more than one.

    Raises:
        EditError: No place or more than one was found, or the edit leaves text out or changes
            nothing. The hint says what to send instead.
    """
    if not old:
        raise EditError("old is empty", hint="Send the text that is to be replaced.")
    if old == new:
        raise EditError("old and new are the same: nothing to change", hint="Send another new.")
    positions = exact_positions(text, old)
    if positions:
        return _exact(text, old, new, positions, replace_all=replace_all)
    source = Source(text)
    found = _found(source, old, new)
    if found is None:
        raise _refusal(source, old, new)
    strategy, matches, read_old, read_new = found
    return _replaced(source, matches, read_old, read_new, strategy, replace_all=replace_all)


def _exact(
    text: str, old: str, new: str, positions: list[int], *, replace_all: bool
) -> Replacement:
    if not replace_all:
        overlapping = text.find(old, positions[0] + 1)  # "aba" is in "ababa" twice
        if overlapping >= 0 and overlapping < positions[0] + len(old):
            positions.insert(1, overlapping)
        if len(positions) > 1:
            raise ambiguous(Source(text), [(start, start + len(old)) for start in positions])
    if "\r" in text or "\r" in new or elisions(new):
        source = Source(text)
        matches = [Match(source, p, p + len(old), grade=EXACT) for p in positions]
        return _replaced(source, matches, old, new, "exact", replace_all=replace_all)
    spans = [(start, start + len(old)) for start in positions]
    if not replace_all:
        _refuse_repetition(text, spans[0], new)
    return Replacement(_spliced(text, spans, [new] * len(spans)), strategy="exact", spans=spans)


def _found(source: Source, old: str, new: str) -> tuple[str, list[Match], str, str] | None:
    """How the old text can be found, with the texts as they were read for it."""
    if old.startswith(BOM):
        old, new = old.removeprefix(BOM), new.removeprefix(BOM)
    matches = find_matches(source, old, new)
    if matches:
        return _NAMES[matches[0].grade], matches, old, new
    trimmed = _without_blank_edges(source.lines_of(old), source.lines_of(new))
    if trimmed is not None:
        matches = find_lines(source, trimmed[0].split("\n"), trimmed[1].split("\n"))
        if matches:
            return "whitespace", matches, *trimmed
    unread = ""
    results: dict[tuple[str, int], tuple[str, list[Match], str, str]] = {}
    for name, read_old, read_new in readings(_lined(source, old), _lined(source, new)):
        if name == "line-numbers":
            fresh = (read_new or "").split("\n")
            matches = find_lines(source, read_old.split("\n"), fresh)
            number = first_number(old)
            reach = _REACH if "\n" in read_old.strip("\n") else _REACH // 10
            matches = [m for m in matches if abs(source.line_at(m.start) + 1 - number) <= reach]
        else:
            matches = _whole_words(source, read_old) or find_matches(
                source, read_old, read_new or ""
            )
        if not matches:
            continue
        if read_new is None:
            unread = name
            continue
        results.setdefault((read_new, matches[0].start), (name, matches, read_old, read_new))
        if name == "line-numbers":
            break
    if len(results) > 1 or (unread and not results):
        why = "can be read in two ways" if results else f"can't be read without its {unread}"
        raise EditError(
            f"old is not in the file as it was sent, only without its {unread or 'escapes'}, "
            f"and new {why}",
            hint="Send old and new as the file has them: no escapes or line numbers added.",
        )
    return next(iter(results.values()), None)


def _whole_words(source: Source, old: str) -> list[Match]:
    return [
        Match(source, start, start + len(old), grade=EXACT)
        for start in exact_positions(source.text, old)
        if whole_words(source.text, start, start + len(old))
    ]


def _lined(source: Source, text: str) -> str:
    return "\n".join(source.lines_of(text))


def _without_blank_edges(before: list[str], after: list[str]) -> tuple[str, str] | None:
    """Both texts without the blank lines around them, where they have the same ones."""
    changed = False
    while len(before) > 1 and len(after) > 1 and not before[0].strip() and not after[0].strip():
        del before[0], after[0]
        changed = True
    while len(before) > 1 and len(after) > 1 and not before[-1].strip() and not after[-1].strip():
        del before[-1], after[-1]
        changed = True
    return ("\n".join(before), "\n".join(after)) if changed else None


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
        _refuse_elisions(source, match, old, after)
        if match.shift is not None:
            _keep_last_ending(match, before, after)
        try:
            pieces.append(rewritten(source, match, before, after))
        except ShiftError as error:
            line = source.line_at(match.start) + 1
            raise EditError(
                f"old is at line {line} with another indentation, and new can't be moved there: "
                f"{error}",
                hint="Send old and new with the indentation of the file.",
            ) from None
        spans.append((match.start, match.end))
    if not replace_all:
        _refuse_repetition(text, spans[0], pieces[0])
    result = _spliced(text, spans, pieces)
    if result == text:
        if strategy == "exact":
            raise EditError(
                "old and new differ in line endings alone, and those stay: nothing to change"
            )
        raise AlreadyAppliedError(source.line_at(spans[0][0]) + 1)
    return Replacement(result, strategy=strategy, spans=spans)


def _keep_last_ending(match: Match, old: list[str], new: list[str]) -> None:
    """Let the line end behind a block of lines stay, unless the block goes as a whole."""
    if len(old) == len(match.segments) + 1 and not old[-1]:
        old.pop()  # the file ends here without a line end
        if len(new) > 1 and not new[-1]:
            new.pop()
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
    if offset < 0 or added < _TELLING or start < offset:
        return
    if text.startswith(piece, start - offset):
        raise AlreadyAppliedError(text.count("\n", 0, start) + 1)


def _refuse_elisions(source: Source, match: Match, old: str, new: list[str]) -> None:
    """Refuse a new text that leaves something out, judged by what will stand around it."""
    first, last = source.line_at(match.start), source.line_at(match.end)
    indent = source.text[source.starts[first] : match.start]
    lines = [indent + new[0], *new[1:]] if not indent.strip() else new
    known = {line.strip() for line in source.lines_of(old)}
    left_out = [
        line
        for line in elisions(
            "\n".join(lines), before=source.contents[:first], after=source.contents[last + 1 :]
        )
        if line not in known
    ]
    if left_out:
        raise elided(left_out, "new")


def _refusal(source: Source, old: str, new: str) -> EditError:
    """Why the old text has no place: it is replaced already, it leaves text out, it differs."""
    known = {line.strip() for line in source.lines_of(old)}
    left_out = [line for line in elisions(new) if line not in known]
    if left_out:
        return elided(left_out, "new")
    lines = source.lines_of(old)
    start = nearest(source, lines)
    applied = _applied_at(source, new, start, len(lines))
    if applied is not None:
        return AlreadyAppliedError(applied)
    left_out = elisions(old)
    return elided(left_out, "old") if left_out else not_found(source, lines, start)


def _applied_at(source: Source, new: str, start: int | None, length: int) -> int | None:
    """The line of the new text, if it stands alone and about where the old text would be."""
    size = len("".join(new.split()))
    if size < _TELLING:
        return None
    matches = _whole_words(source, new) or find_matches(source, new, new)
    if len(matches) != 1:
        return None
    line = source.line_at(matches[0].start)
    last = source.line_at(matches[0].end)
    near = start is not None and start - 2 <= last and line <= start + length + 2
    return line + 1 if near or size >= _UNMISTAKABLE else None
