"""Calls as plain JSON objects: which object is one, and what it calls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.core.arguments.lenient import TextError, parse_each
from hermes.core.jsontext import to_json

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    # A name and arguments, as text.
    Pair = tuple[str, str]

_NAMES = ("name", "tool", "tool_name", "function_name", "function", "action", "recipient_name")
_ARGUMENTS = ("arguments", "parameters", "args", "params", "input", "tool_input", "action_input")
_BESIDE = frozenset({"id", "type", "index", "call_id", "tool_call_id"})

# What a text may begin with while it is still unclear whether a call follows.


def bare_calls(text: str, names: Collection[str]) -> list[Pair]:
    """The calls of a text that is nothing but calls to known tools, without any marks."""
    stripped = text.strip()
    if not names or stripped[:1] not in ("{", "["):
        return []
    try:
        values = [value for value, _ in parse_each(stripped)]
    except (TextError, RecursionError):
        return _pythonic(stripped, names)
    items: list[Any] = []
    for value in values:
        if isinstance(value, dict) and set(value) == {"tool_calls"}:
            value = value["tool_calls"]
        items += value if isinstance(value, list) else [value]
    calls: list[Pair] = []
    for item in items:
        call = as_call(item, names)
        if call is None or call[0] not in names or not _only_a_call(item):
            return []
        calls.append(call)
    return calls


def as_call(value: Any, names: Collection[str]) -> Pair | None:
    """Name and arguments of an object that is a call."""
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    if isinstance(inner, dict):
        value = inner
    name_key = next((key for key in _NAMES if isinstance(value.get(key), str)), None)
    if name_key is None:
        return None
    name = clean_name(value[name_key], names)
    key = next((key for key in _ARGUMENTS if key in value), None)
    given = value[key] if key is not None else {}
    if given is None:
        given = {}
    if not isinstance(given, dict | str):
        return None
    return name, given if isinstance(given, str) else to_json(given)


def _only_a_call(value: dict[str, Any]) -> bool:
    if isinstance(value.get("function"), dict):
        return set(value) <= {"function", *_BESIDE}
    given = [key for key in _ARGUMENTS if key in value]
    return len(given) == 1 and len(set(value) - _BESIDE - set(given)) == 1


def _pythonic(text: str, names: Collection[str]) -> list[Pair]:
    """Calls as Python writes them, in a list: `[read_file(path="a")]`."""
    if not re.match(r"\[\s*[\w.]+\(", text):
        return []
    import ast

    try:
        tree = ast.parse(text, mode="eval").body
        calls: list[Pair] = []
        for item in tree.elts if isinstance(tree, ast.List) else []:
            if not isinstance(item, ast.Call) or item.args:
                return []
            name = clean_name(ast.unparse(item.func), names)
            if name not in names or any(keyword.arg is None for keyword in item.keywords):
                return []
            values = {k.arg: ast.literal_eval(k.value) for k in item.keywords}
            calls.append((name, to_json(values)))
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return []
    return calls


def clean_name(name: str, names: Collection[str]) -> str:
    """A tool's name without what some formats put around it."""
    name = name.strip()
    if name in names:
        return name
    short = re.sub(r"^(?:functions?|tools?|multi_tool_use)[./:]|:\d+$", "", name)
    short = re.sub(r":\d+$", "", short)
    return short or name


def value_size(text: str) -> int:
    """How many characters the first JSON value of a text has; 0 when there is none."""
    try:
        for _, piece in parse_each(text):
            return len(piece)
    except (TextError, RecursionError):
        pass
    return 0


# -- JSON ---------------------------------------------------------------------------------------
