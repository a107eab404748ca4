"""Text encoded so that nobody reads it: what it decodes to is judged, not that it is encoded."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """Each encoded text that reads as code or orders once decoded: where, and what it is."""
    for pattern, decode in ((_BASE64, _from_base64), (_HEX, _from_hex), (_CODES, _from_codes)):
        for match in pattern.finditer(text):
            decoded = _unwrapped(decode(match[0]))
            if decoded and _ACTIVE.search(decoded):
                yield match.start(), "It carries encoded text that is meant to be run or obeyed."


def _unwrapped(text: str, depth: int = 0) -> str:
    """What a text says once every layer of encoding is off."""
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
