"""Terminal: results to stdout, remarks to stderr, tables, colours, text width; signals that end a
command.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, TextIO


STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_STYLE = re.compile(r"\x1b\[[0-9;:]*m")
# Control characters and escape sequences, except styles, line ends and tabs.
_CONTROL = re.compile(r"(\x1b\[[0-9;:]*m)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Text of characters that are one column wide each; for these `wcwidth` is not imported.
_NARROW = re.compile(r"[\x00-\x7e\xa0-\xac\xae-\u02ff\u2010-\u2027\u2713\u2717\u276f]*")
_TAB = 8


def size_text(count: float) -> str:
    """A number of bytes for people: `812 B`, `4.2 MB`."""
    unit = "B"
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.3g} {unit}"


def time_text(at: float, *, seconds: bool = False) -> str:
    """A time stamp as local date and time."""
    import time

    return time.strftime(f"%Y-%m-%d %H:%M{':%S' if seconds else ''}", time.localtime(at))


def widths(text: str) -> Iterator[int]:
    """The number of columns of each character."""
    if _NARROW.fullmatch(text):
        return (1 for _ in text)
    from wcwidth import wcwidth

    return (max(wcwidth(character), 0) for character in text)


def columns(text: str) -> int:
    """The number of columns of a line."""
    return len(text) if _NARROW.fullmatch(text) else sum(widths(text))


def padded(text: str, width: int) -> str:
    """A line filled up with blanks to a width."""
    return text + " " * (width - columns(text))


def cut(line: str, width: int) -> str:
    """A line shortened to a width, with an ellipsis where it is cut."""
    used = fitting = 0
    for position, size in enumerate(widths(line)):
        used += size
        if used < width:
            fitting = position + 1
        elif used > width:
            return f"{line[:fitting].rstrip()}…" if width > 0 else ""
    return line


def safe(text: str) -> str:
    """`text` without escape sequences, control and invisible characters; tabs expanded."""
    from hermes.safety.sanitise import clean_text

    return clean_text(text).expandtabs(_TAB)


def safe_line(text: str) -> str:
    """The same, on one line."""
    return " ".join(safe(text).split())


def only_styles(text: str) -> str:
    """`text` without control characters and escape sequences, except styles, line ends, tabs."""
    return _CONTROL.sub(lambda match: match[1] or "", text)


def colours() -> bool:
    """Whether styles are wanted (`NO_COLOR`, `TERM=dumb`)."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def styled(text: str, style: str) -> str:
    """Safe text in a style, where styles are wanted."""
    if not text or not colours():
        return text
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m"


def wrapped(text: str, width: int) -> list[str]:
    """Safe text as lines of at most that width, broken at spaces where possible."""
    lines: list[str] = []
    for line in text.split("\n"):
        lines += _wrapped_line(line, max(width, 2))
    return lines


def _wrapped_line(line: str, width: int) -> Iterator[str]:
    if len(line) * 2 <= width or (line.isascii() and len(line) <= width):
        yield line
        return
    start = used = 0
    space = -1
    for position, size in enumerate(widths(line)):
        if used + size > width:
            if line[position] == " ":
                end, following = position, position + 1
            elif space > start and line[start:space].strip():
                end, following = space, space + 1
            else:
                end = following = position
            yield line[start:end].rstrip(" ") if end != following else line[start:end]
            start, space = following, -1
            used = columns(line[start:position])
            if start > position:
                continue
        if line[position] == " ":
            space = position
        used += size
    if start < len(line) or not line:
        yield line[start:]


def wrapped_styled(line: str, width: int) -> list[str]:
    """A line with styles in it, wrapped; a style goes on in the next line."""
    plain = _STYLE.sub("", line)
    if columns(plain) <= width:
        return [line]
    # Styles by their position in the plain text.
    styles, removed = [], 0
    for match in _STYLE.finditer(line):
        styles.append((match.start() - removed, match[0]))
        removed += len(match[0])
    lines, end, style = [], 0, ""
    for part in wrapped(plain, width):
        start = plain.index(part, end)
        end = start + len(part)
        output, done = style, start
        while styles and styles[0][0] <= end:
            position, code = styles.pop(0)
            output += plain[done : max(position, done)] + code
            done, style = max(position, done), "" if code == "\x1b[0m" else code
        lines.append(output + plain[done:end] + ("\x1b[0m" if style else ""))
    return lines


_NAMES = ("SIGTERM", "SIGHUP")


def end_signals() -> list[int]:
    """The signals that end a program, without those that are ignored (`nohup`)."""
    import signal

    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


@contextmanager
def interruptible(exception: type[BaseException] = KeyboardInterrupt) -> Iterator[None]:
    """In the block the first end signal raises an exception."""
    raised = False

    def interrupt(*_: object) -> None:
        nonlocal raised
        if not raised:
            raised = True
            raise exception

    with _handled(interrupt):
        yield


@contextmanager
def signals_ignored() -> Iterator[None]:
    """In the block, which cleans up, end signals are ignored.

    Closing a terminal window sends two: one by the system, one by the shell in it.
    """
    with _handled(lambda *_: None):
        yield


@contextmanager
def _handled(handler: Callable[..., None]) -> Iterator[None]:
    import signal

    before = {}
    try:
        for number in end_signals():
            before[number] = signal.signal(number, handler)
    except ValueError:
        # Only the main thread can handle signals.
        pass
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


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
