"""Raw argument text to one object.

Strict JSON is read by the standard library; only what it refuses goes to the lenient parser,
which then also knows whether the text was cut off or is merely wrong.
"""

from __future__ import annotations

from json import JSONDecoder
from typing import Any

from hermes.core.arguments.lenient import TextError, number, parse, parse_each, unique_pairs
from hermes.core.arguments.values import kind, same, shorten
from hermes.core.errors import ArgumentError

_ENCODINGS = 3
"""How often one value may be wrapped into a JSON string."""


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _plain_float(text: str) -> int | float:
    return number(text, exact=False)


def _exact_float(text: str) -> int | float:
    return number(text, exact=True)


# `strict=False` lets line breaks and tabs stand in strings as they are.
_decoder = JSONDecoder(
    strict=False,
    object_pairs_hook=unique_pairs,
    parse_float=_plain_float,
    parse_constant=_no_constant,
)
_exact_decoder = JSONDecoder(
    strict=False,
    object_pairs_hook=unique_pairs,
    parse_float=_exact_float,
    parse_constant=_no_constant,
)


def parse_text(text: str, *, exact: bool = False) -> Any:
    """The one value that a text holds; a `TextError` where there is none or more than one.

    With `exact`, numbers with a fraction remember how they were written.
    """
    decoder = _exact_decoder if exact else _decoder
    try:
        if text[:1] in ("{", "["):
            value, end = decoder.raw_decode(text)
            if end == len(text):
                return value
        return decoder.decode(text)
    except RecursionError:
        raise TextError("deep", 0, "nested too deeply") from None
    except ValueError:
        return parse(text, exact=exact)


def parse_container(text: str) -> dict[str, Any] | list[Any] | None:
    """The object or array that a text spells, in quotes or not; None for other whole values."""
    value = parse_text(text, exact=True)
    for _ in range(_ENCODINGS - 1):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
            break
        value = parse_text(value, exact=True)
    return value if isinstance(value, dict | list) else None


def read_object(raw: str, *, exact: bool = False) -> dict[str, Any] | None:
    """The object that argument text holds; None where the text is empty.

    Raises `ArgumentError` for anything else, saying what arrived and why it was not executed.
    """
    text = raw
    for level in range(_ENCODINGS):
        if not text.strip("\ufeff \t\r\n"):
            return None
        try:
            value = parse_text(text, exact=exact)
        except TextError as error:
            if error.kind != "glued":
                raise _refusal(error, text, quoted=level > 0) from None
            value = _read_glued(text, error, quoted=level > 0, exact=exact)
        if isinstance(value, dict):
            return value
        if not isinstance(value, str):
            break
        text = value
    raise ArgumentError(
        f"arguments must be one JSON object, received {_article(kind(value))}: {shorten(raw, 80)}",
        hint='Send the call again with an object: {"name": value, ...}.',
        problems=[f"expected an object, received {_article(kind(value))}"],
    )


def split_glued(text: str) -> list[str]:
    """The objects of a text that holds several in a row; see the package."""
    try:
        pieces = [piece for piece, _ in _objects(text)]
    except TextError:
        return [text]
    return pieces if len(pieces) > 1 else [text]


def _objects(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Each object of a text of nothing but objects, with its own text; equal neighbours once."""
    found: list[tuple[str, dict[str, Any]]] = []
    for value, piece in parse_each(text):
        if not isinstance(value, dict):
            raise TextError("invalid", text.find(piece), "something follows the end of the object")
        if not found or not same(value, found[-1][1]):
            found.append((piece, value))
    return found


def _read_glued(text: str, error: TextError, *, quoted: bool, exact: bool) -> Any:
    try:
        pieces = _objects(text)
    except TextError as broken:
        raise _refusal(broken, text, quoted=quoted) from None
    if len(pieces) > 1:
        raise _refusal(error, text, quoted=quoted)
    return parse_text(pieces[0][0], exact=exact)


def _refusal(error: TextError, text: str, *, quoted: bool) -> ArgumentError:
    size = f"{len(text)} characters received"
    where = f"character {error.position + 1}" + (" of the quoted text" if quoted else "")
    if error.kind == "incomplete":
        message = (
            f"arguments incomplete ({size}), not executed; send smaller pieces:"
            f" {error.reason}: {shorten(text, 80)}"
        )
        hint = "The output was cut off. Send the call again with less text, in several calls."
    elif error.kind == "glued":
        message = (
            f"several argument objects in one call ({size}), not executed: {shorten(text, 80)}"
        )
        hint = "Send one call for each object."
    elif error.kind == "deep":
        message = f"arguments are {error.reason} ({size}), not executed"
        hint = "Send a flatter value."
    else:
        around = text[max(error.position - 30, 0) : error.position + 30]
        message = (
            f"invalid JSON at {where} ({size}), not executed: {error.reason}: {shorten(around, 80)}"
        )
        hint = "Send the same call again as strict JSON."
    return ArgumentError(message, hint=hint, problems=[message])


def _article(name: str) -> str:
    return "null" if name == "null" else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
