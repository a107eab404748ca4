"""Tells how far the first download is: a bar on a terminal, elsewhere a line at times."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

_EVERY_SECONDS = 5.0
_BAR = 24
FIRST = (
    "no model is configured: fetching a small one of our own (1.1 GB, once). "
    "It can do simple tasks; `hermes setup` connects a better one."
)


class Teller:
    """A `Progress` that writes to stderr, or to another stream."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._told = 0.0
        self._begun = False

    def __call__(self, what: str, count: int, whole: int) -> None:
        """Say how far it is."""
        stream = self._stream or sys.stderr
        if stream is None:
            return
        if not self._begun:
            self._begun = True
            stream.write(f"hermes: {FIRST}\n")
        line = f"hermes: {what}"
        if whole:
            line += f" {count / whole:4.0%} of {whole / 1e9:.1f} GB"
        elif count:
            line += f" {count / 1e6:.0f} MB"
        if stream.isatty():
            filled = round(_BAR * count / whole) if whole else 0
            bar = f" [{'#' * filled}{'-' * (_BAR - filled)}]" if whole else ""
            stream.write(f"\r\x1b[K{line}{bar}")
        elif time.monotonic() - self._told >= _EVERY_SECONDS:
            self._told = time.monotonic()
            stream.write(f"{line}\n")
        stream.flush()

    def end(self) -> None:
        """The line is over."""
        stream = self._stream or sys.stderr
        if self._begun and stream is not None and stream.isatty():
            stream.write("\r\x1b[K")
            stream.flush()
