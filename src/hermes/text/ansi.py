"""ANSI removal: terminal output as plain text; escapes removed, carriage returns and backspaces
applied.
"""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    "\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    "|\\][^\x07\x1b\n]*(?:\x07|\x1b\\\\)?"  # titles, links
    "|[PX^_][^\x1b]*(?:\x1b\\\\)?"  # device strings
    "|[ -/]+[0-~]"  # character sets
    "|[0-Z\\\\^-~]"  # the short ones
    ")?"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_ERASE = re.compile("\x1b\\[[012]?K")
_BACKSPACE = re.compile("[^\b\n]\b")
# What is left of control characters has no meaning on paper.
_CONTROLS = dict.fromkeys([*range(8), 8, 11, 14, 15, *range(16, 27), 28, 29, 30, 31, 127])


def clean(text: str, *, ansi: bool = False) -> str:
    """The text with carriage returns and backspaces carried out, escapes taken out.

    With `ansi` escapes stay, and so does everything else but the bare `\\r` of line ends.
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
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub("", text)
    if "\b" in text:
        before = None
        while before != text:
            before, text = text, _BACKSPACE.sub("", text)
    return text.translate(_CONTROLS)


def _overwritten(line: str) -> str:
    """A line in which the cursor went back to its start."""
    shown = ""
    for piece in line.split("\r"):
        erased = _ERASE.search(piece)
        written = _ESCAPES.sub("", piece)
        if erased:
            # What stood behind the cursor at that moment is gone.
            kept = len(_ESCAPES.sub("", piece[: erased.start()]))
            shown = shown[:kept]
        shown = written + shown[len(written) :]
    return shown
