"""Catalogue hints: a few words per tool, cut from its description."""

from __future__ import annotations

_WORDS = 5
_CHARACTERS = 32
_ENOUGH = 2
_LOOKED_AT = 300

_DROPPED = frozenset({"a", "an", "the", "its", "their", "this", "these", "all", "one", "current"})
# Words that a phrase may hold, but neither begin nor end with.
_JOINTS = frozenset(
    {"of", "or", "and", "to", "in", "on", "for", "with", "from", "by", "at", "into", "as", "about"}
    | {"that", "which", "is", "are", "be", "was", "when", "how", "what", "so", "such", "between"}
    | {"it", "them", "you", "can", "lets", "allows", "provides", "tool", "use", "using", "used"}
    | {"return", "returns", "given", "more", "any", "some", "not", "than", "per", "via", "through"}
    | {"before", "after", "until", "while", "under", "against", "where", "whose"}
)
# Where a sentence goes on to something else; after these two, often to more of the same.
_TURNS = frozenset({"with", "that", "which", "when", "so", "such", "by", "using"})
_PAIRING = frozenset({"and", "or"})
_EDGES = "`'\"()[]{}<>*_.,;:!?…。、，"
# A list of single words that the sentence goes on after, as in "create, list and remove jobs".
_LIST = (
    r"\b([\w-]+)(?:, [\w-]+)+,? (?:and|or) (?!(?:a|an|the|in|on|of|to|by|at|for)\b)[\w-]+(?= [\w-])"
)


def hint(description: str, name: str) -> str:
    """Purpose of a tool, as a phrase of up to five words that continues its name.

    Empty when the description adds nothing to the name.
    """
    said = {_root(part) for part in name.replace("-", "_").replace(":", "_").lower().split("_")}
    words = _phrase(_first_sentence(description), said)
    while words and (words[0] in _JOINTS or _root(words[0]) in said):
        del words[0]
    words = _short(words)
    while words and words[-1] in _JOINTS:
        del words[-1]
    return " ".join(words).rstrip(",")


def _phrase(sentence: str, said: set[str]) -> list[str]:
    """The words up to where the sentence turns, once enough of them are new."""
    words: list[str] = []
    new: set[str] = set()
    turned = explained = False
    for place, raw in enumerate(sentence.split()):
        word = raw.strip(_EDGES)
        plain = word.lower()
        if new and (explained or raw[0] == "("):
            break
        turned = turned or plain in _TURNS
        if len(new) >= _ENOUGH + (not turned) and (turned or plain in _PAIRING):
            break
        explained, turned = raw[-1] == ":", raw[-1] in ",;)"
        if not word or plain in _DROPPED:
            continue
        # Acronyms and product names keep their capitals; the word that opens the sentence does not.
        kept = plain if place == 0 and word[1:].islower() else word
        words.append(f"{kept}," if raw[-1] == "," else kept)
        if plain not in _JOINTS and _root(word) not in said:
            new.add(plain)
    return words if new else []


def _short(words: list[str]) -> list[str]:
    """As many of the words as there is room for, without a part that would break off."""
    kept = [words[0][:_CHARACTERS]] if words else []
    length = sum(map(len, kept))
    for word in words[1:_WORDS]:
        length += len(word) + 1
        if length > _CHARACTERS:
            break
        kept.append(word)
    if len(kept) < len(words) and words[len(kept)] not in _JOINTS:
        joints = [place for place, word in enumerate(kept) if word in _JOINTS]
        del kept[joints[-1] if joints else len(kept) :]
    return kept


def _first_sentence(description: str) -> str:
    import re

    text = " ".join(description[:_LOOKED_AT].split())
    for end in (". ", "。", "; "):
        text = text.partition(end)[0]
    return re.sub(_LIST, r"\1", text.replace("one or more ", ""))


def _root(word: str) -> str:
    word = word.lower().replace("-", "").rstrip(",")
    for ending in ("ing", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
