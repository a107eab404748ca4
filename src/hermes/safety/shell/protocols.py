"""What word expansion needs from the judge: the commands inside a word are judged too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from hermes.safety.shell.origin import Origin
    from hermes.safety.shell.scope import Scope
    from hermes.safety.shell.stream import Stream


class Substituter(Protocol):
    """Runs, on paper, what stands inside `$(…)`, backticks and process substitutions."""

    def substitute(self, text: str, origin: Origin, scope: Scope, *, feeds: bool) -> Stream:
        """Judge an inner command and say what it would print."""

    def scan(self, text: str, origin: Origin, scope: Scope) -> None:
        """Judge the substitutions inside text that is no command itself (arithmetic, tests)."""

    def too_large(self) -> None:
        """Note that something was not looked at to its end."""
