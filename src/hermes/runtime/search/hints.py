"""A few words about a tool, for a catalogue that names every tool."""

from __future__ import annotations

_WORDS = 5
_CHARACTERS = 36
# Words that cost a token and say nothing next to a tool's name.
_FILLERS = frozenset(
    {"a", "an", "the", "of", "or", "and", "to", "in", "on", "for", "with", "from", "by", "at"}
    | {"its", "it", "is", "are", "that", "which", "this", "these", "into", "as", "one", "some"}
    | {"any", "all", "given", "such", "use", "using", "used", "tool", "lets", "you", "can"}
    | {"allows", "provides"}
)


def hint(description: str, name: str) -> str:
    """What a tool is for in some five words, without those that its name already says.

    Empty when the description adds nothing to the name.
    """
    said = {_root(part) for part in name.replace("-", "_").lower().split("_")}
    words: list[str] = []
    length = 0
    for raw in _first_clause(description).split():
        word = raw.strip("`'\"()[]{}<>*_.,;:!?…")
        root = _root(word.lower())
        if not word or word.lower() in _FILLERS or root in said:
            continue
        length += len(word) + 1
        if length > _CHARACTERS and words:
            break
        said.add(root)
        words.append(word)
        if len(words) == _WORDS:
            break
    if not words:
        return ""
    first = words[0]
    # Acronyms and product names keep their capitals; the verb that opens the sentence does not.
    words[0] = first.lower() if first[1:].islower() else first
    return " ".join(words)


def _first_clause(description: str) -> str:
    text = " ".join(description.split())
    for end in (". ", "。", "; ", "\n"):
        text = text.partition(end)[0]
    return text


def _root(word: str) -> str:
    for ending in ("ing", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
