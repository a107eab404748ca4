"""Prefilter: one cheap pass that decides which detectors have to look at a text."""

from __future__ import annotations

import re

# Every name of a secret and every announcement of one holds one of these.
KEYWORDS = ("pass", "key", "token", "auth", "pw", "cookie", "secret", "cred")

# Every token holds this many letters, digits, `_` or `-` in a row somewhere.
RUN = 20
RUN_CLASS = "w" * RUN

# A token may begin before its run, where one of these joins the two.
_GLUE = (".", ":", "/", "\\", "%")
# Beginnings of tokens that may go on in letters of one kind.
_MARKED = (
    "sk-",
    "AKIA",
    "ASIA",
    "ABIA",
    "ACCA",
    "AIza",
    "AGE-",
    "eyJ",
    "eyI",
    "EAA",
    "ATATT",
    "LTAI",
)
_CAMEL = re.compile(r"[a-z]*(?:[A-Z]{1,6}[a-z]{2,})+[A-Z]{0,6}[a-z]?")

# Letters of options that some program takes a secret with; `-` begins the long ones.
_OPTION = re.compile(" -[puUawPbksN-]")


def _class_of(code: int) -> int:
    if code in b"_-" or (code < 128 and chr(code).isalnum()):
        return ord("w")
    hidden = (code < 32 and code not in b"\t\n\r") or 127 <= code < 160 or code == 0xAD
    return 1 if hidden else ord(" ")


class Prefilter:
    """The result of the prefilter, reused by the detectors."""

    __slots__ = ("classed", "hidden", "keywords", "linked", "low", "option", "run", "sql")

    low: str
    keywords: list[str]
    classed: str
    run: bool
    hidden: bool
    linked: bool
    option: bool
    sql: bool


_TABLE = bytes(map(_class_of, range(256)))


def prefilter(text: str) -> Prefilter | None:
    """The input of the detectors; None if the text certainly has no secret by format or name."""
    low = text.lower()
    keywords: list[str] = []
    # Spelled out: this is what redaction costs.
    if "pass" in low:
        keywords.append("pass")
    if "key" in low:
        keywords.append("key")
    if "token" in low:
        keywords.append("token")
    if "auth" in low:
        keywords.append("auth")
    if "pw" in low:
        keywords.append("pw")
    if "cookie" in low:
        keywords.append("cookie")
    if "cre" in low:
        keywords += [word for word in ("secret", "cred") if word in low]
    if len(text) < RUN and not keywords and text.isascii() and text.isprintable():
        # Too short for a run of word characters, and nothing in it is hidden.
        classed = ""
    elif text.isascii():
        classed = str(text.encode().translate(_TABLE), "latin-1")
    else:
        classed = classes(text)
        low = lower(text)
    hidden = "\x01" in classed
    run = RUN_CLASS in classed and has_run(text, classed)
    linked = "://" in text
    option = _OPTION.search(text) is not None
    sql = "'" in text and ("identified by" in low or ("pass" in keywords and "password '" in low))
    if not (keywords or run or hidden or linked or option or sql or "\\" in text):
        return None
    seen = Prefilter()
    seen.low = low
    seen.keywords = keywords
    seen.classed = classed
    seen.run = run
    seen.hidden = hidden
    seen.linked = linked
    seen.option = option
    seen.sql = sql
    return seen


def has_run(text: str, classed: str) -> bool:
    """Whether one of the runs of word characters is more than a name or a line."""
    at = classed.find(RUN_CLASS)
    while at >= 0:
        if not is_name(text, at):
            return True
        at = run_end(classed, at + RUN)
        at = classed.find(RUN_CLASS, at)
    return False


def is_name(text: str, at: int) -> bool:
    """Whether a run begins as a long name in code does: words without digits, or a mere line."""
    start = text[at : at + RUN]
    if start.startswith(_MARKED):
        return False
    if start.isalpha():
        return (
            start.islower()
            or start.isupper()
            or (text[at - 1 : at] not in _GLUE and _CAMEL.fullmatch(start) is not None)
        )
    start = start.replace("_", "").replace("-", "")
    if not start:
        # A line of dashes, unless a word follows in the same run.
        return not text[at : at + 200].lstrip("-_")[:1].isalnum()
    return start.isalpha() and (start.islower() or start.isupper())


def run_end(classed: str, at: int) -> int:
    """Where the run of word characters that goes on at `at` ends."""
    end = classed.find(" ", at)
    return len(classed) if end < 0 else end


def classes(text: str) -> str:
    """The text by character class: `w` for word characters, U+0001 for invisible ones, else blank.

    One more U+0001 at the end stands for characters beyond Latin-1.
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
