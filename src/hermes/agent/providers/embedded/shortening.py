"""Texts as short as a small model can read them in a few seconds, with what matters left in."""

from __future__ import annotations

import re

# As many tokens of a result as are read in a few seconds.
MOST = 500
# A line that is longer is not made for reading.
_LINE = 400
# Roughly what a token is: a digit, a sign, a piece of a word.
_TOKEN = re.compile(r"\d|[A-Za-z\u00c0-\u024f]{1,5}|[^\w\s]|\w|\n+| {2,}")
_WORD = re.compile(r"[^\W_]{3,}")
# Endings differ: `closes`, `closing` and `closed` are about the same.
_STEM = 5


def tokens(text: str) -> int:
    """About how many tokens a text has."""
    return len(_TOKEN.findall(text))


def cut(text: str, most: int) -> str:
    """A text with its middle left out when it has more characters than that."""
    if len(text) <= most:
        return text
    head, tail = text[: most * 3 // 4], text[-most // 4 :]
    return f"{head}\n[… {len(text) - most} characters left out …]\n{tail}"


def excerpt(text: str, about: str = "", *, most: int = MOST) -> str:
    """A text, or those of its lines that matter: how it begins and ends, and what it is about.

    Args:
        text: All of it.
        about: Words to look for in the lines.
        most: How many tokens it may have, roughly.
    """
    if tokens(text) <= most:
        return text
    lines = [cut(line, _LINE) for line in text.split("\n")]
    kept: set[int] = set()
    left = most
    for number in _order(lines, about):
        cost = tokens(lines[number]) + 1
        if number in kept or cost > left:
            continue
        kept.add(number)
        left -= cost
    return _joined(lines, kept)


def _order(lines: list[str], about: str) -> list[int]:
    """The lines by how much they matter."""
    numbers = range(len(lines))
    scores = _scores(lines, about)
    fitting = sorted((n for n in numbers if scores[n]), key=lambda n: (-scores[n], n))
    # What stands beside a line that fits often completes it.
    around = [n + step for n in fitting[:5] for step in (0, 1, -1) if 0 <= n + step < len(lines)]
    return [*numbers[:5], *numbers[-2:], *around, *fitting[:40], *numbers]


def _scores(lines: list[str], about: str) -> list[float]:
    """How well each line fits: a word counts the more, the fewer lines have it."""
    wanted = _stems(about)
    having = [_stems(line) & wanted for line in lines]
    often = {stem: sum(stem in one for one in having) for stem in wanted}
    return [sum(1 / often[stem] for stem in one) for one in having]


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in _WORD.findall(text.casefold())}


def _joined(lines: list[str], kept: set[int]) -> str:
    """The kept lines in order, with a mark wherever some are missing."""
    shown: list[str] = []
    missing = 0
    for number, line in enumerate(lines):
        if number not in kept:
            missing += 1
            continue
        if missing:
            shown.append(f"[… {missing} more lines …]")
            missing = 0
        shown.append(line)
    if missing:
        shown.append(f"[… {missing} more lines …]")
    return "\n".join(shown)
