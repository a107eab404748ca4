"""Where the old text is, when it is not there to the letter.

Pieces of lines may differ in line endings and typography alone. Whole lines may differ in
spaces as well, as long as one rule explains how all of them moved.
"""

from __future__ import annotations

from hermes.core.replace.folding import fold, fold_mapped, is_word, joins, same_tokens, token_spans
from hermes.core.replace.indentation import Shift, find_shift
from hermes.core.replace.source import split_lines, unified

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes.core.replace.source import Source

# What had to be bridged, from the least to the most.
EXACT, ENDINGS, TYPOGRAPHY, TRAILING, INDENTATION, SPELLED, SPACES = range(7)


class Match:
    """A region of the text that the old text stands for, and how its lines have moved."""

    __slots__ = ("end", "grade", "segments", "separators", "shift", "start")

    def __init__(
        self, source: Source, start: int, end: int, *, grade: int, shift: Shift | None = None
    ) -> None:
        self.start = start
        self.end = end
        self.grade = grade
        self.shift = shift
        self.segments, separators = split_lines(source.text[start:end], source.text)
        self.separators = separators[:-1]


def exact_positions(text: str, old: str) -> list[int]:
    """Where the old text starts, to the letter; places that overlap are places too."""
    positions: list[int] = []
    position = text.find(old)
    while position >= 0:
        after = position + len(old)
        # A letter whose accent is a character of its own is another letter.
        if after >= len(text) or not (joins(text[after]) and old[-1].isalnum()):
            positions.append(position)
        position = text.find(old, position + 1)
    return positions


def find_pieces(source: Source, old: str) -> list[Match]:
    """Matches that differ in line endings or typography alone, at the ends of words."""
    text = source.text[source.starts[0] :]
    plain, wanted = unified(text), unified(old)
    if plain is not text or wanted is not old:
        found = [_at(source, source.contents, place, wanted) for place in _places(plain, wanted)]
        if found:
            return [
                Match(source, start, end, grade=ENDINGS)
                for start, end in (span for span in found if span)
            ]
    if text.isascii() and old.isascii():
        return []
    wanted = fold(wanted)
    if not wanted.strip():
        return []
    folded = fold(plain)
    lines = folded.split("\n")
    matches = []
    for place in _places(folded, wanted):
        span = _at(source, lines, place, wanted, mapped=True)
        if span and _whole_words(folded, place, len(wanted)):
            matches.append(Match(source, *span, grade=TYPOGRAPHY))
    return matches


def find_lines(source: Source, old: Sequence[str], new: Sequence[str]) -> list[Match]:
    """The closest matches of whole lines; `old` and `new` are lines, "" last for a line's end."""
    lines = list(old)
    tail = len(lines) > 1 and not lines[-1]
    if tail:
        lines.pop()
    if not any(line.strip() for line in lines):
        return []
    folded = [fold(line) for line in lines]
    contents = source.contents
    plain = source.text.isascii()
    folded_contents = contents if plain else fold("\n".join(contents)).split("\n")
    tabs: bool | None = None
    matches: list[Match] = []
    for start in _candidates(folded_contents, folded):
        grade = TRAILING
        for index, line in enumerate(lines):
            content = contents[start + index]
            if content.rstrip() == line.rstrip():
                continue
            level = _grade(line, content, folded[index], folded_contents[start + index])
            if level is None:
                break
            grade = max(grade, level)
        else:
            if tabs is None:
                tabs = _uses_tabs(contents)
            match = _moved(source, start, lines, new, grade=grade, tail=tail, tabs=tabs)
            if match is not None:
                matches.append(match)
    closest = min((match.grade for match in matches), default=EXACT)
    return [match for match in matches if match.grade == closest]


def _grade(line: str, content: str, folded: str, folded_content: str) -> int | None:
    if content.strip() == line.strip():
        return INDENTATION
    if folded_content.strip() == folded.strip():
        return SPELLED
    return SPACES if same_tokens(folded, folded_content) else None


def _moved(
    source: Source,
    start: int,
    lines: Sequence[str],
    new: Sequence[str],
    *,
    grade: int,
    tail: bool,
    tabs: bool,
) -> Match | None:
    """The match of these lines, if one rule explains their indentation."""
    last = start + len(lines) - 1
    begin = source.starts[start]
    end = source.starts[last] + len(source.contents[last])
    if tail:
        end += len(source.endings[last])
    pairs = [
        (indent_of(line), indent_of(source.contents[start + index]))
        for index, line in enumerate(lines)
        if line.strip()
    ]
    indents = [indent_of(line) for line in new if line.strip()]
    shift = find_shift(pairs, indents, tabs=tabs)
    if shift is None and len(pairs) > 1 and lines[0].strip() and not pairs[0][0]:
        # Copied from the first letter on: the first line starts behind its indentation.
        if not new or not new[0].strip() or indent_of(new[0]):
            return None
        shift = find_shift(pairs[1:], indents[1:], tabs=tabs)
        begin += len(pairs[0][1])
    return None if shift is None else Match(source, begin, end, grade=grade, shift=shift)


def indent_of(line: str) -> str:
    """The white space that a line starts with."""
    return line[: len(line) - len(line.lstrip())]


def _candidates(contents: Sequence[str], lines: Sequence[str]) -> Iterator[int]:
    """Where the lines may start: every place that has their longest word."""
    words = [
        (end - start, index, line[start:end])
        for index, line in enumerate(lines)
        for start, end in token_spans(line)
    ]
    _, offset, word = max(words, key=lambda found: (is_word(found[2][0]), found[0]))
    limit = len(contents) - len(lines)
    for index, content in enumerate(contents):
        if word in content and 0 <= index - offset <= limit:
            yield index - offset


def _places(text: str, wanted: str) -> Iterator[int]:
    place = text.find(wanted)
    while place >= 0:
        yield place
        place = text.find(wanted, place + 1)


def _at(
    source: Source, lines: Sequence[str], place: int, wanted: str, *, mapped: bool = False
) -> tuple[int, int] | None:
    """A span of the text, from a place in its unified or folded form."""
    start, end = _position(lines, place), _position(lines, place + len(wanted))
    spans = []
    for line, column in (start, end):
        offset = column
        if mapped:
            folded, places = fold_mapped(source.contents[line])
            inside = 0 < column < len(folded) and places[column] == places[column - 1]
            if folded != lines[line] or inside:
                return None  # it would cut a character in two
            offset = places[column]
        spans.append(source.starts[line] + offset)
    return spans[0], spans[1]


def _position(lines: Sequence[str], place: int) -> tuple[int, int]:
    for index, line in enumerate(lines):
        if place <= len(line):
            return index, place
        place -= len(line) + 1
    return len(lines) - 1, len(lines[-1])


def _whole_words(text: str, place: int, length: int) -> bool:
    end = place + length
    before = place > 0 and is_word(text[place - 1]) and is_word(text[place])
    after = end < len(text) and is_word(text[end]) and is_word(text[end - 1])
    return not before and not after


def _uses_tabs(contents: Sequence[str]) -> bool:
    tabs = sum(content[:1] == "\t" for content in contents)
    return tabs > sum(content[:1] == " " for content in contents)
