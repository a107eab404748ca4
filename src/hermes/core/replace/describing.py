"""How a region of the file differs from what was sent, named by line and by character."""

from __future__ import annotations

import unicodedata

from hermes.core.replace.naming import OLD
from hermes.core.replace.transfer import differences

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

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
    """A line as a message shows it: tabs and unusual characters can be told apart."""
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
