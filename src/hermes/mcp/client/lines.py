"""What a line of a server says, as far as it says anything."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import msgspec

from hermes.mcp.texts import whole_value

if TYPE_CHECKING:
    from typing import Any

# So many values in one line are looked at; no server has as many answers to give at once.
MOST_AT_ONCE = 1_000
_decoded = msgspec.json.Decoder().decode
# The id of an answer, at either end of a line that can't be read as a whole.
_ID = re.compile(rb'"id"\s*:\s*("[A-Za-z0-9_-]{1,60}"|\d{1,18})')
_END = 300
_OURS = b'"hermes-'
# What is no number in JSON is kept as the word it was written as.
_loose = json.JSONDecoder(parse_constant=str)
_space = re.compile(r"[ \t\r\n]*").match
# How an answer begins, and nothing that a program prints by the way.
_ANSWER = re.compile(rb'\s*\{\s*"(?:jsonrpc|id|result|error)"\s*:')
_DEEP = "values are inside of each other too often in it"


def read(line: bytes) -> Any:
    """The value in a line, or a list of several; raises `ValueError` where there is none.

    What programs write all the same is read: a mark of the encoding in front, bytes of another
    encoding, half a character, NaN, one answer right behind another. An answer that can't be read
    becomes an error with its id: whoever waits for it is told.
    """
    try:
        return _decoded(line)
    except RecursionError:
        return _unreadable(line, _DEEP)
    except ValueError:
        text = line.decode("utf-8-sig", "replace")
    try:
        return whole_value(_values(text))
    except RecursionError:
        return _unreadable(line, _DEEP)
    except ValueError as error:
        if not _ANSWER.match(line):
            raise
        broken = isinstance(error, json.JSONDecodeError)
        return _unreadable(line, str(error)[:200] if broken else "a number in it is too long")


def _values(text: str) -> Any:
    found: list[Any] = []
    at = _behind_space(text, 0)
    while not found or (at < len(text) and len(found) <= MOST_AT_ONCE):
        value, at = _loose.raw_decode(text, at)
        found.append(value)
        at = _behind_space(text, at)
    return found if len(found) > 1 else found[0]


def _behind_space(text: str, at: int) -> int:
    found = _space(text, at)
    return found.end() if found else at


def _unreadable(line: bytes, why: str) -> dict[str, Any]:
    ids = {*_ID.findall(line[:_END]), *_ID.findall(line[-_END:])}
    # What an answer is about has ids as well; none like those of our calls.
    ids = {one for one in ids if one.startswith(_OURS)} or ids
    if len(ids) != 1 or b'"method"' in line[:_END]:
        raise ValueError(why)
    error = {"code": -32700, "message": f"the answer can't be read: {why}"}
    return {"jsonrpc": "2.0", "id": json.loads(ids.pop()), "error": error}
