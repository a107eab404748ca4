"""The place that was probably meant."""

from __future__ import annotations

from collections import Counter

from hermes.core.replace.folding import token_spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.core.replace.source import Source

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
