"""Backslash escapes as C has them: `$'…'`, `printf` and `echo -e`."""

from __future__ import annotations

import re

_ANSI_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.S
)
_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b",
    "f": "\f", "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip


def unescape(text: str) -> str:
    """The text of an ANSI-C string, `printf` format or `echo -e` argument."""
    if "\\" not in text:
        return text
    plain = _ANSI_ESCAPE.sub(_unescaped, text)
    if plain.isascii():
        return plain
    try:
        # Bytes that were spelled out one by one are one character together.
        return plain.encode("latin-1").decode()
    except UnicodeError:
        return plain


def _unescaped(found: re.Match[str]) -> str:
    byte, short, long, octal, control, char = found.groups()
    if byte or short or long:
        code = int(byte or short or long, 16)
        return chr(code) if code < 0x110000 else ""
    if octal:
        return chr(int(octal, 8) & 255)
    if control:
        return chr(ord(control) & 31)
    return _ESCAPES.get(char, "\\" + char)
