"""Whether what a small model says is borne out by what the tools said.

It copies numbers with mistakes, and makes up those it has not been told.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.agent.providers.embedded.doubting import numbers
from hermes.agent.providers.embedded.shortening import cut

if TYPE_CHECKING:
    from collections.abc import Iterable

# Entries of a list are numbered by the model itself.
_ENTRY = re.compile(r"(?m)^\s*\d+[.)]\s")
# A sentence or a line, with the space after it.
_SENTENCE = re.compile(r"[^\n]*?(?:[.!?](?=\s)|[。！？]|$)\s*", re.MULTILINE)
# As much of a result as is said again.
_AGAIN = 400


def strange(text: str, told: str) -> list[str]:
    """The numbers of a text that are in nothing the model was told, not even more precisely."""
    known = numbers(told)
    precise = [float(one) for one in known if _is_number(one)]
    return sorted(
        number
        for number in numbers(_ENTRY.sub(" ", text)) - known
        if len(number) > 1 and not _rounded(number, precise)
    )


def correction(reply: str, told: str, last: str) -> str:
    """Why a reply can't stay as it is: its numbers come from nowhere; else nothing."""
    wrong = strange(reply, told)
    if not wrong:
        return ""
    return (
        f"Not said: {', '.join(wrong[:3])} is in no result. Work it out with calculate, or say "
        f"the number as it is. The last result was:\n{cut(last, _AGAIN)}"
    )


def without(reply: str, wrong: Iterable[str]) -> str:
    """A reply without the sentences that have these numbers in them."""
    avoided = set(wrong)
    parts = _SENTENCE.findall(reply) if avoided else [reply]
    return "".join(part for part in parts if not numbers(part) & avoided).strip()


def says_some(answer: str, shown: str) -> bool:
    """Whether an answer has any of the figures of a result in it."""
    known = numbers(shown)
    found = numbers(answer)
    precise = [float(one) for one in known if _is_number(one)]
    return bool(found & known) or any(_rounded(number, precise) for number in found)


def _rounded(number: str, precise: Iterable[float]) -> bool:
    """Whether a number is one of the others, said less precisely."""
    if not _is_number(number):
        return False
    places = len(number.partition(".")[2])
    return any(abs(one - float(number)) <= 0.5 * 10**-places + 1e-9 for one in precise)


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"\d{1,15}(\.\d+)?", text))
