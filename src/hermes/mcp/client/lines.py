"""What a line of a server says, as far as it says anything."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import msgspec

from hermes.mcp.texts import whole_value

if TYPE_CHECKING:
    from typing import Any

_decoded = msgspec.json.Decoder().decode
# The id of an answer, at either end of a line that can't be read as a whole.
_ID = re.compile(rb'"id"\s*:\s*("[A-Za-z0-9_-]{1,60}"|\d{1,18})')
_END = 300
# How an answer begins, and nothing that a program prints by the way.
_ANSWER = re.compile(rb'\s*\{\s*"(?:jsonrpc|id|result|error)"\s*:')
_DEEP = "values are inside of each other too often in it"


def read(line: bytes) -> Any:
    """The value in a line; raises `ValueError` where there is none.

    What programs write all the same is read: a mark of the encoding in front, bytes of another
    encoding, half a character, NaN. An answer that can't be read becomes an error with its id:
    whoever waits for it is told.
    """
    try:
        return _decoded(line)
    except RecursionError:
        return _unreadable(line, _DEEP)
    except ValueError:
        text = line.decode("utf-8-sig", "replace")
    try:
        # What is no number in JSON is kept as the word it was written as.
        return whole_value(json.loads(text, parse_constant=str))
    except RecursionError:
        return _unreadable(line, _DEEP)
    except ValueError as error:
        if not _ANSWER.match(line):
            raise
        broken = isinstance(error, json.JSONDecodeError)
        return _unreadable(line, str(error)[:200] if broken else "a number in it is too long")


def _unreadable(line: bytes, why: str) -> dict[str, Any]:
    found = _ID.search(line[:_END]) or _ID.search(line[-_END:])
    if found is None or b'"method"' in line[:_END]:
        raise ValueError(why)
    error = {"code": -32700, "message": f"the answer can't be read: {why}"}
    return {"jsonrpc": "2.0", "id": json.loads(found.group(1)), "error": error}
