"""Captured stdout: text printed by other code becomes chat output."""

from __future__ import annotations

import io

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable


class Printed(io.TextIOBase):
    """A stream whose lines are shown as they come.

    `descriptor` is the terminal's, for those who ask for its size; without one nobody is told
    that this is a terminal, so that they print lines and draw nothing.
    """

    encoding = "utf-8"

    def __init__(self, show: Callable[[str], None], descriptor: int | None = None) -> None:
        self._show = show
        self._descriptor = descriptor
        self._held = ""

    def write(self, text: str) -> int:
        """Keep it until its line is whole."""
        *lines, self._held = (self._held + text).split("\n")
        if lines:
            self._show("\n".join(lines))
        return len(text)

    def flush(self) -> None:
        """Show what has no end of line yet."""
        held, self._held = self._held, ""
        if held:
            self._show(held)

    def isatty(self) -> bool:
        """Whether it may be drawn on."""
        return self._descriptor is not None

    def fileno(self) -> int:
        """The terminal itself."""
        if self._descriptor is None:
            raise io.UnsupportedOperation("fileno")
        return self._descriptor
