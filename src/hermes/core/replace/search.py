"""How the old text can be found: as it was sent, without blank lines around, or read otherwise."""

from __future__ import annotations

from hermes.core.errors import EditError
from hermes.core.replace.matching import (
    EXACT,
    Match,
    exact_positions,
    find_lines,
    find_matches,
    whole_words,
)
from hermes.core.replace.naming import NEW, OLD
from hermes.core.replace.source import BOM
from hermes.core.replace.spelling import first_number, readings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.core.replace.source import Source

# By the grade of a match.
_NAMES = ("exact", "line-endings", "typography", "trailing-whitespace", "indentation",
          "typography", "whitespace")  # fmt: skip
_REACH = 200  # lines that may have been added or removed since a paste


def find(source: Source, old: str, new: str) -> tuple[str, list[Match], str, str] | None:
    """How the old text can be found, with the texts as they were read for it."""
    if old.startswith(BOM):
        old, new = old.removeprefix(BOM), new.removeprefix(BOM)
    matches = find_matches(source, old, new)
    if matches:
        return _NAMES[matches[0].grade], matches, old, new
    trimmed = _without_blank_edges(source.lines_of(old), source.lines_of(new))
    if trimmed is not None:
        matches = find_lines(source, trimmed[0].split("\n"), trimmed[1].split("\n"))
        if matches:
            return "whitespace", matches, *trimmed
    unread = ""
    results: dict[tuple[str, int], tuple[str, list[Match], str, str]] = {}
    for name, read_old, read_new in readings(_lined(source, old), _lined(source, new)):
        if name == "line-numbers":
            fresh = (read_new or "").split("\n")
            matches = find_lines(source, read_old.split("\n"), fresh)
            number = first_number(old)
            reach = _REACH if "\n" in read_old.strip("\n") else _REACH // 10
            matches = [m for m in matches if abs(source.line_at(m.start) + 1 - number) <= reach]
        else:
            matches = find_words(source, read_old) or find_matches(source, read_old, read_new or "")
        if not matches:
            continue
        if read_new is None:
            unread = name
            continue
        results.setdefault((read_new, matches[0].start), (name, matches, read_old, read_new))
        if name == "line-numbers":
            break
    if len(results) > 1 or (unread and not results):
        why = "can be read in two ways" if results else f"can't be read without its {unread}"
        raise EditError(
            f"{OLD} is not in the file as it was sent, only without its {unread or 'escapes'}, "
            f"and {NEW} {why}",
            hint=f"Send {OLD} and {NEW} as the file has them: no escapes or line numbers added.",
        )
    return next(iter(results.values()), None)


def find_block(source: Source, old: Sequence[str], new: Sequence[str]) -> tuple[str, list[Match]]:
    """How whole lines that are not there to the letter can be found, and where."""
    matches = find_lines(source, old, new)
    if not matches and not (source.text.isascii() and "".join(old).isascii()):
        matches = find_lines(source, old, new, folded=True)
    return (_NAMES[matches[0].grade], matches) if matches else ("", [])


def find_words(source: Source, old: str) -> list[Match]:
    """Matches to the letter that begin and end with whole words."""
    return [
        Match(source, start, start + len(old), grade=EXACT)
        for start in exact_positions(source.text, old)
        if whole_words(source.text, start, start + len(old))
    ]


def _lined(source: Source, text: str) -> str:
    return "\n".join(source.lines_of(text))


def _without_blank_edges(before: list[str], after: list[str]) -> tuple[str, str] | None:
    """Both texts without the blank lines around them, where they have the same ones."""
    changed = False
    while len(before) > 1 and len(after) > 1 and not before[0].strip() and not after[0].strip():
        del before[0], after[0]
        changed = True
    while len(before) > 1 and len(after) > 1 and not before[-1].strip() and not after[-1].strip():
        del before[-1], after[-1]
        changed = True
    return ("\n".join(before), "\n".join(after)) if changed else None
