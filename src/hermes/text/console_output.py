"""Console output decoding: UTF-8, else a guess per line; undecodable bytes become `\\xNN`."""

from __future__ import annotations

import codecs
import locale
import re
from functools import cache

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HIGH = re.compile(rb"[\x80-\xff]+")
# The pairs of GB 2312, and those in daily use: signs and the first level of characters.
_GB_PAIRS = re.compile(rb"(?:[\xa1-\xa9\xb0-\xf7][\xa1-\xfe])+")
_GB_COMMON = re.compile(rb"[\xa1-\xa9\xb0-\xd7][\xa1-\xfe]")
# A letter or two with accents within a word.
_WITHIN_WORD = re.compile(rb"[A-Za-z][\x80-\xff]{1,2}(?=[A-Za-z])")
_ESCAPED = "backslashreplace"


def decode(data: bytes, *, cut: bool = False) -> str:
    """The text that some bytes stand for; with `cut` they may begin or end in mid-character."""
    if data.isascii() and b"\0" not in data:
        return data.decode("ascii")
    for bom, name in _BOMS:
        # Wide text has a zero somewhere, in a space or a line's end; other bytes hardly.
        if data.startswith(bom) and (name == "utf-8-sig" or b"\0" in data):
            return data[: _whole(data, name)].decode(name, _ESCAPED)
    wide = _wide(data)
    if wide is not None:
        return data[: len(data) & ~1].decode(wide, _ESCAPED)
    if cut:
        data = _trimmed(data)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        # Programs in one pipeline may not agree: each line is read by itself.
        return "".join(_line(line) for line in data.splitlines(keepends=True))


def live_decoder() -> codecs.IncrementalDecoder:
    """For showing pieces as they come; a character split between two of them survives."""
    return codecs.getincrementaldecoder("utf-8")(_ESCAPED)


def _line(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        pass
    for name in _candidates(line):
        try:
            return line.decode(name)
        except UnicodeDecodeError:
            continue
    return line.decode("utf-8", _ESCAPED)


def _candidates(line: bytes) -> list[str]:
    names = [_console()] if _console() else []
    runs = _HIGH.findall(line)
    # Chinese text comes in even runs of common pairs; western text in single letters.
    pairs = sum(map(len, runs)) // 2
    chinese = all(_GB_PAIRS.fullmatch(run) for run in runs) and (
        sum(len(_GB_COMMON.findall(run)) for run in runs) >= 0.7 * pairs
    )
    western = all(len(run) <= 2 for run in runs) and _letters(line)
    if chinese and not (western and _WITHIN_WORD.search(line)):
        names.append("gb18030")
    if western:
        names.append("cp1252")
    return names


def _letters(line: bytes) -> bool:
    """Whether single high bytes stand among letters, as accents do."""
    text = line.decode("cp1252", "replace")
    signs = "€‘’“”–—…«»°§£¿¡·´"
    # The last letter of the page is in hardly any word, and 255 in much that is no text.
    return all(c in signs or (c.isalpha() and c != "ÿ") for c in text if ord(c) > 127)


@cache
def _console() -> str:
    """The code page of this machine's console when that is not UTF-8."""
    try:
        name = codecs.lookup(locale.getencoding()).name
    except LookupError:
        return ""
    return "" if name in ("utf-8", "ascii") else name


def _wide(data: bytes) -> str | None:
    """UTF-16 without a mark: every other byte of mostly Latin text is zero."""
    sample = data[:2000]
    if len(sample) < 4 or b"\0" not in sample:
        return None
    half = len(sample) // 2
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if odd > 0.6 * half and even < 0.1 * half:
        return "utf-16-le"
    if even > 0.6 * half and odd < 0.1 * half:
        return "utf-16-be"
    return None


def _whole(data: bytes, name: str) -> int:
    return len(data) - len(data) % {"utf-16": 2, "utf-32": 4}.get(name, 1)


def _trimmed(data: bytes) -> bytes:
    """Without the parts of characters at the two ends."""
    start = 0
    while start < 3 and start < len(data) and 0x80 <= data[start] < 0xC0:
        start += 1
    end = len(data)
    for back in range(1, 4):
        if back > len(data) - start:
            break
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            end = end - back if length > back else end
            break
        if byte < 0x80:
            break
    return data[start:end]
