"""Paths that no system can hold, and paths that another system would read differently."""

from __future__ import annotations

import os
import re

_LONGEST_PATH = 4096
_LONGEST_PART = 255

_DEVICE = re.compile(r"(?i:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])")
_SHORT_NAME = re.compile(r"[^.~ ]{1,6}~[0-9]{1,6}(?:\.[^.]{0,3})?")


def problem(path: str) -> str | None:
    """Why no file can have this path; None when one can."""
    if not path:
        return "the path is empty"
    if "\0" in path:
        return "the path has a NUL character in it"
    try:
        raw = os.fsencode(path)
    except UnicodeError:
        return "the path has characters that no file name can hold"
    if len(raw) > _LONGEST_PATH:
        return "the path is too long"
    if any(len(part) > _LONGEST_PART for part in raw.split(b"/")):
        return "a part of the path is too long"
    return None


def windows_reading(path: str) -> str | None:
    """The path as Windows would read it; None when that is the same.

    Back-slashes separate, a drive goes, a stream's name after a colon goes, dots and blanks at the
    end of a part go.
    """
    if not re.search(r"[\\:]|[. ](?:/|\Z)", path):
        return None
    text = path.replace("\\", "/")
    text = re.sub(r"\A(?://[?.]/)?[A-Za-z]:(?=/|\Z)", "", text)
    parts = []
    for part in text.split("/"):
        bare = part if part in (".", "..") else part.partition(":")[0].rstrip(". ")
        parts.append(bare if bare or not part else ".")
    reading = "/".join(parts)
    return None if reading == path else reading


def is_foreign_name(part: str) -> bool:
    """Whether Windows takes a part for a device, or for the short form of a longer name."""
    return _DEVICE.fullmatch(part) is not None or _SHORT_NAME.fullmatch(part) is not None
