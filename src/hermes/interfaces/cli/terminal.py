"""Terminal output: results to stdout, remarks to stderr, tables, colour or none."""

from __future__ import annotations

import os
import sys

from hermes.interfaces.cli.screen_text import STYLES, colours, columns, cut, padded

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, TextIO

# Lines of the last cell of a row when it is printed below the others.
_CELL_LINES = 3


class Terminal:
    """Output of a command."""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        # A program may be started without these streams; then its output is discarded.
        self.stdout: TextIO = out or sys.stdout or _discarded()
        self.stderr: TextIO = err or sys.stderr or _discarded()

    def out(self, text: str = "") -> None:
        """Print a line of the result."""
        self._write(self.stdout, text)

    def note(self, text: str) -> None:
        """Print a remark; a closed stderr is ignored."""
        try:
            self._write(self.stderr, text)
            self.stderr.flush()
        except OSError:
            return

    def error(self, error: Exception) -> None:
        """Print an error and its hint on one line."""
        hint = getattr(error, "hint", None)
        self.note(f"hermes: {_line(str(error))}" + (f" ({_line(hint)})" if hint else ""))

    def finish(self) -> None:
        """Flush; output that can't be written any more is discarded."""
        for stream in (self.stdout, self.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                with open(os.devnull, "wb") as nothing:
                    os.dup2(nothing.fileno(), stream.fileno())

    def paragraph(self, text: str) -> None:
        """Print sentences: wrapped on a terminal, whole lines for programs."""
        if self.stdout.isatty():
            import textwrap

            lines = [textwrap.fill(line, max(self.width, 20)) for line in text.split("\n")]
            text = "\n".join(lines)
        self.out(text)

    def emit(self, value: Any) -> None:
        """Print a value as JSON; non-ASCII characters are kept."""
        import json

        from hermes.core.json_text import to_json

        self.out(json.dumps(json.loads(to_json(value)), ensure_ascii=False, indent=2))

    def styled(self, text: str, style: str, *, to: TextIO | None = None) -> str:
        """`text` in a style, if stdout (or `to`) is a terminal."""
        stream = to or self.stdout
        if not colours() or not stream.isatty():
            return text
        return f"\033[{STYLES[style]}m{text}\033[0m"

    @property
    def width(self) -> int:
        """Width in columns; 100 when stdout is no terminal."""
        width = os.environ.get("COLUMNS", "")
        if width.isdecimal() and int(width):
            return int(width)
        try:
            return os.get_terminal_size(self.stdout.fileno()).columns or 100
        except (OSError, ValueError):
            return 100

    def table(self, rows: Iterable[Sequence[str]]) -> None:
        """Print columns; the last one is cut, or printed below in a narrow window."""
        lines = [[_line(str(cell)) for cell in row] for row in rows]
        if not lines:
            return
        *widths, longest = [max(map(columns, column)) for column in zip(*lines, strict=True)]
        start = sum(widths) + 2 * len(widths)
        room = self.width - start
        for *cells, last in lines:
            if room >= min(20, longest):
                pairs = zip(cells, widths, strict=True)
                head = "  ".join(padded(cell, width) for cell, width in pairs)
                self.out(f"{head}  {cut(last, room)}".rstrip())
            else:
                self.out(cut("  ".join(cells), self.width).rstrip())
                for part in _cell_lines(last, self.width - 4):
                    self.out(f"    {part}".rstrip())

    def branch(self, prefix: str, text: str, end: str = "") -> None:
        """Print a line of a tree: its branches, a text cut to the room, and an end."""
        width = min(self.width, 100)
        room = width - len(prefix) - (len(end) + 1 if end else 0)
        text = cut(_line(text), room)
        self.out(f"{prefix}{padded(text, room)} {end}" if end else f"{prefix}{text}")

    def _write(self, stream: TextIO, text: str) -> None:
        # Characters that the stream can't encode are escaped.
        encoding = stream.encoding or "utf-8"
        stream.write(f"{text}\n".encode(encoding, "backslashreplace").decode(encoding))


def _discarded() -> TextIO:
    from io import StringIO

    return StringIO()


def _line(text: str) -> str:
    """A text on one line, control characters escaped; its indent is kept."""
    indent = " " * (len(text) - len(text.lstrip(" ")))
    line = " ".join(text.split())
    return indent + "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in line)


def _cell_lines(line: str, width: int) -> list[str]:
    """A text as a few lines of that width; the rest is cut."""
    if width < 10 or columns(line) <= width:
        return [cut(line, width)]
    import textwrap

    # By characters, which may be wider than a column: too long lines are cut.
    parts = textwrap.wrap(line, width) or [""]
    most = _CELL_LINES - 1
    parts = [*parts[:most], " ".join(parts[most:])] if len(parts) > most else parts
    return [cut(part, width) for part in parts]
