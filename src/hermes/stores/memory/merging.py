"""What to make of a file that somebody else has written since we did.

What a person wrote stands. But an editor that was opened before our last changes saves a file
without them, and nobody wanted that: when the newest entries are missing, all of them up to a
point, beside text that is new, those changes are made again. A file that merely lost entries lost
them on purpose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.stores.memory.blocks import entries, with_entry, without

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes.stores.memory.versions import Version

_ALIKE = 0.85


def merged(ours: str, theirs: str, log: Sequence[Version]) -> str:
    """Their text, with those changes of ours that it was never shown."""
    if theirs == ours:
        return theirs
    left, found = _said(ours), _said(theirs)
    missing = [text for text in left if text not in found]
    fresh = [text for text in found if text not in left]
    if not missing or not fresh:
        return theirs
    unseen, gone = _unseen(missing, found, log)
    if len(unseen) == 1 and _worked_over(unseen[0], set(fresh) - gone):
        return theirs
    if unseen:
        back = gone - set(left)
        theirs = without(theirs, [block for block in entries(theirs) if block.text in back])
    return _with_all(theirs, unseen)


def with_late(text: str, late: str, version: Version) -> str:
    """The file with what was written into the state before it after we had read that."""
    known = {*_said(text), *version.went}
    return _with_all(text, [said for said in _said(late) if said not in known])


def _unseen(
    missing: Sequence[str], found: Sequence[str], log: Sequence[Version]
) -> tuple[list[str], set[str]]:
    """What came and what went lately, back to the first entry that the other side has."""
    came: dict[str, None] = {}
    gone: set[str] = set()
    for version in reversed(log):
        if any(text in found for text in version.came):
            break
        came |= dict.fromkeys(text for text in version.came if text in missing)
        gone |= set(version.went)
    return list(came)[::-1], gone


def _worked_over(text: str, fresh: Iterable[str]) -> bool:
    """Whether one of the new texts is this one, with a few letters changed."""
    from difflib import SequenceMatcher

    return any(SequenceMatcher(None, text, new).ratio() > _ALIKE for new in fresh)


def _with_all(text: str, contents: Iterable[str]) -> str:
    for content in contents:
        text = with_entry(text, content)
    return text


def _said(text: str) -> list[str]:
    return [block.text for block in entries(text)]
