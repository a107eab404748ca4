"""Errors, by who can act on them.

    HermesError
    ├── ConfigError          the user edits a setting
    ├── UnavailableError     the user installs or enables something
    ├── RegistrationError    the author of a tool or plugin changes its name or its definition
    └── ToolError            the model reads it and tries another way
        ├── ArgumentError    the model sends the call again with other arguments
        └── EditError        the model sends another piece of text to replace

The message describes the failure, `hint` the next step; facts are attributes, so that no caller
parses text.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class HermesError(Exception):
    """Base class of all errors that Hermes raises on purpose."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class ConfigError(HermesError):
    """A setting is missing, unreadable or invalid."""


class UnavailableError(HermesError):
    """Something optional is not installed or not enabled here."""


class RegistrationError(HermesError):
    """A tool or toolset can't be registered as asked."""


class ToolError(HermesError):
    """A tool failed; the message is for the model."""


class ArgumentError(ToolError):
    """The arguments of a call can't be used; `problems` has one line each."""

    def __init__(
        self, message: str, *, hint: str | None = None, problems: Sequence[str] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.problems = list(problems)


class EditError(ToolError):
    """A text replacement was refused; nothing was changed."""


def close_matches(
    name: str, known: Iterable[str], *, count: int = 1, cutoff: float = 0.5
) -> list[str]:
    """The known names most similar to `name`, best first; `cutoff` is the least similarity."""
    from difflib import get_close_matches

    return get_close_matches(name, list(known), count, cutoff)


def did_you_mean(
    name: str, known: Iterable[str], otherwise: str = "", *, count: int = 1, cutoff: float = 0.5
) -> str:
    """`Did you mean X or Y?`, or `otherwise` when no known name is similar."""
    near = close_matches(name, known, count=count, cutoff=cutoff)
    return f"Did you mean {' or '.join(near)}?" if near else otherwise
