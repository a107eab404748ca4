"""Operators of `${…}` on known values: `#`, `%`, `/`, `:`, `^`, `,`, `@`, and array elements."""

from __future__ import annotations

import fnmatch

from hermes.safety.shell.escapes import unescape
from hermes.safety.shell.scope import HOLE, Value


def element(value: Value, index: str) -> Value:
    """One element of an array; unknown when the index is not a number in it."""
    if index.lstrip("-").isdigit() and -len(value.items) <= int(index) < len(value.items):
        return Value([value.items[int(index)]])
    return Value([HOLE])


def cut(text: str, operator: str, tail: str) -> str:
    """A value after one of the operators that cut, replace or change case."""
    if "$" in tail or "`" in tail:
        return HOLE
    if operator in ("#", "##"):
        ends = range(len(text) + 1) if operator == "#" else range(len(text), -1, -1)
        return next((text[end:] for end in ends if fnmatch.fnmatchcase(text[:end], tail)), text)
    if operator in ("%", "%%"):
        starts = range(len(text), -1, -1) if operator == "%" else range(len(text) + 1)
        return next((text[:at] for at in starts if fnmatch.fnmatchcase(text[at:], tail)), text)
    if operator in ("/", "//"):
        old, _, new = tail.partition("/")
        if any(char in old for char in "*?["):
            return HOLE
        new = new.strip("'\"")
        return text.replace(old, new) if operator == "//" else text.replace(old, new, 1)
    if operator == ":":
        first, _, count = tail.partition(":")
        start = first.strip().strip("()").strip()
        if start.lstrip("-").isdigit() and (not count or count.strip().isdigit()):
            cut = text[int(start) :]
            return cut[: int(count)] if count else cut
        return HOLE
    if operator in ("^", ","):
        if tail.startswith(operator):
            return text.upper() if operator == "^" else text.lower()
        return (text[:1].upper() if operator == "^" else text[:1].lower()) + text[1:]
    if operator == "@":
        if tail == "E":
            return unescape(text)
        return text.upper() if tail == "U" else text.lower() if tail == "L" else text
    return HOLE
