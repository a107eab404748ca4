"""GBNF grammars: restrict the model to actions that can be carried out now."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from hermes.embedded.checks import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from hermes.embedded.task import Task


# JSON strings: control characters only escaped, no surrogates.
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
    """A grammar for exactly one of these words."""
    return "root ::= " + " | ".join(_literal(word) for word in words)


def actions(
    signatures: Mapping[str, Mapping[str, Any]], *, reply: bool = True, call: bool = True
) -> str:
    """A grammar of actions: a call of one of the tools, or a reply.

    Args:
        signatures: Tools by name, each with its arguments; a value is the allowed strings (a tuple:
            an array of them), or a JSON type.
        reply: Whether a reply is allowed.
        call: Whether a call is allowed.
    """
    rules = []
    for name, arguments in signatures.items() if call else ():
        parts = [f'{{"tool": {json.dumps(name)}, "args": {{']
        values: list[str] = []
        for number, (argument, kind) in enumerate(arguments.items()):
            lead = ", " if number else ""
            parts[-1] += f"{lead}{json.dumps(argument)}: "
            values.append(_value(kind))
            parts.append("")
        parts[-1] += "}}"
        pieces = [_literal(parts[0])]
        for value, part in zip(values, parts[1:], strict=True):
            pieces += [value, _literal(part)]
        rules.append(" ".join(pieces))
    if reply:
        rules.append(" string ".join(map(_literal, ('{"reply": ', "}"))))
    return "root ::= " + " |\n  ".join(rules) + "\n" + _TEXT + _JSON


def _value(kind: Any) -> str:
    if isinstance(kind, str):
        return {"integer": "number", "array": "strings"}.get(kind, kind)
    words = [_literal(json.dumps(word, ensure_ascii=False)) for word in kind]
    word = f"({' | '.join(words)})" if words else "string"
    return f'"[" {word} (", " {word}){{0,11}} "]"' if isinstance(kind, tuple) else word


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_ARCHIVE_ENDINGS = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z")
# Files above which paths are not listed in the grammar.
_MAX_LISTED = 200
# Tools that are not allowed before the named files were read: their numbers would be wrong.
_AFTER_READING = ("calculate", "system_info")


def signatures(task: Task) -> dict[str, dict[str, Any]]:
    """The tools allowed now, with the allowed values of each argument: existing or named paths."""
    special = _allowed_values(task)
    archives = special["file_extract", "archive"] != "string"
    return {
        tool.name: {
            argument: special.get((tool.name, argument), "string") for argument in tool.arguments
        }
        for tool in task.tools.values()
        if not (task.only_looking and tool.writes)
        and tool.name != task.barred
        and task.only in ("", tool.name)
        and (tool.name != "file_extract" or archives)
        and not (tool.name in _AFTER_READING and task.unread())
        and (tool.name != "calculate" or _has_numbers(task))
    }


def _allowed_values(task: Task) -> dict[tuple[str, str], Any]:
    """Allowed values by tool and argument, where they are known."""
    named = task.named
    known = list(dict.fromkeys([*task.files, *named.paths]))
    few = 0 < len(known) <= _MAX_LISTED
    existing: Any = known if few else "string"
    meant = {*named.files, *named.paths}
    edited: Any = [path for path in task.files if path in meant] or existing
    added = list(dict.fromkeys([*named.files, *named.targets]))
    packed = [path for path in named.paths if path.lower().endswith(_ARCHIVE_ENDINGS)]
    archives = [path for path in known if path.lower().endswith(_ARCHIVE_ENDINGS)]
    folders = sorted({path.rpartition("/")[0] for path in task.files if "/" in path})
    listed = [".", *folders, *(path for path in named.paths if path not in task.files)]
    sources: Any = [*folders, *known] if few else "string"
    goals: Any = destinations(task) or "string"
    return {
        ("directory_list", "path"): listed if few else "string",
        ("read_file", "path"): existing,
        ("count_lines", "paths"): tuple(named.spelled or known) if few else "array",
        ("patch", "path"): edited,
        ("delete_file", "path"): edited,
        ("write_file", "path"): named.targets or "string",
        ("append_file", "path"): added or existing,
        ("calculate", "expression"): "expression",
        ("file_compress", "sources"): tuple(sources) if few else "array",
        ("file_compress", "archive"): packed or "string",
        ("file_extract", "archive"): archives or "string",
        ("copy_file", "path"): sources,
        ("copy_file", "to"): goals,
        ("move_file", "path"): sources,
        ("move_file", "to"): goals,
    }


def destinations(task: Task) -> list[str]:
    """Destinations of a copy or move in the request: new names, folders, and both combined."""
    named = task.named
    folders = list(named.folders)
    free = [path for path in named.paths if not _is_one_of(path, [*named.spelled, *folders])]
    beside = [os.path.dirname(path) for path in named.spelled if "/" in path]
    both = [
        f"{folder}/{path}"
        for folder in dict.fromkeys([*folders, *beside])
        for path in free
        if "/" not in path.rstrip("/")
    ]
    if not free and not folders:
        # Only existing files: one of them is replaced.
        return named.paths if len(named.paths) > 1 else []
    out = any(os.path.dirname(path) in named.folders for path in named.files)
    return [*free, *folders, *both, *(["."] if out else [])]


def _is_one_of(path: str, known: list[str]) -> bool:
    bare = path.casefold().removeprefix("./").strip("/")
    return any(f"/{other.casefold()}".endswith(f"/{bare}") for other in known)


def _has_numbers(task: Task) -> bool:
    """Whether there is a number to calculate with."""
    text = task.text
    for path in task.named.paths:
        text = text.replace(path, "")
    return bool(task.results or task.doubted or numbers(text))
