"""`command:` and one call's values -> the arguments of a process; each value stays in its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.core.jsontext import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hermes.runtime.yaml_tools.definition import CommandSpec, Parameter
    from hermes.runtime.yaml_tools.placeholders import Template


def build_argv(
    spec: CommandSpec, parameters: Mapping[str, Parameter], arguments: Mapping[str, Any]
) -> list[str]:
    """The program and its arguments. What a missing value belongs to is left out.

    A value can't become an option: one that begins with `-` is refused where it would open an
    argument, unless the parameter allows it or the template has `--` before it.
    """
    argv = [spec.program]
    given = {name: value for name, value in arguments.items() if value is not None}
    operands = False
    for group in spec.groups:
        if all(name in given for argument in group for name in argument.names):
            for argument in group:
                argv += _expand(argument, parameters, given, operands=operands)
                operands = operands or argument.text == "--"
    return argv


def _expand(
    argument: Template,
    parameters: Mapping[str, Parameter],
    given: Mapping[str, Any],
    *,
    operands: bool,
) -> list[str]:
    if argument.whole is not None and isinstance(given[argument.whole], list):
        words = [_text(argument.whole, value) for value in given[argument.whole]]
    else:
        words = [argument.fill(lambda name: _text(name, given[name]))]
    if operands or not argument.opening:
        return words
    strict = [name for name in argument.opening if not parameters[name].allow_dash]
    for word in words:
        if word.startswith("-") and strict:
            raise ToolError(
                f"{strict[0]} can't begin with `-`: {word!r:.60} would be read as an option",
                hint="Send a value that does not begin with a dash.",
            )
    return words


def _text(name: str, value: Any) -> str:
    text = as_text(value)
    if "\0" in text:
        raise ToolError(f"{name} holds a NUL character, which no command can take")
    return text


def as_text(value: Any) -> str:
    """A value as one piece of text: texts as they are, the rest as JSON writes it."""
    return value if isinstance(value, str) else to_json(value)
