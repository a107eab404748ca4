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


def read(line: bytes) -> Any:
    """The value in a line; raises `ValueError` where there is none.

    An answer that can't be read becomes an error with its id: whoever waits for it is told.
    """
    try:
        return _decoded(line)
    except RecursionError:
        return _unreadable(line, "values are inside of each other too often in it")
    except ValueError:
        if b"\\u" not in line:
            raise
    # Half a character, as some programs write: no reason to lose the rest.
    try:
        return whole_value(json.loads(line))
    except RecursionError:
        return _unreadable(line, "values are inside of each other too often in it")


def _unreadable(line: bytes, why: str) -> dict[str, Any]:
    found = _ID.search(line[:_END]) or _ID.search(line[-_END:])
    if found is None or b'"method"' in line[:_END]:
        raise ValueError(why)
    error = {"code": -32700, "message": f"the answer can't be read: {why}"}
    return {"jsonrpc": "2.0", "id": json.loads(found.group(1)), "error": error}
