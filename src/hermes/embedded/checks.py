"""Checks of a small model's actions and replies against the tool results."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.embedded.result_text import cut

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from hermes.embedded.tools import SmallTool


_NUMBER = re.compile(r"\d+(?:[.,_]\d+)*")
_LISTED = re.compile(r"\b(?:sum|average)\(([^()]*)\)")
# Where numbers are results. What is longer is a text with numbers in it.
_SHORT = 120
# Numbers with few digits (12 months, 60 minutes) need not be told.
_CONSTANT = 3
# With more numbers than this an expression adds up a list.
_LIST = 3


def numbers(text: str) -> set[str]:
    """The numbers of a text, each in one spelling: `1,234.50` is `1234.5`."""
    return {_plain(match) for match in _NUMBER.findall(text)}


def unknown(tool: SmallTool, given: dict[str, Any], told: str) -> list[str]:
    """The numbers of a short text to be written that are in nothing the model was told."""
    text = str(given.get("content") or given.get("new") or "")
    if not tool.writes or len(text) > _SHORT:
        return []
    return sorted(number for number in numbers(text) - numbers(told) if len(number) > 1)


def from_nowhere(tool: SmallTool, given: dict[str, Any], told: str) -> str:
    """Why a text should not be written yet: its numbers come from nowhere; else nothing."""
    strange = unknown(tool, given, told)
    if not strange:
        return ""
    return (
        f"Not written: {', '.join(strange[:3])} is in no result. Work it out with calculate from "
        "numbers that are, or find it with another tool, and write it then."
    )


def made_up(expression: str, told: str) -> str:
    """Why something is not worked out: its numbers come from nowhere; else nothing."""
    known = numbers(told)
    # What is added up is a list of somebody's, down to its smallest number.
    listed = numbers(" ".join(_LISTED.findall(expression)))
    strange = sorted(
        number
        for number in numbers(expression) - known
        if number in listed
        or (len(number.replace(".", "")) > _CONSTANT and number.strip("0.") != "1")
    )
    if not strange:
        return ""
    there = ", ".join(sorted(known, key=len, reverse=True)[:5])
    return (
        f"Not worked out: {', '.join(strange[:3])} is in no result and not in the request. "
        f"Use the numbers that are: {there}."
    )


def worked_out_already(tool: SmallTool, given: dict[str, Any], results: Iterable[str]) -> str:
    """Why nothing is worked out of sums and averages: they are the answer; else nothing."""
    if tool.name != "calculate":
        return ""
    used = numbers(str(given["expression"]))
    for shown in results:
        content, _, counted = shown.rpartition("\n\n(")
        derived = used & (numbers(counted) - numbers(content))
        # A list of numbers that was copied with a mistake in it.
        miscopied = len(used) > _LIST and "sum" in counted and used - numbers(content)
        if len(derived) > 1 or miscopied:
            return f"Not worked out: that is done already. ({counted}"
    return ""


def elsewhere(tool: SmallTool, given: dict[str, Any], request: str, missing: list[str]) -> str:
    """Why a file should not be edited yet: the request names another that is not there."""
    edited = [str(given[argument]) for argument, whole in tool.writes.items() if not whole]
    if not edited or not missing or edited[0] in missing:
        return ""
    said = " ".join(request.casefold().split())
    parts = [str(given.get(part) or "") for part in ("old", "new", "content")]
    if any(part and " ".join(part.casefold().split()) in said for part in parts):
        return ""
    return (
        f"Not changed: {edited[0]} stays as it is unless the request says to change it. There is "
        f"no {' and no '.join(missing[:3])} yet."
    )


def would_lose(path: str, text: str) -> str:
    """What a file holds that is about to be replaced."""
    return (
        f"Not written: {path} has a text already, which would be lost:\n{text}\n"
        "Use append_file to add to it, patch to change a part; or write all of it again."
    )


def _plain(number: str) -> str:
    bare = number.replace("_", "")
    if re.fullmatch(r"\d{1,3}(\.\d{3})+,\d+", bare):
        # `1.234,50`, as much of Europe writes it.
        bare = bare.replace(".", "")
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", bare):
        bare = bare.replace(",", "")
    bare = bare.replace(",", ".")
    return bare.rstrip("0").rstrip(".") if bare.count(".") == 1 else bare


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
