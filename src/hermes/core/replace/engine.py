"""replace_text: exact first, then by how little has to be bridged."""

from __future__ import annotations

from hermes.core.errors import EditError
from hermes.core.replace.elision import elisions
from hermes.core.replace.folding import is_word
from hermes.core.replace.indentation import ShiftError
from hermes.core.replace.matching import (
    EXACT,
    Match,
    exact_positions,
    find_lines,
    find_pieces,
)
from hermes.core.replace.refusals import AlreadyAppliedError, ambiguous, elided, not_found
from hermes.core.replace.source import BOM, Source, unified
from hermes.core.replace.spelling import readings
from hermes.core.replace.transfer import rewritten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMES = ("exact", "line-endings", "typography", "trailing-whitespace", "indentation",
          "typography", "whitespace")  # fmt: skip
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
    left_out = [line for line in elisions(new) if line not in elisions(old)]
    if left_out:
        raise elided(left_out, "new")
    positions = exact_positions(text, old)
    if positions:
        return _exact(text, old, new, positions, replace_all=replace_all)
    source = Source(text)
    found = _found(source, old, new)
    if found is None:
        line = _applied_at(source, new)
        if line is not None:
            raise AlreadyAppliedError(line)
        left_out = elisions(old)
        raise elided(left_out, "old") if left_out else not_found(source, unified(old).split("\n"))
    strategy, matches, read_old, read_new = found
    return _replaced(source, matches, read_old, read_new, strategy, replace_all=replace_all)


def _exact(
    text: str, old: str, new: str, positions: list[int], *, replace_all: bool
) -> Replacement:
    if len(positions) > 1 and not replace_all:
        raise ambiguous(Source(text), [(start, start + len(old)) for start in positions])
    if "\r" in text or "\r" in new:
        source = Source(text)
        matches = [Match(source, p, p + len(old), grade=EXACT) for p in _apart(positions, old)]
        return _replaced(source, matches, old, new, "exact", replace_all=replace_all)
    spans = [(start, start + len(old)) for start in _apart(positions, old)]
    if not replace_all:
        _refuse_repetition(text, spans[0], new)
    return Replacement(_spliced(text, spans, [new] * len(spans)), strategy="exact", spans=spans)


def _apart(positions: list[int], old: str) -> list[int]:
    """Those of the places that do not overlap, from the left."""
    apart: list[int] = []
    for position in positions:
        if not apart or position >= apart[-1] + len(old):
            apart.append(position)
    return apart


def _found(source: Source, old: str, new: str) -> tuple[str, list[Match], str, str] | None:
    """How the old text can be found, with the texts as they were read for it."""
    if old.startswith(BOM):
        old, new = old.removeprefix(BOM), new.removeprefix(BOM)
    matches = _matches(source, old, new)
    if matches:
        return _NAMES[matches[0].grade], matches, old, new
    trimmed = _without_blank_edges(old, new)
    if trimmed is not None:
        matches = find_lines(source, trimmed[0].split("\n"), trimmed[1].split("\n"))
        if matches:
            return "whitespace", matches, *trimmed
    results: dict[tuple[str, int], tuple[str, list[Match], str, str]] = {}
    for name, read_old, read_new in readings(unified(old), unified(new)):
        if name == "line-numbers":
            fresh = (read_new or "").split("\n")
            matches = find_lines(source, read_old.split("\n"), fresh)
        else:
            matches = _whole_words(source, read_old) or _matches(source, read_old, read_new or "")
        if not matches:
            continue
        if read_new is None:
            raise EditError(
                "old is pasted with line numbers, and only some lines of new have them",
                hint="Send both without line numbers.",
            )
        results.setdefault((read_new, matches[0].start), (name, matches, read_old, read_new))
        if name == "line-numbers":
            break
    if len(results) > 1:
        raise EditError(
            "old is found only with its escapes resolved, and new can be read in two ways",
            hint="Send old and new as the file has them, with no escapes added.",
        )
    return next(iter(results.values()), None)


def _matches(source: Source, old: str, new: str) -> list[Match]:
    return find_pieces(source, old) or find_lines(
        source, unified(old).split("\n"), unified(new).split("\n")
    )


def _whole_words(source: Source, old: str) -> list[Match]:
    return [
        Match(source, start, start + len(old), grade=EXACT)
        for start in exact_positions(source.text, old)
        if _word_ends(source.text, start, start + len(old))
    ]


def _word_ends(text: str, start: int, end: int) -> bool:
    before = start > 0 and is_word(text[start - 1]) and is_word(text[start])
    return not before and not (end < len(text) and is_word(text[end]) and is_word(text[end - 1]))


def _without_blank_edges(old: str, new: str) -> tuple[str, str] | None:
    """Both texts without the blank lines around them, where they have the same ones."""
    before, after = unified(old).split("\n"), unified(new).split("\n")
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
        before, after = unified(old).split("\n"), unified(new).split("\n")
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


def _applied_at(source: Source, new: str) -> int | None:
    """The line of the new text, if the file has it and it can't be there by chance."""
    if len("".join(new.split())) < _TELLING:
        return None
    matches = _whole_words(source, new) or _matches(source, new, new)
    return source.line_at(matches[0].start) + 1 if matches else None
