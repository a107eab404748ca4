"""What is printed, and how: answers to stdout, remarks to stderr, readable without colour."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, TextIO

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}


class Terminal:
    """Where a command prints."""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.stdout = out or sys.stdout
        self.stderr = err or sys.stderr

    def out(self, text: str = "") -> None:
        """An answer."""
        self._write(self.stdout, text)

    def note(self, text: str) -> None:
        """A remark."""
        self._write(self.stderr, text)

    def emit(self, value: Any) -> None:
        """An answer for programs: JSON, non-ASCII kept."""
        import json

        from hermes.core.jsontext import to_json

        self.out(json.dumps(json.loads(to_json(value)), ensure_ascii=False, indent=2))

    def styled(self, text: str, style: str, *, to: TextIO | None = None) -> str:
        """`text` in a style where that can be seen."""
        stream = to or self.stdout
        if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
            return text
        return f"\033[{_STYLES[style]}m{text}\033[0m"

    @property
    def width(self) -> int:
        """The columns there are; a generous number where nobody looks."""
        try:
            return os.get_terminal_size(self.stdout.fileno()).columns
        except (OSError, ValueError):
            return int(os.environ.get("COLUMNS") or 100)

    def table(self, rows: Iterable[Sequence[str]]) -> None:
        """Columns side by side; the last one is cut, or put below in a narrow window."""
        lines = [[str(cell) for cell in row] for row in rows]
        if not lines:
            return
        widths = [max(map(_columns, column)) for column in zip(*lines, strict=True)][:-1]
        start = sum(widths) + 2 * len(widths)
        room = self.width - start
        for *cells, last in lines:
            head = "  ".join(
                _padded(cell, width) for cell, width in zip(cells, widths, strict=True)
            )
            if room >= 20:
                self.out(f"{head}  {_cut(last, room)}".rstrip())
            else:
                self.out(_cut("  ".join(cells), self.width))
                self.out(f"  {_cut(last, self.width - 2)}".rstrip())

    def _write(self, stream: TextIO, text: str) -> None:
        # What the stream can't encode is shown escaped rather than raising.
        encoding = stream.encoding or "utf-8"
        stream.write(f"{text}\n".encode(encoding, "backslashreplace").decode(encoding))


def _columns(text: str) -> int:
    from unicodedata import east_asian_width

    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _columns(text))


def _cut(text: str, width: int) -> str:
    line = " ".join(text.split())
    if _columns(line) <= width:
        return line
    while line and _columns(line) > width - 1:
        line = line[:-1]
    return f"{line.rstrip()}…"
