"""Validation errors of a call's arguments as text for the model: all of them at once, each with
its path.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from hermes.core.arguments.reader import child, excerpt, kind, plain, shorten
from hermes.core.errors import ArgumentError, close_matches

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes.core.arguments.compiled_schema import Document

Path = list[str | int]

_SHOWN = 20
_LENGTH = 1_500
_ROOT = "arguments"

_LIMITS: dict[str, str] = {
    "minimum": "a number of at least {}",
    "maximum": "a number of at most {}",
    "exclusiveMinimum": "a number above {}",
    "exclusiveMaximum": "a number below {}",
    "multipleOf": "a multiple of {}",
    "minLength": "a string of at least {} characters",
    "maxLength": "a string of at most {} characters",
    "minItems": "an array of at least {} items",
    "maxItems": "an array of at most {} items",
    "minProperties": "an object with at least {} members",
    "maxProperties": "an object with at most {} members",
    "pattern": "a string that matches {}",
    "const": "{}",
    "additionalItems": "an array of at most {} items",
}
_WORDS: dict[str, str] = {
    "uniqueItems": "an array without repeated items",
    "contains": "an array that contains an item of the required kind",
    "falseSchema": "nothing here; leave it out",
    "not": "a value other than the excluded ones",
}


def explain(
    document: Document, value: dict[str, Any], remarks: Iterable[tuple[Any, str]]
) -> ArgumentError:
    """One error that lists every problem of the arguments, bounded in length."""
    explainer = _Explainer(document, value, list(remarks))
    lines: dict[str, None] = {}
    more = 0
    try:
        for error in document.errors(plain(value, encodable=True)):
            if len(lines) < _SHOWN:
                lines.update(dict.fromkeys(explainer.lines(error)))
            else:
                more += 1
    except (ValueError, RecursionError) as error:
        lines[f"{_ROOT}: not checkable: {shorten(str(error), 80)}"] = None
    return refuse(list(lines), more, hint=explainer.hint())


def refuse(lines: list[str], more: int = 0, *, hint: str) -> ArgumentError:
    """The error for some problems, the first of them in full and the rest as a number."""
    shown: list[str] = []
    length = 0
    for line in lines[:_SHOWN]:
        length += len(line) + 3
        if shown and length > _LENGTH:
            break
        shown.append(line)
    more += len(lines) - len(shown)
    total = len(shown) + more
    head = f"{total} problem{'s' if total != 1 else ''} with the arguments, not executed:"
    tail = [f"and {more} more"] if more else []
    return ArgumentError("\n- ".join([head, *shown, *tail]), hint=hint, problems=[*shown, *tail])


class _Explainer:
    """Validator errors as lines, and the fields that the hint names."""

    def __init__(
        self, document: Document, value: dict[str, Any], remarks: list[tuple[Any, str]]
    ) -> None:
        self._document = document
        self._value = value
        self._remarks = remarks
        self._missing: dict[str, None] = {}
        self._unknown: dict[str, None] = {}
        self._wrong: dict[str, None] = {}

    def hint(self) -> str:
        """The one next step."""
        steps = [
            (self._missing, "add {}"),
            (self._unknown, "leave out {}"),
            (self._wrong, "correct {}"),
        ]
        parts = [
            text.format(
                shorten(", ".join(islice(names, 6)), 160) + (" …" if len(names) > 6 else "")
            )
            for names, text in steps
            if names
        ]
        return f"Send the call again: {'; '.join(parts) or 'correct the arguments'}."

    def lines(self, error: Any) -> list[str]:
        """The lines for one error; an error of a union may have several."""
        path, value = self._find(error)
        name = error.kind.name
        facts = error.kind.as_dict()
        if name == "required":
            field = show_path([*path, facts["property"]])
            self._missing[field] = None
            return [f"{field}: required, but missing"]
        if name in ("additionalProperties", "unevaluatedProperties"):
            return [self._unknown_line(path, key, error) for key in facts["unexpected"]]
        if name == "propertyNames":
            inner = _expected(facts["error"])
            return [f"{show_path(path)}: a key has the wrong form; expected {inner}"]
        if name in ("anyOf", "oneOf"):
            return self._union_lines(path, value, facts["context"])
        return [self._wrong_line(path, value, _expected(error))]

    def _union_lines(self, path: Path, value: Any, branches: list[list[Any]]) -> list[str]:
        if all(not errors for errors in branches):
            return [self._wrong_line(path, value, "a value for exactly one of the alternatives")]
        # The branches that only object to something inside the value are the ones meant.
        near = [
            errors
            for errors in branches
            if errors
            and not any(e.kind.name == "type" and len(e.instance_path) == len(path) for e in errors)
        ]
        if len(near) == 1 and len(branches) > 1 and kind(value) in ("object", "array"):
            return [line for error in near[0] for line in self.lines(error)]
        expected = dict.fromkeys(_branch_expected(errors, path) for errors in branches if errors)
        return [self._wrong_line(path, value, " or ".join(expected))]

    def _wrong_line(self, path: Path, value: Any, expected: str) -> str:
        field = show_path(path)
        self._wrong[field] = None
        received = f"{excerpt(value)} ({kind(value)})"
        line = f"{field}: expected {shorten(expected, 240)}, received {received}"
        remark = self._remark(value)
        return f"{line}; {remark}" if remark else line

    def _unknown_line(self, path: Path, key: str, error: Any) -> str:
        field = show_path([*path, key])
        self._unknown[field] = None
        known = self._known_keys(error)
        near = close_matches(key.lower()[:60], [name.lower()[:60] for name in known], cutoff=0.6)
        if near:
            best = next(name for name in known if name.lower()[:60] == near[0])
            return f"{field}: unknown field; did you mean {show_path([*path, best])}?"
        names = shorten(", ".join(known), 200) if known else "none"
        return f"{field}: unknown field; known fields: {names}"

    def _known_keys(self, error: Any) -> list[str]:
        owner = self._document.resolve("#" + child("", *error.schema_path[:-1]))
        return list(owner[0].get("properties", ())) if owner and isinstance(owner[0], dict) else []

    def _find(self, error: Any) -> tuple[Path, Any]:
        """Path and value of an error, as they were sent."""
        found: Any = self._value
        path: Path = []
        for step in [*error.instance_path, None]:
            if isinstance(found, dict) and "" in found:
                # The validator leaves empty names out of its paths.
                return list(error.instance_path), error.instance
            if step is None:
                break
            if isinstance(found, dict) and step not in found:
                # Lone surrogates have stand-ins, and digits have become numbers.
                step = next(key for key in found if _is_spelled(key, step))
            path.append(step)
            found = found[step]
        return path, found

    def _remark(self, value: Any) -> str:
        return next((text for about, text in self._remarks if about is value), "")


def show_path(path: Path) -> str:
    """A place in the arguments: `filters.tags[2]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.isidentifier() or (step and step.replace("-", "_").isidentifier()):
            text += f".{step}" if text else step
        else:
            text += f"[{excerpt(step, 40)}]"
    return shorten(text, 120) or _ROOT


def _is_spelled(key: str, step: str | int) -> bool:
    if isinstance(step, int):
        return key.removeprefix("+").isdecimal() and int(key) == step
    return bool(plain(key, encodable=True) == step)


def _article(name: str) -> str:
    return "null" if name == "null" else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _expected(error: Any) -> str:
    name = error.kind.name
    facts = error.kind.as_dict()
    if name == "type":
        return " or ".join(map(_article, facts["types"]))
    if name == "enum":
        return "one of " + shorten(", ".join(excerpt(o, 40) for o in facts["options"]), 200)
    if name in _LIMITS:
        limit = next(iter(facts.values()))
        return _LIMITS[name].format(excerpt(limit) if name in ("const", "pattern") else limit)
    return _WORDS.get(name, f"a value that fulfils `{name}`")


def _branch_expected(errors: list[Any], path: Path) -> str:
    own = [error for error in errors if len(error.instance_path) == len(path)]
    types = [error for error in own if error.kind.name == "type"]
    first = (types or own or errors)[0]
    if first.kind.name == "required":
        return f"an object with {first.kind.as_dict()['property']}"
    if first.kind.name in ("anyOf", "oneOf"):
        inner = dict.fromkeys(
            _branch_expected(e, path) for e in first.kind.as_dict()["context"] if e
        )
        return " or ".join(inner)
    if not own:
        return f"{show_path(list(first.instance_path))} as {_expected(first)}"
    return _expected(first)
