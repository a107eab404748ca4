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
# Where numbers are results. What is longer is a text with numbers in it.
_SHORT = 120
# With more numbers than this an expression adds up a list.
_LIST = 3


def numbers(text: str) -> set[str]:
    """The numbers of a text, each in one spelling: `1,234.50` is `1234.5`."""
    return {_plain(match) for match in _NUMBER.findall(text)}


def from_nowhere(tool: SmallTool, given: dict[str, Any], told: str) -> str:
    """Why a text should not be written yet: its numbers come from nowhere; else nothing."""
    if not tool.writes:
        return ""
    text = str(given.get("content") or given.get("new") or "")
    if len(text) > _SHORT:
        return ""
    known = numbers(told)
    strange = sorted(number for number in numbers(text) - known if len(number) > 1)
    if not strange:
        return ""
    return (
        f"Not written: {', '.join(strange[:3])} is in no result. Work it out with calculate, or "
        "find it with another tool, and write it then."
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
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", bare):
        bare = bare.replace(",", "")
    bare = bare.replace(",", ".")
    return bare.rstrip("0").rstrip(".") if bare.count(".") == 1 else bare
