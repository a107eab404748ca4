"""Text on a terminal: escape sequences removed, display width, wrapping, styles."""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator


def widths(text: str) -> Iterator[int]:
    """How many columns each character takes."""
    from unicodedata import category, east_asian_width

    for character in text:
        if character.isascii():
            yield 1
        elif category(character) in ("Mn", "Me", "Cf"):
            yield 0
        else:
            yield 2 if east_asian_width(character) in "WF" else 1


def columns(text: str) -> int:
    """How many columns a line takes."""
    return len(text) if text.isascii() else sum(widths(text))


def padded(text: str, width: int) -> str:
    """A line with blanks up to a width."""
    return text + " " * (width - columns(text))


def cut(line: str, width: int) -> str:
    """As much of a line as fits, marked where it is cut."""
    used = fitting = 0
    for at, size in enumerate(widths(line)):
        used += size
        if used < width:
            fitting = at + 1
        elif used > width:
            return f"{line[:fitting].rstrip()}…" if width > 0 else ""
    return line


_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_STYLE = re.compile(r"\x1b\[[0-9;:]*m")
# Everything that speaks to a terminal, but for styles, line ends and tabs.
_CONTROL = re.compile(r"(\x1b\[[0-9;:]*m)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TAB = 8


def safe(text: str) -> str:
    """`text` without anything that nobody sees or that speaks to the terminal."""
    from hermes.safety.sanitise import clean_text

    return clean_text(text).expandtabs(_TAB)


def safe_line(text: str) -> str:
    """`text` as one line."""
    return " ".join(safe(text).split())


def only_styles(text: str) -> str:
    """`text` as it may reach the terminal: of all controls only styles, line ends and tabs."""
    return _CONTROL.sub(lambda found: found[1] or "", text)


def colours() -> bool:
    """Whether the person wants to see styles."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def styled(text: str, style: str) -> str:
    """Safe text in a style, where styles are wanted."""
    if not text or not colours():
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def wrapped(text: str, width: int) -> list[str]:
    """Lines of safe text, broken where the window ends: at spaces where there are some."""
    lines: list[str] = []
    for line in text.split("\n"):
        lines += _broken(line, max(width, 2))
    return lines


def _broken(line: str, width: int) -> Iterator[str]:
    if len(line) * 2 <= width or (line.isascii() and len(line) <= width):
        yield line
        return
    start = used = 0
    space = -1
    for at, size in enumerate(widths(line)):
        if used + size > width:
            if line[at] == " ":
                end, following = at, at + 1
            elif space > start and line[start:space].strip():
                end, following = space, space + 1
            else:
                end = following = at
            yield line[start:end].rstrip(" ") if end != following else line[start:end]
            start, space = following, -1
            used = columns(line[start:at])
            if start > at:
                continue
        if line[at] == " ":
            space = at
        used += size
    if start < len(line) or not line:
        yield line[start:]


def wrapped_styled(line: str, width: int) -> list[str]:
    """The same for a line with styles in it; a style goes on in the next line."""
    plain = _STYLE.sub("", line)
    if columns(plain) <= width:
        return [line]
    styles = [(found.start(), found[0]) for found in _STYLE.finditer(line)]
    # Where each style stands in the plain text.
    places, before = [], 0
    for start, code in styles:
        places.append((start - before, code))
        before += len(code)
    lines, at, style = [], 0, ""
    for part in wrapped(plain, width):
        start = plain.index(part, at)
        at = start + len(part)
        shown, done = style, start
        while places and places[0][0] <= at:
            place, code = places.pop(0)
            shown += plain[done : max(place, done)] + code
            done, style = max(place, done), "" if code == "\x1b[0m" else code
        lines.append(shown + plain[done:at] + ("\x1b[0m" if style else ""))
    return lines
