"""Private key blocks, whole or cut off at either end."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.safety.redaction.squeeze import Span

_LONGEST = 65_536


@cache
def _border() -> re.Pattern[str]:
    return re.compile(
        r"-{4,5} ?(?P<which>BEGIN|END) (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{0,5}"
    )


@cache
def _body() -> re.Pattern[str]:
    # Key text, headers such as `Proc-Type: 4,ENCRYPTED`, line ends plain or escaped, quote marks
    # and prefixes of each line: a block is often shown as a string literal or a diff.
    return re.compile(
        r"(?:[A-Za-z0-9+/=]{16,}|(?:\\{1,4}[nrt]|[\s\"'+>|,#*])+(?:[A-Za-z0-9+/=]{1,76}(?=\\|[\s\"']|\Z|-))?"
        r"|[A-Z][A-Za-z\-]+: [^\n\\\"]{0,80}|(?<=-)[A-Za-z0-9+/=]+|\.{3}|…)+"
    )


def find_keys(text: str) -> Iterator[Span]:
    """The inside of each private key block; what a cut-off block still shows of it, too."""
    at = 0
    while True:
        border = _border().search(text, at)
        if border is None:
            return
        at = border.end()
        if border["which"] == "END":
            # The beginning is gone: whatever key text stands before goes too.
            tail = _tail_start(text, border.start())
            if tail < border.start():
                yield tail, border.start(), "private-key"
            continue
        end = text.find("-----END", at, at + _LONGEST)
        between = text[at:end] if end >= 0 else ""
        if end >= 0 and "-----BEGIN" not in between:
            if re.search(r"[A-Za-z0-9+/=]{16}", between):
                yield at, end, "private-key"
            closing = _border().match(text, end)
            at = closing.end() if closing else end
            continue
        body = _body().match(text, at, at + _LONGEST)
        if body and len(re.sub(r"\W|\\[nrt]", "", body.group())) >= 16:
            stripped = body.group().rstrip("\"' \r\n\t,+")
            while stripped.endswith(("\\n", "\\r")):
                stripped = stripped[:-2]
            yield at, at + len(stripped.rstrip("\\")), "private-key"
            at += len(stripped)


def _tail_start(text: str, end: int) -> int:
    lines = re.compile(
        r"[A-Za-z0-9+/=]{4,}(?:(?:\r?\n|\\n|\\r\\n)[ \t>|+]*[A-Za-z0-9+/=]{4,})*(?:\r?\n|\\n|\s)*\Z"
    )
    window = text[max(0, end - 8192) : end]
    best = len(window)
    # Step back line by line as long as each is key text.
    while best > 0:
        cut = max(window.rfind("\n", 0, best - 1), window.rfind("\\n", 0, max(0, best - 2)) + 1)
        piece = window[cut + 1 : best]
        if not lines.fullmatch(piece.strip(" \t>|+")) or not re.search(
            r"[A-Za-z0-9+/=]{16}|=\s*$", piece
        ):
            break
        best = cut + 1
    return max(0, end - 8192) + best
