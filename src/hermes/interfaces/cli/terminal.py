"""Terminal output: results to stdout, remarks to stderr, tables, colour or none."""

from __future__ import annotations

import os
import sys

from hermes.interfaces.cli.screen_text import columns as _columns
from hermes.interfaces.cli.screen_text import cut as _cut
from hermes.interfaces.cli.screen_text import padded as _padded

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, TextIO

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
# How many lines the last cell of a row may take below the others.
_MOST_LINES = 3


class Terminal:
    """Where a command prints."""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        # A program may be started without them; what it says is then for nobody.
        self.stdout: TextIO = out or sys.stdout or _nobody()
        self.stderr: TextIO = err or sys.stderr or _nobody()

    def out(self, text: str = "") -> None:
        """An answer."""
        self._write(self.stdout, text)

    def note(self, text: str) -> None:
        """A remark; that nobody reads them is no reason to end what is being done."""
        try:
            self._write(self.stderr, text)
            self.stderr.flush()
        except OSError:
            return

    def trouble(self, error: Exception) -> None:
        """What went wrong, in one line."""
        hint = getattr(error, "hint", None)
        self.note(f"hermes: {_line(str(error))}" + (f" ({_line(hint)})" if hint else ""))

    def finish(self) -> None:
        """Have everything written; what nobody reads any more must not trouble the end."""
        for stream in (self.stdout, self.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                with open(os.devnull, "wb") as nothing:
                    os.dup2(nothing.fileno(), stream.fileno())

    def paragraph(self, text: str) -> None:
        """An answer in sentences: wrapped for a window, whole for programs."""
        if self.stdout.isatty():
            import textwrap

            lines = [textwrap.fill(line, max(self.width, 20)) for line in text.split("\n")]
            text = "\n".join(lines)
        self.out(text)

    def emit(self, value: Any) -> None:
        """An answer for programs: JSON, non-ASCII kept."""
        import json

        from hermes.core.json_text import to_json

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
        wanted = os.environ.get("COLUMNS", "")
        if wanted.isdecimal() and int(wanted):
            return int(wanted)
        try:
            return os.get_terminal_size(self.stdout.fileno()).columns or 100
        except (OSError, ValueError):
            return 100

    def table(self, rows: Iterable[Sequence[str]]) -> None:
        """Columns side by side; the last one is cut, or put below in a narrow window."""
        lines = [[_line(str(cell)) for cell in row] for row in rows]
        if not lines:
            return
        *widths, longest = [max(map(_columns, column)) for column in zip(*lines, strict=True)]
        start = sum(widths) + 2 * len(widths)
        room = self.width - start
        for *cells, last in lines:
            if room >= min(20, longest):
                pairs = zip(cells, widths, strict=True)
                head = "  ".join(_padded(cell, width) for cell, width in pairs)
                self.out(f"{head}  {_cut(last, room)}".rstrip())
            else:
                self.out(_cut("  ".join(cells), self.width).rstrip())
                for part in _broken(last, self.width - 4):
                    self.out(f"    {part}".rstrip())

    def branch(self, drawn: str, text: str, end: str = "") -> None:
        """A line of a tree: its branches, a text cut to the room there is, and its end."""
        width = min(self.width, 100)
        room = width - len(drawn) - (len(end) + 1 if end else 0)
        shown = _cut(_line(text), room)
        self.out(f"{drawn}{_padded(shown, room)} {end}" if end else f"{drawn}{shown}")

    def _write(self, stream: TextIO, text: str) -> None:
        # What the stream can't encode is shown escaped rather than raising.
        encoding = stream.encoding or "utf-8"
        stream.write(f"{text}\n".encode(encoding, "backslashreplace").decode(encoding))


def _nobody() -> TextIO:
    from io import StringIO

    return StringIO()


def _line(text: str) -> str:
    """A text as one line, with nothing in it that moves the cursor; its indent is kept."""
    indent = " " * (len(text) - len(text.lstrip(" ")))
    line = " ".join(text.split())
    return indent + "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in line)


def _broken(line: str, width: int) -> list[str]:
    """A text in a few lines of that width; what is too long for them is cut."""
    if width < 10 or _columns(line) <= width:
        return [_cut(line, width)]
    import textwrap

    # In letters, which may be wider than a column: what does not fit then is cut.
    parts = textwrap.wrap(line, width) or [""]
    most = _MOST_LINES - 1
    parts = [*parts[:most], " ".join(parts[most:])] if len(parts) > most else parts
    return [_cut(part, width) for part in parts]
