"""Matching regions of a text, the nearest other region, and the new text adapted to its region."""

from __future__ import annotations

from collections import Counter

from hermes.text.replace.source_lines import (
    Shift,
    find_shift,
    fold,
    fold_mapped,
    is_word,
    joins,
    same_tokens,
    split_lines,
    token_spans,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hermes.text.replace.source_lines import Source


# What had to be bridged, from the least to the most.
EXACT, ENDINGS, TYPOGRAPHY, TRAILING, INDENTATION, SPELLED, SPACES = range(7)

_MOST_EFFORT = 400_000  # lines compared


class Match:
    """A region of the text that the old text stands for, and how its lines have moved."""

    __slots__ = ("end", "grade", "segments", "separators", "shift", "start")

    def __init__(
        self, source: Source, start: int, end: int, *, grade: int, shift: Shift | None = None
    ) -> None:
        if source.text[start : start + 1] == "\n" and source.text[start - 1 : start] == "\r":
            start -= 1  # a line end is one thing, even where old starts with its second half
        self.start = start
        self.end = end
        self.grade = grade
        self.shift = shift
        self.segments, separators = split_lines(source.text[start:end], returns=source.returns)
        self.separators = separators[:-1]


def exact_positions(text: str, old: str) -> list[int]:
    """Where the old text starts, to the letter, without overlap."""
    positions: list[int] = []
    position = text.find(old)
    while position >= 0:
        after = position + len(old)
        # A letter whose accent is a character of its own is another letter.
        if after >= len(text) or not (joins(text[after]) and old[-1].isalnum()):
            positions.append(position)
        position = text.find(old, after)
    return positions


def find_matches(source: Source, old: str, new: str) -> list[Match]:
    """The closest matches of a text that is not there to the letter; all of one grade."""
    before, after = source.lines_of(old), source.lines_of(new)
    matches = _other_endings(source, old, before) or find_lines(source, before, after)
    if matches or (source.text.isascii() and old.isascii()):
        return matches
    return _other_typography(source, before) or find_lines(source, before, after, folded=True)


def _other_endings(source: Source, old: str, lines: Sequence[str]) -> list[Match]:
    if "\r" not in source.text and "\r" not in old:
        return []
    wanted = "\n".join(lines)
    text = "\n".join(source.contents)
    spans = [_at(source, source.contents, place, wanted) for place in _places(text, wanted)]
    return [Match(source, *span, grade=ENDINGS) for span in spans if span]


def _other_typography(source: Source, lines: Sequence[str]) -> list[Match]:
    """Pieces in other characters that say the same; they begin and end with whole words."""
    wanted = fold("\n".join(lines))
    if not wanted.strip():
        return []
    folded = "\n".join(source.folded)
    matches = []
    for place in _places(folded, wanted):
        span = _at(source, source.folded, place, wanted, mapped=True)
        if span and whole_words(folded, place, place + len(wanted)):
            matches.append(Match(source, *span, grade=TYPOGRAPHY))
    return matches


def find_lines(
    source: Source, old: Sequence[str], new: Sequence[str], *, folded: bool = False
) -> list[Match]:
    """The closest matches of whole lines; `old` and `new` are lines, "" last for a line's end.

    With `folded`, typography does not count.
    """
    lines = list(old)
    tail = len(lines) > 1 and not lines[-1]
    if tail:
        lines.pop()
    wanted = [fold(line) for line in lines] if folded else lines
    if not any(line.strip() for line in wanted):
        return []
    contents = source.folded if folded else source.contents
    tabs: bool | None = None
    matches: list[Match] = []
    effort = 0
    for start in _candidates(contents, wanted):
        if effort > _MOST_EFFORT:
            return []  # a text of nothing but repetitions; refusing is always right
        grade = SPELLED if folded else TRAILING
        for index, line in enumerate(wanted):
            content = contents[start + index]
            if content.rstrip() == line.rstrip():
                continue
            if content.strip() == line.strip():
                grade = max(grade, INDENTATION)
            elif same_tokens(line, content):
                grade = SPACES
            else:
                effort += index
                break
        else:
            effort += len(lines)
            if tabs is None:
                tabs = _uses_tabs(contents)
            match = _moved(source, start, lines, new, grade=grade, tail=tail, tabs=tabs)
            if match is not None:
                matches.append(match)
    closest = min((match.grade for match in matches), default=EXACT)
    return [match for match in matches if match.grade == closest]


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


def whole_words(text: str, start: int, end: int) -> bool:
    """Whether a span neither begins nor ends inside a word."""
    before = start > 0 and is_word(text[start - 1]) and is_word(text[start])
    return not before and not (end < len(text) and is_word(text[end]) and is_word(text[end - 1]))


def _uses_tabs(contents: Sequence[str]) -> bool:
    tabs = sum(content[:1] == "\t" for content in contents)
    return tabs > sum(content[:1] == " " for content in contents)


_FEATURES = 24  # words looked for in the whole text
_COMMON = 200  # a word on more lines than this points nowhere
_CLOSEST = 8  # places compared letter by letter
_SAMPLE = 12  # lines of the old text that are compared
_LONGEST = 300  # letters of a line that are compared
_ENOUGH = 0.4  # of the letters have to agree
_ALIKE = 0.6  # of a line has to agree before it may be the same one, changed


def nearest(source: Source, old: Sequence[str]) -> int | None:
    """The line where the region that resembles the old text most starts, if there is one."""
    contents = source.contents
    votes = _votes(source, old)
    places = sorted(votes, key=lambda place: (-votes[place], place))[:_CLOSEST]
    best: tuple[float, int] | None = None
    for place in places:
        score = _similarity(contents[place : place + len(old)], old)
        if best is None or score > best[0]:
            best = score, place
    return best[1] if best and best[0] >= _ENOUGH else None


def _votes(source: Source, old: Sequence[str]) -> Counter[int]:
    """Places by how many rare words and whole lines of the old text point to them."""
    contents = source.contents
    last = max(len(contents) - len(old), 0)
    votes: Counter[int] = Counter()
    stripped: dict[str, list[int]] = {}
    wanted = {line.strip() for line in old if len(line.strip()) > 3}
    for index, content in enumerate(contents):
        text = content.strip()
        if text in wanted:
            stripped.setdefault(text, []).append(index)
    for offset, line in enumerate(old):
        places = stripped.get(line.strip(), ())
        if len(places) <= _COMMON:
            for index in places:
                votes[min(max(index - offset, 0), last)] += 40 // (len(places) + 1) + 4
    for word, offset in _features(old):
        hits = _lines_with(source, word)
        if len(hits) <= _COMMON:
            for index in hits:
                votes[min(max(index - offset, 0), last)] += 12 // (len(hits) + 1) + 1
    return votes


def _lines_with(source: Source, word: str) -> list[int]:
    """The lines that have a word; one more than counts as common ends the search."""
    hits: list[int] = []
    place = source.text.find(word)
    while place >= 0 and len(hits) <= _COMMON:
        hits.append(source.line_at(place))
        place = source.text.find(word, source.starts[hits[-1] + 1])
    return hits


def _features(old: Sequence[str]) -> list[tuple[str, int]]:
    """The longest words of the old text and, where they are few, pieces of them."""
    words: dict[str, int] = {}
    for offset, line in enumerate(old):
        for start, end in token_spans(line[:_LONGEST]):
            words.setdefault(line[start:end], offset)
    ranked = sorted(words.items(), key=lambda item: -len(item[0]))[:_FEATURES]
    pieces = {
        word[at : at + 4]: offset
        for word, offset in ranked[:6]
        if len(word) > 4
        for at in range(0, min(len(word) - 3, 12), 2)
    }
    return [*ranked, *list(pieces.items())[: 2 * _FEATURES - len(ranked)]]


def resembles(one: str, other: str) -> bool:
    """Whether a line may be another state of the other one."""
    return _similarity([other], [one]) >= _ALIKE


def _similarity(contents: Sequence[str], old: Sequence[str]) -> float:
    from difflib import SequenceMatcher

    total = same = 0.0
    for index in range(0, len(old), len(old) // _SAMPLE + 1):
        line = old[index]
        wanted = " ".join(line[:_LONGEST].split())
        found = " ".join(contents[index][:_LONGEST].split()) if index < len(contents) else ""
        weight = max(len(wanted), len(found))
        total += weight
        if wanted == found:
            same += weight
        elif wanted and found:
            matcher = SequenceMatcher(None, wanted, found, autojunk=False)
            if matcher.real_quick_ratio() > 0.3 and matcher.quick_ratio() > 0.3:
                same += weight * matcher.ratio()
    return same / total if total else 0.0


_MOST_PAIRS = 250_000  # beyond this many comparisons, only the common start and end are found


def rewritten(source: Source, match: Match, old: Sequence[str], new: Sequence[str]) -> str:
    """The text that takes the place of a match; `old` and `new` are lines."""
    lines = transferred(match, old, new, differences(old, new))
    return _joined(lines, match.separators, source.ending_at(source.line_at(match.start)))


def transferred(
    match: Match,
    old: Sequence[str],
    new: Sequence[str],
    stretches: Iterable[tuple[str, int, int, int, int]],
) -> list[tuple[str, int | None]]:
    """The new lines, adapted to the match, each with the old line that it corresponds to.

    `stretches` are the opcodes of `differences`.
    """
    lines: list[tuple[str, int | None]] = []
    for tag, first, last, start, end in stretches:
        if tag == "equal":
            lines.extend((match.segments[k], k) for k in range(first, last))
            continue
        for index in range(start, end):
            origin = first + index - start
            if origin < last:
                line = _line(old[origin], match.segments[origin], new[index], match.shift)
                lines.append((line, origin))
            else:
                lines.append((_reindented(new[index], match.shift), None))
    return lines


def differences(
    old: Sequence[object], new: Sequence[object]
) -> Iterator[tuple[str, int, int, int, int]]:
    """Opcodes (tag, first, last, start, end), as difflib has them."""
    limit = min(len(old), len(new))
    head = 0
    while head < limit and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < limit - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    if head:
        yield "equal", 0, head, 0, head
    last, end = len(old) - tail, len(new) - tail
    if head < last and head < end and (last - head) * (end - head) <= _MOST_PAIRS:
        from difflib import SequenceMatcher

        matcher = SequenceMatcher(None, old[head:last], new[head:end], autojunk=False)
        for tag, a, b, c, d in matcher.get_opcodes():
            yield tag, a + head, b + head, c + head, d + head
    elif head < last or head < end:
        yield "replace", head, last, head, end
    if tail:
        yield "equal", last, len(old), end, len(new)


def _joined(lines: Sequence[tuple[str, int | None]], separators: Sequence[str], near: str) -> str:
    ending = separators[0] if separators else near or "\n"
    pieces: list[str] = []
    for index, (line, origin) in enumerate(lines):
        pieces.append(line)
        if index < len(lines) - 1:
            if origin is not None and origin < len(separators):
                ending = separators[origin]
            pieces.append(ending)
    return "".join(pieces)


def _line(old: str, found: str, new: str, shift: Shift | None) -> str:
    """A changed line: its own words, the file's way of writing the rest."""
    if old == found:
        return new
    if not new.strip():
        return "" if shift else new
    indent = indent_of(new)
    moved = indent_of(found) if indent == indent_of(old) else _moved_indent(indent, shift)
    tail = _tail(found) if _tail(new) == _tail(old) else _tail(new)
    return moved + _body(old.strip(), found.strip(), new.strip()) + tail


def _reindented(line: str, shift: Shift | None) -> str:
    if shift is None or not line.strip():
        return line
    indent = indent_of(line)
    return _moved_indent(indent, shift) + line[len(indent) :]


def _moved_indent(indent: str, shift: Shift | None) -> str:
    return indent if shift is None else shift.moved(indent)


def _tail(line: str) -> str:
    return line[len(line.rstrip()) :]


def _body(old: str, found: str, new: str) -> str:
    if old == found:
        return new
    ours, theirs, fresh = _pieces(old), _pieces(found), _pieces(new)
    if ours is None or theirs is None or fresh is None or len(ours) != len(theirs):
        return new
    result: list[str] = []
    before = -1  # the old token that the one before corresponds to
    for tag, first, last, start, end in differences(
        [token for _, token in ours], [token for _, token in fresh]
    ):
        for index in range(start, end):
            gap, token = fresh[index]
            origin = first + index - start
            paired = origin < last
            if paired and origin == before + 1 and gap == ours[origin][0]:
                gap = theirs[origin][0]
            result += [gap, theirs[origin][1] if tag == "equal" else token]
            before = origin if paired else -2
    return "".join(result)


def _pieces(line: str) -> list[tuple[str, str]] | None:
    """The tokens of a line, each with the space before it; None when one can't be cut out."""
    folded, places = fold_mapped(line)
    pieces: list[tuple[str, str]] = []
    reached = 0
    for start, end in token_spans(folded):
        if any(0 < k < len(folded) and places[k] == places[k - 1] for k in (start, end)):
            return None
        pieces.append((line[reached : places[start]], line[places[start] : places[end]]))
        reached = places[end]
    return pieces
