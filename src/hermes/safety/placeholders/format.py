"""Placeholder format: a random token with a check sum; look-alike text is no placeholder."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol

    class Filling(Protocol):
        """Values by placeholder."""

        value: str
        number: bool


START = "[secret:"
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
_TAG, _CHECK = 8, 2
_SHAPE = re.compile(r"\[secret:([a-z][a-z0-9\-]{0,30}):([a-km-np-z2-9]{8})([a-km-np-z2-9]{2})\]")


def new_placeholder(kind: str, value: bytes, key: bytes) -> str:
    """The placeholder of a value; without the key it does not reveal the value."""
    tag = _letters(hashlib.blake2b(value, key=key, digest_size=8).digest(), _TAG)
    return f"{START}{kind}:{tag}{_check(tag)}]"


def is_placeholder(text: str) -> bool:
    """Whether a text is a placeholder and nothing else."""
    match = _SHAPE.fullmatch(text)
    return match is not None and _genuine(match)


def placeholders_in(value: Any) -> list[str]:
    """Every placeholder in the texts of a value, keys included, each once."""
    found: dict[str, None] = {}
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if START in one:
                found.update((match[0], None) for match in _SHAPE.finditer(one) if _genuine(match))
        elif isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, (list, tuple)):
            waiting += one
    return list(found)


def filled(value: Any, values: Mapping[str, Filling]) -> Any:
    """A copy of a value with these placeholders replaced."""
    if isinstance(value, str):
        return _filled_text(value, values) if START in value else value
    if isinstance(value, dict):
        return {filled(key, values): filled(item, values) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([filled(item, values) for item in value])
    return value


def _filled_text(text: str, values: Mapping[str, Filling]) -> str:
    for placeholder, filling in values.items():
        if filling.number:
            # Masking put a number between quotes, so that its document stayed readable.
            text = text.replace(f'"{placeholder}"', placeholder)
    return _SHAPE.sub(
        lambda match: values[match[0]].value if match[0] in values else match[0], text
    )


def _genuine(match: re.Match[str]) -> bool:
    return _check(match[2]) == match[3]


def _check(tag: str) -> str:
    # Text that has the shape by chance has other letters here.
    return _letters(hashlib.blake2b(tag.encode(), digest_size=8, person=b"hermes").digest(), _CHECK)


def _letters(digest: bytes, size: int) -> str:
    number = int.from_bytes(digest)
    return "".join(_ALPHABET[number >> 5 * at & 31] for at in range(size))
