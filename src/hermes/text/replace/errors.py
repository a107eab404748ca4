"""Errors of a failed replacement: differences to the nearest region, candidates of an ambiguous
match.
"""

from __future__ import annotations

import unicodedata

from hermes.core.errors import EditError
from hermes.text.replace.match import differences
from hermes.text.replace.needle_variants import NEW, OLD

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes.text.replace.source_lines import Source


_AROUND = 4  # lines before and after that may belong to the region
_LONGEST = 300  # letters of a line that are compared and shown here
_LEAD = 40  # of them in front of the first difference
_MOST_DETAILS = 4  # differences of one line
_NAMES = {"\t": "a tab", " ": "a space", "\r": "a carriage return", "\n": "a line end"}
_MARKS = str.maketrans({"\t": "→", " ": "·", "\u00a0": "⍽", "\r": "␍"})


class Comparison:
    """The lines of a region, counted from 0, each difference, and the lines that have one."""

    __slots__ = ("details", "first", "last", "places")

    def __init__(self, contents: Sequence[str], old: Sequence[str], start: int) -> None:
        pairs = _pairs(contents, old, start)
        found = sorted(pairs.values()) or [start]
        self.first, self.last = found[0], found[-1]
        self.details: list[str] = []
        self.places: set[int] = set()
        reached = self.first
        for index, line in enumerate(old):
            if index not in pairs:
                self.details.append(
                    f"{OLD} has a line that the file does not have here: `{visible(line)}`"
                )
                self.places.add(reached)
                continue
            reached = pairs[index]
            if contents[reached] != line:
                self.details.append(f"line {reached + 1}, {describe(contents[reached], line)}")
                self.places.add(reached)
        used = set(found)
        for place in range(self.first, self.last):
            if place not in used:
                text = visible(contents[place])
                self.details.append(f"line {place + 1} of the file is not in {OLD}: `{text}`")
                self.places.add(place)


def _pairs(contents: Sequence[str], old: Sequence[str], start: int) -> dict[int, int]:
    """The lines of old, and those of the file around `start` that they stand for."""
    low = max(start - _AROUND, 0)
    window = contents[low : start + len(old) + _AROUND]
    stretches = list(differences([line.strip() for line in old], [line.strip() for line in window]))
    pairs: dict[int, int] = {}
    for number, (tag, first, last, begin, end) in enumerate(stretches):
        count = min(last - first, end - begin)
        if tag != "equal" and number == 0:
            # Up to the first line in common, or where the region was expected to start.
            begin = max(begin, end - count if len(stretches) > 1 else min(start - low, end - count))
        pairs.update((first + k, low + begin + k) for k in range(count))
    return pairs


def describe(content: str, line: str) -> str:
    """How a line of the file differs from the one that was sent, named by character.

    Where white space differs, both are shown with it made visible.
    """
    shift = _unequal(content, line)
    here_text, sent_text = content[shift : shift + _LONGEST], line[shift : shift + _LONGEST]
    parts: list[str] = []
    blank = False
    for tag, first, last, start, end in differences(here_text, sent_text):
        if tag == "equal":
            continue
        here, sent = here_text[first:last], sent_text[start:end]
        blank |= any(c.isspace() for c in here + sent)
        if len(parts) == _MOST_DETAILS:
            continue
        if not sent:
            what = f"has {_named(here)}, {OLD} does not"
        elif not here:
            what = f"does not have {_named(sent)}, which {OLD} has"
        else:
            what = f"has {_named(here)}, {OLD} has {_named(sent)}"
        parts.append(f"column {shift + first + 1}: the file {what}")
    text = "; ".join(parts)
    if blank:
        text += f"\n    file: {_marked(here_text)}\n    sent: {_marked(sent_text)}"
    return text


def visible(line: str) -> str:
    """A line in a message: tabs and unusual characters are escaped."""
    shown = "".join(
        c if c.isprintable() or c == "\t" else f"\\u{ord(c):04x}" for c in line[:_LONGEST]
    )
    return shown.replace("\t", "\\t") + ("…" if len(line) > _LONGEST else "")


def _unequal(one: str, other: str) -> int:
    """Where to begin comparing two lines: at their start, or shortly before they differ."""
    if max(len(one), len(other)) <= _LONGEST:
        return 0
    first = next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    return max(first - _LEAD, 0)


def _marked(line: str) -> str:
    return visible(line.translate(_MARKS))


def _named(text: str) -> str:
    if len(set(text)) == 1:
        character = text[0]
        count = f" × {len(text)}" if len(text) > 1 else ""
        if character in _NAMES:
            return f"{_NAMES[character]} (U+{ord(character):04X}){count}"
        if not character.isascii() or not character.isalnum():
            name = unicodedata.name(character, "an unnamed character")
            return f"`{character}` (U+{ord(character):04X} {name}){count}"
    if len(text) <= 60 and not text.isascii():
        odd = ", ".join(
            f"U+{ord(c):04X} {unicodedata.name(c, '?')}"
            for c in dict.fromkeys(text)
            if not c.isascii()
        )
        return f"`{visible(text)}` ({odd})"
    return f"`{visible(text[:60])}`"


_MOST_LINES = 40  # of a region that are shown
_REFUSALS_LONGEST = 2_000  # letters of a line that are shown
_MOST_DIFFERENCES = 12
_NEAR = 2  # lines around a difference that are shown with it


class AlreadyAppliedError(EditError):
    """The new text is in place already; `line` is where, counted from 1."""

    already_applied = True

    def __init__(self, line: int) -> None:
        super().__init__(
            f"already applied: the new text is in the file at line {line}; nothing was changed",
            hint="Go on with the next step; read the file first if you expected something else.",
        )
        self.line = line


def not_found(source: Source, old: Sequence[str], start: int | None) -> EditError:
    """The nearest region, which starts about at a line, and each difference by character."""
    lines = list(old)
    while len(lines) > 1 and not lines[-1].strip():
        lines.pop()
    if start is None:
        return EditError(
            f"{OLD} was not found, and nothing in the file resembles it; nothing was changed",
            hint=f"Read the file again, and copy {OLD} from it.",
        )
    found = Comparison(source.contents, lines, start)
    first, last = found.first, found.last
    where = f"line {first + 1}" if first == last else f"lines {first + 1}-{last + 1}"
    summary = found.details[0].split("\n", 1)[0] if found.details else "only in blank lines"
    return EditError(
        f"{OLD} was not found; nothing was changed. Nearest text: {where}. Difference: {summary}",
        hint="The nearest text in the file:\n"
        + "\n".join(_region(source.contents, found))
        + "\nDifferences (→ is a tab, · a space):\n"
        + "\n".join(found.details[:_MOST_DIFFERENCES])
        + "\nIf that is the place, send its lines as they are, without the numbers.",
    )


def _region(contents: Sequence[str], found: Comparison) -> list[str]:
    """The lines of a region with their numbers; of a long one, those around each difference."""
    lines: Iterable[int] = range(found.first, found.last + 1)
    if found.last - found.first >= _MOST_LINES:
        near = {place + step for place in found.places for step in range(-_NEAR, _NEAR + 1)}
        lines = [line for line in lines if line in near][:_MOST_LINES]
    shown: list[str] = []
    reached = found.first - 1
    for line in lines:
        if line != reached + 1:
            shown.append("…")
        shown.append(numbered(contents, line))
        reached = line
    return shown if reached == found.last else [*shown, "…"]


def numbered(contents: Sequence[str], line: int) -> str:
    """A line to copy from, with its number in front."""
    text = contents[line]
    rest = f"… ({len(text)} letters)" if len(text) > _REFUSALS_LONGEST else ""
    return f"{line + 1}|{text[:_REFUSALS_LONGEST]}{rest}"


def elided(lines: Sequence[str], name: str) -> EditError:
    """A line that stands for text left out is not expanded."""
    return EditError(
        f"{name} leaves text out: `{visible(lines[0])}`; nothing was changed",
        hint=f"Write every line in full: in {OLD} the lines as the file has them, "
        f"in {NEW} all that is to stand there. To change two places, make two edits.",
    )


_MOST_LISTED = 40
_MOST_COMPARED = 2_000  # places; a text that repeats itself further tells nothing more
_FARTHEST = 40  # lines around a candidate that may tell it from the others
_MANY, _CLOSE = 100, 12  # from so many candidates on, only lines this close are looked at
_MOST_SHOWN = 60  # lines to copy
_LONGEST_BLOCK = 12


def ambiguous(source: Source, spans: Sequence[tuple[int, int]]) -> EditError:
    """The refusal to choose between several places."""
    listed, copies = candidates(source, spans)
    lead = f":\n{copies}\nOr" if copies else ", or"
    return EditError(
        f"{OLD} occurs {len(spans)} times; nothing was changed:\n{listed}",
        hint=f"Add a neighbouring line to {OLD} and {NEW} so that {OLD} names one place"
        f"{lead} pass replace_all=true to change all of them.",
    )


def candidates(source: Source, spans: Sequence[tuple[int, int]]) -> tuple[str, str]:
    """Every place with its line number and a neighbour that the others do not have.

    The second text has the lines from each place to its neighbour, to copy from.
    """
    places = [(source.line_at(a), source.line_at(max(a, b - 1))) for a, b in spans[:_MOST_COMPARED]]
    around = _Surroundings(source.contents, places)
    shown: list[str] = []
    blocks: list[str] = []
    for index, (first, last) in enumerate(places[:_MOST_LISTED]):
        text = f"  line {first + 1}: {visible(source.contents[first].strip())}"
        neighbour = around.telling(index)
        if neighbour is not None:
            where = "after" if neighbour < first else "before" if neighbour > last else "on"
            line = visible(source.contents[neighbour].strip())
            text += f"   ({where} line {neighbour + 1}: {line})"
            block = range(min(first, neighbour), max(last, neighbour) + 1)
            if len(block) <= _LONGEST_BLOCK and len(blocks) + len(block) < _MOST_SHOWN:
                blocks += [*(numbered(source.contents, line) for line in block), "--"]
        shown.append(text)
    if len(spans) > _MOST_LISTED:
        rest = ", ".join(str(first + 1) for first, _ in places[_MOST_LISTED:][:200])
        shown.append(f"  and at lines {rest}" + ", …" * (len(spans) > _MOST_LISTED + 200))
    return "\n".join(shown), "\n".join(blocks)


class _Surroundings:
    """The lines around all candidates, by where they are in relation to them."""

    def __init__(self, contents: Sequence[str], places: Sequence[tuple[int, int]]) -> None:
        self._contents = contents
        self._places = places
        self._farthest = _FARTHEST if len(places) <= _MANY else _CLOSE
        self._counts: dict[int, dict[str, int]] = {}

    def telling(self, index: int) -> int | None:
        """The closest line around a candidate that distinguishes it from all others, if any."""
        for distance in range(self._farthest + 1):
            for offset in (-distance, distance):
                line = self._line(self._places[index], offset)
                if line is None or not self._contents[line].strip():
                    continue
                if self._count(offset)[self._contents[line]] == 1:
                    return line
        return None

    def _line(self, place: tuple[int, int], offset: int) -> int | None:
        line = (place[0] if offset < 0 else place[1]) + offset
        return line if 0 <= line < len(self._contents) else None

    def _count(self, offset: int) -> dict[str, int]:
        if offset not in self._counts:
            counts = self._counts[offset] = {}
            for place in self._places:
                line = self._line(place, offset)
                if line is not None:
                    text = self._contents[line]
                    counts[text] = counts.get(text, 0) + 1
        return self._counts[offset]
