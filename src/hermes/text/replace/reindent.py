"""Re-indentation: the new text with the indentation and typography of the region it replaces."""

from __future__ import annotations

from hermes.text.replace.match import indent_of
from hermes.text.replace.source_lines import fold_mapped, token_spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hermes.text.replace.match import Match
    from hermes.text.replace.source_lines import Shift, Source

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
                lines.append((_moved(new[index], match.shift), None))
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


def _moved(line: str, shift: Shift | None) -> str:
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
