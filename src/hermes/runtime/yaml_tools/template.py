"""Templates: `{name}` placeholders in text and argv, filled with a call's arguments. `{{name}}` is
a literal brace.
"""

from __future__ import annotations

import re

from hermes.core.errors import ToolError
from hermes.core.json_text import to_json

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from hermes.runtime.yaml_tools.spec import CommandSpec, Parameter


_PLACE = re.compile(r"\{(\{)?([^\W\d][\w.\-\[\]*]*)\}(?(1)\}|)")


class Template:
    """A text cut at its placeholders. `names` has each placeholder once, in order."""

    __slots__ = ("_pieces", "names", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        # Literal text and names in turn: literal, name, literal, …, literal.
        self._pieces: list[str] = [""]
        at = 0
        for place in _PLACE.finditer(text):
            self._pieces[-1] += text[at : place.start()]
            if place[1]:
                self._pieces[-1] += f"{{{place[2]}}}"
            else:
                self._pieces += [place[2], ""]
            at = place.end()
        self._pieces[-1] += text[at:]
        self.names = tuple(dict.fromkeys(self._pieces[1::2]))

    def __repr__(self) -> str:
        return f"Template({self.text!r})"

    @property
    def whole(self) -> str | None:
        """The one placeholder the text consists of, if it does."""
        return self._pieces[1] if len(self._pieces) == 3 and self._pieces[::2] == ["", ""] else None

    @property
    def opening(self) -> tuple[str, ...]:
        """The placeholders that the text begins with, up to the first literal character."""
        texts: list[str] = []
        for literal, name in zip(self._pieces[::2], self._pieces[1::2], strict=False):
            if literal:
                break
            texts.append(name)
        return tuple(texts)

    @property
    def prefix(self) -> str:
        """The literal text before the first placeholder."""
        return self._pieces[0]

    def fill(self, value: Callable[[str], str]) -> str:
        """The text with `value(name)` in each place."""
        return "".join(
            value(piece) if odd else piece
            for pair in zip(self._pieces[::2], [*self._pieces[1::2], None], strict=True)
            for odd, piece in enumerate(pair)
            if piece is not None
        )


def build_argv(
    spec: CommandSpec, parameters: Mapping[str, Parameter], arguments: Mapping[str, Any]
) -> list[str]:
    """The program and its arguments; a group with a missing value is left out.

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
