"""Concealed text: invisible characters, hidden elements, encoded payloads."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


# An emoji flag is spelled in tag characters too, after its black flag.
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f")
_TAGS = re.compile("[\U000e0000-\U000e007f]|[\U000e0100-\U000e01ef]{2}|[\ufe00-\ufe0f]{3}")
_DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_ZERO = "\u200b\u2060-\u2064\ufeff\u180e\u034f\u115f\u1160\u3164\uffa0"
_IN_WORD = re.compile(f"(?<=[A-Za-z0-9])[{_ZERO}\u00ad\u200c\u200d]+(?=[A-Za-z0-9])")
_RUN = re.compile(f"[{_ZERO}\u200c\u200d\u200e\u200f]{{4}}")
_TERMINAL = re.compile("\x1b[\\[\\]P]|[\x00\x08\x9b]")
_ELEMENT = re.compile(
    r"(?is)<(?P<tag>\w+)\b[^<>]*(?:style\s*=\s*[\"'][^\"']*(?:display\s*:\s*none|visibility\s*:\s*hidden"
    r"|font-size\s*:\s*0|opacity\s*:\s*0(?![.\d])|color\s*:\s*(?:white|transparent|\#fff(?:fff)?)\b"
    r"|(?:left|top|text-indent)\s*:\s*-\d{3,})[^\"']*[\"'])[^<>]*>\s*(?P<text>[^<]*\w{3}[^<]*)"
)
_FAR = re.compile(r"\S?[ \t]{150,}(?P<text>\S.*)")


def find_hidden(text: str) -> Iterator[tuple[int, str, str]]:
    """Each place of text that is hidden by its characters: where, which rule, why."""
    if not text.isascii():
        plain = _FLAG.sub(lambda match: " " * len(match[0]), text)
        for pattern, rule, why in (
            (_TAGS, "hidden.tags", "It carries characters that only a machine reads."),
            (_IN_WORD, "hidden.zero-width", "It has invisible characters inside words."),
            (_RUN, "hidden.zero-width", "It carries a row of invisible characters."),
        ):
            match = pattern.search(plain)
            if match:
                yield match.start(), rule, why
        match = _DIRECTION.search(plain)
        if match and not _RIGHT_TO_LEFT.search(plain):
            yield (
                match.start(),
                "hidden.direction",
                "It shows text in another order than it is read.",
            )
    match = _TERMINAL.search(text)
    if match:
        yield match.start(), "hidden.terminal", "It carries characters that a terminal acts on."


def find_unshown(text: str) -> Iterator[tuple[int, str, str]]:
    """Each place of prose that a page does not show: where, which rule, why."""
    for match in _ELEMENT.finditer(text):
        if text.count("`", 0, match.start()) % 2 == 0:
            yield match.start(), "hidden.element", "It has text in an element that is not shown."
    far = _FAR.search(text)
    if far:
        yield far.start("text"), "hidden.far-away", "It has text far outside the window."


_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=_\-])[A-Za-z0-9+/]{20,}={0,2}(?![A-Za-z0-9+/_\-])")
_HEX = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:\\x|%)[0-9a-fA-F]{2}){12,}"
    r"|(?<![A-Za-z0-9])(?:[0-9a-fA-F]{2}){24,}(?![A-Za-z0-9])"
)
_CODES = re.compile(r"(?:\b\d{2,3}\b\s*,\s*){14,}\b\d{2,3}\b")
# What a decoded text has when it is meant to be run or obeyed.
_ACTIVE = re.compile(
    r"(?i)\b(?:curl|wget|bash|/bin/sh|sh -c|powershell|iex|invoke-\w+|nc -|ncat|eval|exec"
    r"|import (?:os|socket|subprocess|base64|urllib|requests)"
    r"|__import__|os\.system|subprocess|child_process|chmod|crontab|authorized_keys|rm -rf"
    r"|sudo|osascript|python3? -|node -e|perl -e"
    r"|ignore (?:all|any|the|previous)|(?:do not|don't) tell|api[ _-]?keys?|\.ssh"
    r"|credentials?|/dev/tcp|xattr|launchctl)\b|https?://\d|https?://\S+\.(?:sh|py|ps1|exe"
    r"|zip|dmg|bin)\b"
)
_DEEPEST = 3


def find_payloads(text: str) -> Iterator[tuple[int, str]]:
    """Each encoded text that decodes to code or instructions: its position and kind."""
    for pattern, decode in ((_BASE64, _from_base64), (_HEX, _from_hex), (_CODES, _from_codes)):
        for match in pattern.finditer(text):
            decoded = _unwrapped(decode(match[0]))
            if decoded and _ACTIVE.search(decoded):
                yield match.start(), "It carries encoded text that is meant to be run or obeyed."


def _unwrapped(text: str, depth: int = 0) -> str:
    """A text with every layer of encoding removed."""
    inner = _BASE64.fullmatch(text.strip())
    if inner and depth < _DEEPEST:
        return _unwrapped(_from_base64(inner[0]), depth + 1) or text
    return text


def _from_base64(text: str) -> str:
    body = text.rstrip("=")
    try:
        return _readable(base64.b64decode(body + "=" * (-len(body) % 4)))
    except (binascii.Error, ValueError):
        return ""


def _from_hex(text: str) -> str:
    try:
        return _readable(bytes.fromhex(re.sub(r"\\x|%", "", text)))
    except ValueError:
        return ""


def _from_codes(text: str) -> str:
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    return _readable(bytes(numbers)) if max(numbers) < 128 else ""


def _readable(data: bytes) -> str:
    """Bytes as text, where they are text; also as text of two bytes a letter."""
    if data[1:8:2] == b"\0" * len(data[1:8:2]):
        data = data[::2]
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ""
    seen = sum(char.isprintable() or char in "\t\r\n" for char in text)
    return text if text and seen == len(text) else ""
