"""Text on a terminal: escape sequences removed, display width, wrapping, styles, sizes, times."""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Iterator

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
