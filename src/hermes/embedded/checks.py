"""Checks of a small model's actions and replies against the tool results; GBNF grammars that
restrict it to actions that can be carried out now.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

from hermes.embedded.result_text import cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from hermes.embedded.task import Task
    from hermes.embedded.tools import SmallTool


_NUMBER = re.compile(r"\d+(?:[.,_]\d+)*")
_LISTED = re.compile(r"\b(?:sum|average)\(([^()]*)\)")
# Length up to which a text is a result; a longer one is prose with numbers.
_SHORT = 120
# Digits up to which a number may be a constant (12 months, 60 minutes).
_CONSTANT = 3
# Numbers above which an expression adds up a list.
_LIST = 3


def numbers(text: str) -> set[str]:
    """The numbers of a text in normal form: `1,234.50` is `1234.5`."""
    return {_plain(match) for match in _NUMBER.findall(text)}


def unknown_numbers(tool: SmallTool, arguments: dict[str, Any], prompt: str) -> list[str]:
    """Numbers in a short text to be written that are not in the prompt."""
    text = str(arguments.get("content") or arguments.get("new") or "")
    if not tool.writes or len(text) > _SHORT:
        return []
    return sorted(number for number in numbers(text) - numbers(prompt) if len(number) > 1)


def ungrounded_text(tool: SmallTool, arguments: dict[str, Any], prompt: str) -> str:
    """Objection to a text to be written: its numbers are in no result; else ""."""
    unknown = unknown_numbers(tool, arguments, prompt)
    if not unknown:
        return ""
    return (
        f"Not written: {', '.join(unknown[:3])} is in no result. Work it out with calculate from "
        "numbers that are, or find it with another tool, and write it then."
    )


def ungrounded_expression(expression: str, prompt: str) -> str:
    """Objection to an expression: its numbers are in no result; else ""."""
    allowed = numbers(prompt)
    # Every number of a list must be known, also the small ones.
    listed = numbers(" ".join(_LISTED.findall(expression)))
    unknown = sorted(
        number
        for number in numbers(expression) - allowed
        if number in listed
        or (len(number.replace(".", "")) > _CONSTANT and number.strip("0.") != "1")
    )
    if not unknown:
        return ""
    usable = ", ".join(sorted(allowed, key=len, reverse=True)[:5])
    return (
        f"Not worked out: {', '.join(unknown[:3])} is in no result and not in the request. "
        f"Use the numbers that are: {usable}."
    )


def already_calculated(tool: SmallTool, arguments: dict[str, Any], results: Iterable[str]) -> str:
    """Objection to a calculation with sums that a result has already; else ""."""
    if tool.name != "calculate":
        return ""
    used = numbers(str(arguments["expression"]))
    for shown in results:
        content, _, counted = shown.rpartition("\n\n(")
        derived = used & (numbers(counted) - numbers(content))
        # A list of numbers, copied with a mistake.
        miscopied = len(used) > _LIST and "sum" in counted and used - numbers(content)
        if len(derived) > 1 or miscopied:
            return f"Not worked out: that is done already. ({counted}"
    return ""


def wrong_target(
    tool: SmallTool, arguments: dict[str, Any], request: str, missing: list[str]
) -> str:
    """Objection to an edit: the request names another file, which does not exist; else ""."""
    edited = [str(arguments[argument]) for argument, whole in tool.writes.items() if not whole]
    if not edited or not missing or edited[0] in missing:
        return ""
    request_text = " ".join(request.casefold().split())
    parts = [str(arguments.get(part) or "") for part in ("old", "new", "content")]
    if any(part and " ".join(part.casefold().split()) in request_text for part in parts):
        return ""
    return (
        f"Not changed: {edited[0]} stays as it is unless the request says to change it. There is "
        f"no {' and no '.join(missing[:3])} yet."
    )


def overwrite_warning(path: str, text: str) -> str:
    """Warning before a file is replaced, with its content."""
    return (
        f"Not written: {path} has a text already, which would be lost:\n{text}\n"
        "Use append_file to add to it, patch to change a part; or write all of it again."
    )


def _plain(number: str) -> str:
    bare = number.replace("_", "")
    if re.fullmatch(r"\d{1,3}(\.\d{3})+,\d+", bare):
        # `1.234,50`, the European format.
        bare = bare.replace(".", "")
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", bare):
        bare = bare.replace(",", "")
    bare = bare.replace(",", ".")
    return bare.rstrip("0").rstrip(".") if bare.count(".") == 1 else bare


# Numbers of list entries, which the model adds.
_ENTRY = re.compile(r"(?m)^\s*\d+[.)]\s")
# A sentence or a line, with the space after it.
_SENTENCE = re.compile(r"[^\n]*?(?:[.!?](?=\s)|[。！？]|$)\s*", re.MULTILINE)
# Characters of a result in a correction.
_RESULT_LENGTH = 400


def ungrounded_numbers(text: str, evidence: str) -> list[str]:
    """Numbers of a text that are not in the evidence, not even rounded."""
    allowed = numbers(evidence)
    precise = [float(number) for number in allowed if _is_number(number)]
    return sorted(
        number
        for number in numbers(_ENTRY.sub(" ", text)) - allowed
        if len(number) > 1 and not _rounded(number, precise)
    )


def correction(reply: str, evidence: str, last: str) -> str:
    """Objection to a reply: its numbers are in no result; else ""."""
    wrong = ungrounded_numbers(reply, evidence)
    if not wrong:
        return ""
    return (
        f"Not said: {', '.join(wrong[:3])} is in no result. Work it out with calculate, or say "
        f"the number as it is. The last result was:\n{cut(last, _RESULT_LENGTH)}"
    )


def without_numbers(reply: str, wrong: Iterable[str]) -> str:
    """A reply without the sentences that contain these numbers."""
    avoided = set(wrong)
    parts = _SENTENCE.findall(reply) if avoided else [reply]
    return "".join(part for part in parts if not numbers(part) & avoided).strip()


def mentions_result(answer: str, shown: str) -> bool:
    """Whether an answer contains a number of a result."""
    allowed = numbers(shown)
    mentioned = numbers(answer)
    precise = [float(number) for number in allowed if _is_number(number)]
    return bool(mentioned & allowed) or any(_rounded(number, precise) for number in mentioned)


def _rounded(number: str, precise: Iterable[float]) -> bool:
    """Whether a number is one of the others, rounded."""
    if not _is_number(number):
        return False
    places = len(number.partition(".")[2])
    return any(abs(value - float(number)) <= 0.5 * 10**-places + 1e-9 for value in precise)


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"\d{1,15}(\.\d+)?", text))


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
    paths = list(dict.fromkeys([*task.files, *named.paths]))
    few = 0 < len(paths) <= _MAX_LISTED
    existing: Any = paths if few else "string"
    meant = {*named.files, *named.paths}
    edited: Any = [path for path in task.files if path in meant] or existing
    added = list(dict.fromkeys([*named.files, *named.targets]))
    packed = [path for path in named.paths if path.lower().endswith(_ARCHIVE_ENDINGS)]
    archives = [path for path in paths if path.lower().endswith(_ARCHIVE_ENDINGS)]
    folders = sorted({path.rpartition("/")[0] for path in task.files if "/" in path})
    listed = [".", *folders, *(path for path in named.paths if path not in task.files)]
    sources: Any = [*folders, *paths] if few else "string"
    goals: Any = destinations(task) or "string"
    return {
        ("directory_list", "path"): listed if few else "string",
        ("read_file", "path"): existing,
        ("count_lines", "paths"): tuple(named.spelled or paths) if few else "array",
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


def _is_one_of(path: str, paths: list[str]) -> bool:
    bare = path.casefold().removeprefix("./").strip("/")
    return any(f"/{other.casefold()}".endswith(f"/{bare}") for other in paths)


def _has_numbers(task: Task) -> bool:
    """Whether there is a number to calculate with."""
    text = task.text
    for path in task.named.paths:
        text = text.replace(path, "")
    return bool(task.results or task.doubted or numbers(text))
