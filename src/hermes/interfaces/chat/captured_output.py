"""Captured stdout: text printed by other code becomes chat output."""

from __future__ import annotations

import io

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable


class CapturedOutput(io.TextIOBase):
    """A text stream that passes on complete lines.

    With the `descriptor` of the terminal it acts as a terminal (`isatty`, window size); without
    one, programs print plain lines.
    """

    encoding = "utf-8"

    def __init__(self, show: Callable[[str], None], descriptor: int | None = None) -> None:
        self._show = show
        self._descriptor = descriptor
        self._partial = ""

    def write(self, text: str) -> int:
        """Buffer the text up to the end of its line."""
        *lines, self._partial = (self._partial + text).split("\n")
        if lines:
            self._show("\n".join(lines))
        return len(text)

    def flush(self) -> None:
        """Pass on a line without its end."""
        partial, self._partial = self._partial, ""
        if partial:
            self._show(partial)

    def isatty(self) -> bool:
        return self._descriptor is not None

    def fileno(self) -> int:
        if self._descriptor is None:
            raise io.UnsupportedOperation("fileno")
        return self._descriptor
