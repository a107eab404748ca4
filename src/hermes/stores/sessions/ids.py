"""Names of sessions: short, in the order of their making, and easy to say aloud."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONSONANTS = "bdfghjklmnprstvz"  # 16, in order, so that names sort as times do
_VOWELS = "aeiou"
_BASE = len(_CONSONANTS) * len(_VOWELS)
_SYLLABLES = 3
_DAY = 86_400.0


def name_at(seconds: float) -> str:
    """The name for a moment: the day (UTC), then the time of day in syllables.

    A syllable word lasts a sixth of a second.
    """
    day = time.strftime("%y%m%d", time.gmtime(seconds))
    part = int(seconds % _DAY / _DAY * _BASE**_SYLLABLES)
    word = ""
    for _ in range(_SYLLABLES):
        part, syllable = divmod(part, _BASE)
        consonant, vowel = divmod(syllable, len(_VOWELS))
        word = _CONSONANTS[consonant] + _VOWELS[vowel] + word
    return f"{day}-{word}"


def names_from(seconds: float) -> Iterator[str]:
    """Names to try in turn, when somebody else has the first ones."""
    step = _DAY / _BASE**_SYLLABLES
    return (name_at(seconds + number * step) for number in range(1000))
