"""The place that was probably meant, and how it differs from what was sent."""

from __future__ import annotations

import unicodedata
from collections import Counter

from hermes.core.replace.folding import token_spans
from hermes.core.replace.transfer import differences

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.core.replace.source import Source

_FEATURES = 24  # words looked for in the whole text
_COMMON = 200  # a word on more lines than this points nowhere
_CLOSEST = 8  # places compared letter by letter
_SAMPLE = 12  # lines of the old text that are compared
_AROUND = 4  # lines before and after that may belong to the region
_LONGEST = 300  # letters of a line that are compared
_ENOUGH = 0.4  # of the letters have to agree
_NAMES = {"\t": "a tab", " ": "a space", "\r": "a carriage return", "\n": "a line end"}


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


def compare(contents: Sequence[str], old: Sequence[str], start: int) -> tuple[int, int, list[str]]:
    """The first and the last line of the region around `start`, and how it differs from old."""
    low = max(start - _AROUND, 0)
    window = contents[low : start + len(old) + _AROUND]
    stretches = list(differences([line.strip() for line in old], [line.strip() for line in window]))
    pairs: dict[int, int] = {}  # lines of old, and those of the file that they stand for
    for number, (tag, first, last, begin, end) in enumerate(stretches):
        count = min(last - first, end - begin)
        if tag != "equal" and number == 0:
            # Up to the first line in common, or where the region was expected to start.
            begin = max(begin, end - count if len(stretches) > 1 else min(start - low, end - count))
        pairs.update((first + k, low + begin + k) for k in range(count))
    details = []
    for index, line in enumerate(old):
        if index not in pairs:
            details.append(f"old has a line that the file does not have here: `{visible(line)}`")
        elif contents[pairs[index]] != line:
            text = describe(contents[pairs[index]][:_LONGEST], line[:_LONGEST])
            details.append(f"line {pairs[index] + 1}, {text or 'behind the part shown'}")
    places = sorted(pairs.values()) or [start]
    used = set(places)
    details += [
        f"line {place + 1} of the file is not in old: `{visible(contents[place])}`"
        for place in range(places[0], places[-1])
        if place not in used
    ]
    return places[0], places[-1], details


def describe(content: str, line: str) -> str:
    """How a line of the file differs from the one that was sent, named by character."""
    parts = []
    for tag, first, last, start, end in differences(content, line):
        if tag == "equal":
            continue
        here, sent = content[first:last], line[start:end]
        if not sent:
            what = f"has {_named(here)}, old does not"
        elif not here:
            what = f"does not have {_named(sent)}, which old has"
        else:
            what = f"has {_named(here)}, old has {_named(sent)}"
        parts.append(f"column {first + 1}: the file {what}")
        if len(parts) == 4:
            break
    return "; ".join(parts)


def visible(line: str) -> str:
    """A line as a message shows it: tabs and unusual characters can be told apart."""
    shown = "".join(
        c if c.isprintable() or c == "\t" else f"\\u{ord(c):04x}" for c in line[:_LONGEST]
    )
    return shown.replace("\t", "\\t") + ("…" if len(line) > _LONGEST else "")


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
