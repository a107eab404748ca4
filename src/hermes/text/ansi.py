"""Terminal output as plain text: ANSI sequences removed, carriage returns and backspaces applied.

The constants are parts of regular expressions: `SEQUENCE` for complete ANSI sequences, `CONTROL`
and `INVISIBLE` for character sets.
"""

from __future__ import annotations

import re

_CSI = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
_SHORT = r"\x1b[ -/]*[0-~]"  # character sets, modes
# Titles, links and device strings, up to their end.
_STRING = r"\x1b[\]PX^_][^\x07\x1b\x9c\n]{0,2000}(?:\x07|\x1b\\|\x9c)"
SEQUENCE = f"{_CSI}|{_STRING}|{_SHORT}"
CONTROL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
# Format characters that display nothing: soft hyphen, zero-width, bidi, tags, variation selectors.
INVISIBLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)

# As a terminal reads it: a string without an end lasts until the next escape or line.
_ESCAPES = (
    rf"{_CSI}|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b]*(?:\x1b\\)?|{_SHORT}|\x1b"
)
_ERASE = r"\x1b\[[012]?K"
_BACKSPACE = "[^\b\n]\b"
# Control characters without a meaning in plain text: all but tab, line feed, form feed, return.
_CONTROLS = dict.fromkeys([*range(9), 11, *range(14, 27), 28, 29, 30, 31, 127])


def strip_ansi(text: str) -> str:
    """The text without ANSI sequences."""
    return re.sub(_ESCAPES, "", text) if "\x1b" in text or "\x9b" in text else text


def clean(text: str, *, ansi: bool = False) -> str:
    """The text as a terminal would show it in the end, as plain text.

    With `ansi`, everything stays but the carriage return of line ends.
    """
    if ansi:
        return text.replace("\r\n", "\n")
    if text.isprintable():
        return text
    if "\r" in text:
        text = re.sub("\r+\n", "\n", text)
        if "\r" in text:
            text = "\n".join(
                _overwritten(line) if "\r" in line else line for line in text.split("\n")
            )
    text = strip_ansi(text)
    if "\b" in text:
        before = None
        while before != text:
            before, text = text, re.sub(_BACKSPACE, "", text)
    return text.translate(_CONTROLS)


def _overwritten(line: str) -> str:
    """A line in which the cursor went back to the start: later text covers earlier text."""
    shown = ""
    for piece in line.split("\r"):
        erase = re.search(_ERASE, piece)
        written = strip_ansi(piece)
        if erase:
            # Everything behind the cursor is erased.
            shown = shown[: len(strip_ansi(piece[: erase.start()]))]
        shown = written + shown[len(written) :]
    return shown
