"""Text before the search for secrets: invisible characters removed, texts without a clue passed."""

from __future__ import annotations

import re
from functools import cache

from hermes.text.ansi import CONTROL, INVISIBLE, SEQUENCE

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


Span = tuple[int, int, str]

# Control and invisible characters as JSON or a programming language writes them.
_ESCAPED = (
    r"\\(?:(?:u001[bB]|x1[bB]|033|e)\[[0-9;?]*[A-Za-z]"
    r"|u(?:00(?:0[0-8bBcCeEfF]|1[0-9a-fA-F]|7[fF]|[aA][dD])|200[b-fB-F]|202[a-eA-E]"
    r"|20[6][0-9a-fA-F]|[fF][eE](?:0[0-9a-fA-F]|[fF]{2})|180[b-fB-F])|x(?:0[0-8]|1[0-9a-fA-F]|7[fF]))"
)


@cache
def _seen() -> re.Pattern[str]:
    return re.compile(f"(?:{SEQUENCE}|{_ESCAPED}|[{CONTROL}{INVISIBLE}])+")


@cache
def _plain_sign() -> re.Pattern[str]:
    # One set of characters is searched for much faster than a choice of sequences.
    return re.compile(f"[{CONTROL}{INVISIBLE}]")


@cache
def _escaped_sign() -> re.Pattern[str]:
    return re.compile(_ESCAPED)


@cache
def _joined() -> re.Pattern[str]:
    # Line ends too, also escaped ones: a known value may be wrapped over lines.
    return re.compile(rf"(?:{SEQUENCE}|{_ESCAPED}|\\[nrt]|[{CONTROL}{INVISIBLE}\s])+")


class VisibleText:
    """A text without invisible characters; `original(span)` maps a span back to the source."""

    __slots__ = ("_kept", "_starts", "text")

    def __init__(self, source: str, gaps: re.Pattern[str]) -> None:
        pieces: list[str] = []
        # For each kept piece: where it starts here, and where it starts in the source.
        self._starts: list[int] = []
        self._kept: list[int] = []
        at = length = 0
        for gap in gaps.finditer(source):
            if gap.start() > at:
                self._starts.append(length)
                self._kept.append(at)
                pieces.append(source[at : gap.start()])
                length += gap.start() - at
            at = gap.end()
        self._starts.append(length)
        self._kept.append(at)
        pieces.append(source[at:])
        self.text = "".join(pieces)

    def original(self, span: Span) -> Span:
        start, end, kind = span
        return self._place(start), self._place(end - 1) + 1, kind

    def _place(self, index: int) -> int:
        from bisect import bisect_right

        piece = bisect_right(self._starts, index) - 1
        return self._kept[piece] + index - self._starts[piece]


def visible_text(text: str, *, plain: bool) -> VisibleText | None:
    """`text` without invisible characters; None when it has none.

    `plain` says whether there can be any besides those written as escapes.
    """
    if "\\" in text and _escaped_sign().search(text):
        return VisibleText(text, _seen())
    if plain and _plain_sign().search(text):
        return VisibleText(text, _seen())
    return None


def bare_text(text: str) -> str:
    """`text` as `join_lines` would show it."""
    return _joined().sub("", text)


def join_lines(text: str) -> VisibleText | None:
    """`text` without invisible characters and white space; None when it has none."""
    return VisibleText(text, _joined()) if _joined().search(text) else None
