"""replace_text: match strategies in order of tolerance; edits that are applied already."""

from __future__ import annotations

from hermes.core.errors import EditError
from hermes.text.replace.errors import AlreadyAppliedError, ambiguous, elided, not_found
from hermes.text.replace.match import (
    EXACT,
    Match,
    exact_positions,
    find_lines,
    find_matches,
    nearest,
    resembles,
    rewritten,
)
from hermes.text.replace.needle_variants import NEW, OLD, find, find_words, name
from hermes.text.replace.source_lines import ShiftError, Source, is_word

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OPENERS = ("//", "/*", "<!--", "{/*", "#", "--", ";", "%", "* ", "rem ")
_CLOSERS = ("*/}", "*/", "-->", "}")
_DOTS = ("...", "…")
# A comment of nothing but such words, with one that tells, speaks about code left out. The weak
# ones tell only together with what they are about.
_STRONG = _words("unchanged omitted unmodified unaltered snip snipped truncated elided brevity")
_WEAK = _words("existing rest remaining remainder")
_ABOUT = _words(
    "code implementation logic content contents function functions method methods class classes "
    "file body module page imports lines same stays remains here"
)
_COMMON = _words(
    "the of this that your my our all other others and as is are in above below before after "
    "import line block section stay remain keep kept no not change changes changed for from "
    "previous original current everything else goes continue continues part parts stuff etc "
    "properties props fields tests test config configuration handler handlers definitions"
)


def elisions(text: str, *, before: Sequence[str] = (), after: Sequence[str] = ()) -> list[str]:
    """The lines of a text that stand for something left out, without their indentation.

    `before` and `after` are the lines around it, which tell whether `...` is a body of its own.
    """
    if not any(dots in text for dots in _DOTS) and not _mentions(text):
        return []
    own = text.splitlines()
    above = [line for line in before if line.strip()][-1:]
    below = [line for line in after if line.strip()][:1]
    lines = [*above, *own, *below]
    places = range(len(above), len(above) + len(own))
    return [lines[index].strip() for index in places if _elides(lines, index)]


def _mentions(text: str) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in (*_STRONG, *_WEAK))


def _elides(lines: list[str], index: int) -> bool:
    line = lines[index].strip()
    if line in _DOTS:
        return not _is_body(lines, index)
    if line in ("[...]", "(...)", "[…]", "(…)", "<...>", "<snip>", "[snip]"):
        return True
    opener = next((o for o in _OPENERS if line.lower().startswith(o)), "")
    text = line[len(opener) :].strip().lstrip("#/*-;%").strip() if opener else line
    for closer in _CLOSERS if opener else ():
        text = text.removesuffix(closer).rstrip()
    text = text.strip("()[]<>{} ").strip()
    leads, ends = text.startswith(_DOTS), text.endswith(_DOTS)
    words = text.strip(".… -–—:").lower().replace("-", " ").split()
    words = [word.strip("()[]{},.;:'\"`!") for word in words]
    if leads and (not words or ends):
        return bool(opener) or ends
    if not words or not (opener or leads):
        return False
    if not all(word in _COMMON or word in _ABOUT or word in _STRONG | _WEAK for word in words):
        return False
    if leads or ends:
        return True
    telling = _STRONG.intersection(words) or (
        _WEAK.intersection(words) and _ABOUT.intersection(words)
    )
    return bool(telling) and opener != "* " and not line.startswith("##")  # those may be prose


def _is_body(lines: list[str], index: int) -> bool:
    """Whether `...` is the whole body of a Python block, and so means itself."""
    indent = _width(lines[index])
    before = next((line for line in reversed(lines[:index]) if line.strip()), "")
    after = next((line for line in lines[index + 1 :] if line.strip()), "")
    opens = before.rstrip().endswith(":") and _width(before) < indent
    documented = before.rstrip().endswith(('"""', "'''")) and _width(before) == indent
    return (opens or documented) and (not after or _width(after) < indent)


def _width(line: str) -> int:
    return len(line.expandtabs()) - len(line.expandtabs().lstrip())


TELLING = 6  # letters and signs that have to be there before a repetition is no coincidence
_UNMISTAKABLE = 40  # of them are no coincidence anywhere
_SLACK = 2  # lines around the nearest region that still count as there


def applied_at(source: Source, old: str, new: str, start: int | None) -> int | None:
    """The line of the new text, if it stands alone and about where the old text would be.

    `start` is the line of the region nearest to the old text.
    """
    size = len("".join(new.split()))
    if size < TELLING:
        return _short_at(source, source.lines_of(old), source.lines_of(new), start)
    matches = find_words(source, new) or find_matches(source, new, new)
    if len(matches) != 1:
        return None
    line, last = source.line_at(matches[0].start), source.line_at(max(matches[0].end - 1, 0))
    before, after = source.lines_of(old), source.lines_of(new)
    if new in old and "\n" not in old.strip("\n") and source.contents[line].strip() != new.strip():
        return None  # part of a line, of which the rest may just be another one
    if not removed_is_gone(source, before, after, line, last + 1):
        return None
    near = start is not None and start - _SLACK <= last and line <= start + len(before) + _SLACK
    return line if near or size >= _UNMISTAKABLE else None


def _short_at(
    source: Source, old: Sequence[str], new: Sequence[str], start: int | None
) -> int | None:
    """The line of a new text of few letters: whole lines, once, and just where old would be."""
    wanted = [line.strip() for line in new]
    if start is None or not any(map(is_word, "".join(wanted))):
        return None
    stripped = [line.strip() for line in source.contents]
    places = [
        place
        for place, line in enumerate(stripped)
        if line == wanted[0] and stripped[place : place + len(wanted)] == wanted
    ]
    if len(places) != 1 or not start <= places[0] < start + len(old):
        return None
    gone = removed_is_gone(source, old, new, places[0], places[0] + len(wanted))
    return places[0] if gone else None


def removed_is_gone(
    source: Source, old: Sequence[str], new: Sequence[str], first: int, last: int
) -> bool:
    """Whether lines that the edit takes from the edge of a text are not there in another state.

    `first` and `last` are the lines of the file where the new text stands.
    """
    before = [line.strip() for line in old if line.strip()]
    after = [line.strip() for line in new if line.strip()]
    size = len(after)
    if size < len(before) and before[len(before) - size :] == after:
        gone, around = before[: len(before) - size], source.contents[max(first - 5, 0) : first]
    elif size < len(before) and before[:size] == after:
        gone, around = before[size:], source.contents[last : last + 5]
    else:
        return True
    beside = [line for line in around if line.strip()]
    return not any(resembles(line, other) for line in gone[:5] + gone[-5:] for other in beside)


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
