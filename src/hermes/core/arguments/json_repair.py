"""JSON repair: parse near-JSON as models write it, and refuse text with more than one reading."""

from __future__ import annotations

import re
from json import JSONDecoder
from typing import TYPE_CHECKING, Any

from hermes.core.arguments.reader import MAX_DEPTH, ExactFloat, kind, same, shorten
from hermes.core.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_SPACE = re.compile(r"[\s\ufeff]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NUMBER_START = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][+-]?)?)?\Z")
_WORD = re.compile(r"\w+")
_FENCE = re.compile(r"(?:`{3,}|~{3,})[ \t]*[A-Za-z0-9_+.-]*[ \t]*(?=[\s{\[\"'])")
_FENCE_END = re.compile(r"`{3,}|~{3,}")
_HEX = re.compile(r"[0-9a-fA-F]+")

_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
_SMART_DOUBLE = "“”„‟"
_SMART_SINGLE = "‘’‚‛"
_CLOSERS = {
    '"': '"',
    "'": "'",
    **dict.fromkeys(_SMART_DOUBLE, "“”‟"),
    **dict.fromkeys(_SMART_SINGLE, "‘’‛"),
}
_CHUNKS = {closers: re.compile(rf"[^\\{closers}]*") for closers in set(_CLOSERS.values())}


class TextError(ValueError):
    """A text that is not one value; `position` counts characters from 0."""

    def __init__(self, kind: str, position: int, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind  # "incomplete", "invalid", "glued" or "deep"
        self.position = position
        self.reason = reason


def parse(text: str, *, exact: bool = False) -> Any:
    """The one value that a text holds, a code fence around it left aside."""
    parser = _Parser(text, exact)
    at = parser.skip(0)
    fence = _FENCE.match(text, at)
    if fence:
        at = parser.skip(fence.end())
    value, at = parser.value(at, 0)
    at = parser.skip(at)
    if fence and (closing := _FENCE_END.match(text, at)):
        at = parser.skip(closing.end())
    if at < len(text):
        if isinstance(value, dict) and text[at] == "{":
            raise TextError("glued", at, "a second object follows the first")
        raise TextError("invalid", at, "something follows the end of the value")
    return value


def parse_each(text: str) -> Iterator[tuple[Any, str]]:
    """The values of a text that holds one after the other, each with its own text."""
    parser = _Parser(text, exact=False)
    at = parser.skip(0)
    while at < len(text):
        value, end = parser.value(at, 0)
        yield value, text[at:end]
        at = parser.skip(end)


def unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object from its members; a key given twice with different values is a ValueError."""
    found = dict(pairs)
    if len(found) != len(pairs):
        for key, value in pairs:
            if not same(found[key], value):
                raise ValueError(f"the key {key[:40]!r} appears twice with different values")
    return found


def number(text: str, *, exact: bool) -> int | float:
    """The number that a JSON number stands for; a ValueError where Python can't hold it."""
    if text.lstrip("-").isdigit():
        return int(text)
    value = ExactFloat(text) if exact else float(text)
    if value - value != 0:
        raise ValueError("a number is out of range")
    if isinstance(value, ExactFloat):
        value.text = text
    return value


class _Parser:
    __slots__ = ("_exact", "_pythonic", "_text")

    def __init__(self, text: str, exact: bool) -> None:
        self._text = text
        self._exact = exact
        # A text whose first string is in single quotes is Python all through; elsewhere a
        # backslash-x in double quotes is more likely a path than an escape.
        first = re.search(r"['\"“”„‟‘’‚‛]", text)
        self._pythonic = first is not None and first.group() == "'"

    def skip(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        text = self._text
        if at >= len(text):
            raise TextError("incomplete", at, "the text ends where a value should stand")
        if depth > MAX_DEPTH:
            raise TextError("deep", at, f"nested more than {MAX_DEPTH} levels deep")
        char = text[at]
        if char == "{":
            return self._object(at, depth)
        if char == "[":
            return self._array(at, depth, "]")
        if char == "(":
            return self._array(at, depth, ")")
        if char in _CLOSERS:
            return self._string(at)
        if char == "-" or (char.isascii() and char.isdigit()):
            return self._number(at)
        return self._word(at)

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        text, start = self._text, at
        pairs: list[tuple[str, Any]] = []
        at = self.skip(at + 1)
        while text[at : at + 1] != "}":
            if at >= len(text):
                raise TextError("incomplete", at, "the text ends inside an object")
            if text[at] not in _CLOSERS:
                raise TextError("invalid", at, "a key in quotes should stand here")
            key, at = self._string(at)
            at = self._expect(at, ":", "a colon should follow the key")
            value, at = self.value(self.skip(at + 1), depth + 1)
            pairs.append((key, value))
            at = self._next(at, "}")
        try:
            return unique_pairs(pairs), at + 1
        except ValueError as error:
            raise TextError("invalid", start, str(error)) from None

    def _array(self, at: int, depth: int, closer: str) -> tuple[list[Any], int]:
        text, start = self._text, at
        items: list[Any] = []
        at = self.skip(at + 1)
        while text[at : at + 1] != closer:
            value, at = self.value(at, depth + 1)
            items.append(value)
            comma = text[self.skip(at) : self.skip(at) + 1] == ","
            at = self._next(at, closer)
            if closer == ")" and len(items) == 1 and not comma:
                raise TextError("invalid", start, "parentheses without a comma are no tuple")
        return items, at + 1

    def _expect(self, at: int, char: str, reason: str) -> int:
        at = self.skip(at)
        if at >= len(self._text):
            raise TextError("incomplete", at, "the text ends too early")
        if self._text[at] != char:
            raise TextError("invalid", at, reason)
        return at

    def _next(self, at: int, closer: str) -> int:
        """Past a comma to the next member, or to the closing bracket."""
        at = self.skip(at)
        if self._text[at : at + 1] == closer:
            return at
        at = self.skip(self._expect(at, ",", f"a comma or {closer} should stand here") + 1)
        if at >= len(self._text):
            raise TextError("incomplete", at, "the text ends after a comma")
        return at

    def _number(self, at: int) -> tuple[int | float, int]:
        text = self._text
        match = _NUMBER.match(text, at)
        end = match.end() if match else at
        following = text[end : end + 1]
        if not match or following.isalnum() or (following and following in "._+-"):
            if _NUMBER_START.match(text, at):
                raise TextError("incomplete", at, "the text ends inside a number")
            raise TextError("invalid", at, "this is not a JSON number")
        try:
            return number(match.group(), exact=self._exact), end
        except ValueError:
            raise TextError("invalid", at, "this number is too large") from None

    def _word(self, at: int) -> tuple[bool | None, int]:
        match = _WORD.match(self._text, at)
        word = match.group() if match else ""
        if word in _WORDS:
            return _WORDS[word], at + len(word)
        if word and at + len(word) == len(self._text) and any(w.startswith(word) for w in _WORDS):
            raise TextError("incomplete", at, f"the text ends inside the word {word!r}")
        raise TextError("invalid", at, "a value should stand here (text needs quotes)")

    def _string(self, at: int) -> tuple[str, int]:
        text, start, quote = self._text, at, self._text[at]
        closers = _CLOSERS[quote]
        chunk = _CHUNKS[closers]
        escapes = self._python_escape if self._pythonic or quote in "'‘’‚‛" else self._json_escape
        parts: list[str] = []
        at += 1
        while True:
            found = chunk.match(text, at)
            if found:
                parts.append(found.group())
                at = found.end()
            if at >= len(text):
                if len(closers) > 1 and ('"' if quote in _SMART_DOUBLE else "'") in text[start:]:
                    raise TextError("invalid", start, "typographic and plain quotes are mixed")
                raise TextError("incomplete", at, "the text ends inside a string")
            if text[at] != "\\":
                return "".join(parts), at + 1
            piece, at = self._escape(at, escapes)
            parts.append(piece)

    def _escape(self, at: int, own: Callable[[str, int], tuple[str, int]]) -> tuple[str, int]:
        """The character that the escape at a position stands for, and where it ends."""
        char = self._text[at + 1 : at + 2]
        if not char:
            raise TextError("incomplete", at, "the text ends inside a string")
        if char in _ESCAPES:
            return _ESCAPES[char], at + 2
        if char != "u":
            return own(char, at)
        code = self._hex(at + 2, 4)
        if 0xD800 <= code < 0xDC00 and self._text[at + 6 : at + 8] == "\\u":
            low = _HEX.match(self._text, at + 8, at + 12)
            if low and low.end() == at + 12 and 0xDC00 <= int(low.group(), 16) < 0xE000:
                pair = 0x10000 + ((code - 0xD800) << 10) + int(low.group(), 16) - 0xDC00
                return chr(pair), at + 12
        return chr(code), at + 6

    def _json_escape(self, char: str, at: int) -> tuple[str, int]:
        if char == "/":
            return "/", at + 2
        raise TextError("invalid", at, "unknown escape; a backslash itself is written twice")

    def _python_escape(self, char: str, at: int) -> tuple[str, int]:
        if char == "'":
            return "'", at + 2
        if char == "x":
            return chr(self._hex(at + 2, 2)), at + 4
        if char == "U" and (code := self._hex(at + 2, 8)) <= 0x10FFFF:
            return chr(code), at + 10
        raise TextError("invalid", at, "unknown escape; a backslash itself is written twice")

    def _hex(self, at: int, digits: int) -> int:
        match = _HEX.match(self._text, at, at + digits)
        end = match.end() if match else at
        if match and end == at + digits:
            return int(match.group(), 16)
        if end >= len(self._text):
            raise TextError("incomplete", at, "the text ends inside a string")
        raise TextError("invalid", at, f"{digits} hexadecimal digits should stand here")


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

    Raises `ArgumentError` for other text, with an excerpt and the reason.
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
