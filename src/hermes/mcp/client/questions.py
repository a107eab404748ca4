"""A form that a server wants filled in, as questions to a person, one for each field."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes.core.errors import ArgumentError
from hermes.mcp.texts import plain

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


async def asked(
    ask: Callable[[str, list[str]], Any], about: str, fields: dict[str, Any], schema: dict[str, Any]
) -> dict[str, Any] | None:
    """The answers by field, as the schema wants them; None when the person gave none."""
    from hermes.core.arguments import ArgumentReader

    required = schema.get("required") or []
    given: dict[str, Any] = {}
    for name, field in fields.items():
        field = field if isinstance(field, dict) else {}
        answer = await _answer(ask, f"{about}\n{_question(name, field)}", _choices(field))
        if answer:
            given[name] = _value(answer, field)
        elif "default" in field:
            given[name] = field["default"]
        elif name in required:
            return None
    try:
        reader = ArgumentReader({**schema, "type": "object", "properties": fields})
        read: dict[str, Any] = reader.read(given)
    except ArgumentError:
        # What the person said does not fit, and a form can't be argued with.
        return None
    return read


async def _answer(ask: Callable[[str, list[str]], Any], question: str, choices: list[str]) -> str:
    said = await asyncio.to_thread(ask, question, choices)
    if hasattr(said, "__await__"):
        said = await said
    text = str(said or "").strip()
    if text not in choices and text.isdecimal() and 0 < int(text) <= len(choices):
        text = choices[int(text) - 1]
    return text


def _question(name: str, field: dict[str, Any]) -> str:
    said = plain(field.get("title"), 200) or name
    more = plain(field.get("description"), 500)
    default = f" [{field['default']}]" if "default" in field else ""
    return f"{said}{f' ({more})' if more else ''}{default}"


def _choices(field: dict[str, Any]) -> list[str]:
    if field.get("type") == "boolean":
        return ["yes", "no"]
    options = field.get("oneOf") or field.get("anyOf") or []
    titled = [str(one["const"]) for one in options if isinstance(one, dict) and "const" in one]
    return titled or [str(value) for value in field.get("enum") or []]


def _value(answer: str, field: dict[str, Any]) -> Any:
    if field.get("type") == "boolean":
        return answer.lower() in ("yes", "y", "true", "1", "ja")
    if field.get("type") == "array":
        return [part.strip() for part in answer.split(",") if part.strip()]
    return answer
