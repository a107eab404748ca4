"""Grammars (GBNF) that leave a small model no way to write anything but a usable action.

Each tool is one literal with single spaces and holes for its arguments: no pretty-printing, no
unknown names, no missing arguments.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# What a JSON string may hold. Control characters only escaped, and no surrogates.
_TEXT = r"""
string ::= "\"" char* "\""
char ::= [^"\\\x00-\x1f\x7f] | "\\" ["\\/bfnrt] | "\\u" hex hex hex hex
hex ::= [0-9a-fA-F]
expression ::= "\"" (function | [0-9(-]) (function | [0-9+*/%()., ^-]){0,60} "\""
function ::= ("sqrt" | "sum" | "average" | "min" | "max" | "abs" | "round" | "log10" | "log" |
  "sin" | "cos" | "tan" | "radians" | "factorial" | "gcd") "("
"""
_JSON = r"""
number ::= "-"? [0-9] [0-9]* ("." [0-9] [0-9]*)?
boolean ::= "true" | "false"
strings ::= "[" (string (", " string)*)? "]"
value ::= string | number | boolean | "null" | object | array
object ::= "{" (string ": " value (", " string ": " value)*)? "}"
array ::= "[" (value (", " value)*)? "]"
"""


def choice(words: Sequence[str]) -> str:
    """A grammar that lets exactly one of these words be said."""
    return "root ::= " + " | ".join(_literal(word) for word in words)


def actions(
    signatures: Mapping[str, Mapping[str, Any]], *, reply: bool = True, call: bool = True
) -> str:
    """A grammar of actions: a call of one of the tools, or a reply.

    Args:
        signatures: Tools by name, each with its arguments; the value is the words that may stand
            there (a tuple: one or more of them, in an array), or the JSON type of what may.
        reply: Whether replying is among them.
        call: Whether calling is.
    """
    ways = []
    for name, arguments in signatures.items() if call else ():
        parts = [f'{{"tool": {json.dumps(name)}, "args": {{']
        holes: list[str] = []
        for number, (argument, kind) in enumerate(arguments.items()):
            lead = ", " if number else ""
            parts[-1] += f"{lead}{json.dumps(argument)}: "
            holes.append(_hole(kind))
            parts.append("")
        parts[-1] += "}}"
        pieces = [_literal(parts[0])]
        for hole, part in zip(holes, parts[1:], strict=True):
            pieces += [hole, _literal(part)]
        ways.append(" ".join(pieces))
    if reply:
        ways.append(" string ".join(map(_literal, ('{"reply": ', "}"))))
    return "root ::= " + " |\n  ".join(ways) + "\n" + _TEXT + _JSON


def _hole(kind: Any) -> str:
    if isinstance(kind, str):
        return {"integer": "number", "array": "strings"}.get(kind, kind)
    words = [_literal(json.dumps(word, ensure_ascii=False)) for word in kind]
    one = f"({' | '.join(words)})" if words else "string"
    return f'"[" {one} (", " {one}){{0,11}} "]"' if isinstance(kind, tuple) else one


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
