"""Second thoughts before a small model writes: once each, then it may.

It replaces files it has not looked at, edits one file in the place of another, and writes numbers
it has not worked out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from hermes.agent.providers.embedded.toolbox import SmallTool

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
