"""What a place that is reached through a shell has to say for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.environments.results import Isolation, PlaceError


class Link(Protocol):
    """How to get a shell at one place."""

    # For people: the host, the container.
    label: str
    # How long the first shell may take to answer.
    start_seconds: float
    # Whether the program makes a terminal there itself; else it is given one here.
    gives_terminal: bool
    # Whether what is there outlives our connection to it.
    lasts: bool

    def prepare(self, task: str) -> None:
        """Make the place ready before its first shell; raises `PlaceError`.

        What has to be started for that may belong to `task`, and ends with it then.
        """
        ...

    def argv(self, words: Sequence[str], *, tty: bool = False, first: bool = False) -> list[str]:
        """The program to run here that runs another there; with `first`, for the guard.

        The words of that hold nothing that any shell would change.
        """
        ...

    def explain(self, said: str, code: int | None) -> PlaceError:
        """Why no shell could be had, from what the program said."""
        ...

    def info(self) -> Isolation:
        """What is really isolated there."""
        ...

    def close(self) -> None:
        """Let go of what was made ready."""
        ...
