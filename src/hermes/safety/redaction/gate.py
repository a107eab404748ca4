"""The cheap first look: can there be a secret in a text at all?

Nearly every text is ordinary, so this decides what redaction costs: a few searches that run at
memory speed, in one function without calls.
"""

from __future__ import annotations

# Every name of a secret and every announcement of one holds one of these.
KEYWORDS = ("pass", "key", "token", "auth", "pw", "cookie", "secret", "cred")

# Every token holds this many letters, digits, `_` or `-` in a row somewhere.
RUN = 20
RUN_CLASS = "w" * RUN

# Letters of options that some program takes a secret with; `-` begins the long ones.
_OPTIONS = "puUawPbksN-"


def _class_of(code: int) -> int:
    if code in b"_-" or (code < 128 and chr(code).isalnum()):
        return ord("w")
    hidden = (code < 32 and code not in b"\t\n\r") or 127 <= code < 160 or code == 0xAD
    return 1 if hidden else ord(" ")


_TABLE = bytes(map(_class_of, range(256)))


def is_ordinary(text: str) -> bool:
    """Whether there is certainly no secret that shows by shape or by name."""
    low = text.lower()
    if (
        "pass" in low
        or "key" in low
        or "token" in low
        or "auth" in low
        or "pw" in low
        or "cookie" in low
        or "cre" in low
        or "://" in text
        or "\\" in text
        or (" -" in text and has_option(text))
        or ("'" in text and "identified by" in low)
    ):
        return False
    if len(text) < RUN and text.isascii() and text.isprintable():
        # Too short for a run of word characters, and nothing in it is hidden.
        return True
    if not text.isascii():
        classed = classes(text)
    else:
        classed = str(text.encode().translate(_TABLE), "latin-1")
    return RUN_CLASS not in classed and "\x01" not in classed


def classes(text: str) -> str:
    """The text by class, one character each: `w` for words, U+0001 for what is hidden, else blank.

    One more U+0001 at the end stands for characters that have no class of their own.
    """
    try:
        return str(text.encode("latin-1").translate(_TABLE), "latin-1")
    except UnicodeEncodeError:
        return str(text.encode("latin-1", "replace").translate(_TABLE), "latin-1") + "\x01"


def lower(text: str) -> str:
    """The text in lower case, place by place."""
    low = text.lower()
    # One letter, U+0130, becomes two in lower case.
    return low if len(low) == len(text) else text.replace("\u0130", "i").lower()


def has_option(text: str) -> bool:
    """Whether there is an option that some program takes a secret with."""
    at = text.find(" -")
    while at >= 0:
        after = text[at + 2 : at + 3]
        if after and after in _OPTIONS:
            return True
        at = text.find(" -", at + 2)
    return False
