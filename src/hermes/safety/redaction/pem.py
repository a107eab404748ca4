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


@cache
def _no_key() -> re.Pattern[str]:
    return re.compile(r"[A-Z][A-Za-z\-]+: [^\n\\\"]{0,80}|\W|\\[nrt]")


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
        following = text.find("-----BEGIN", at, at + _LONGEST)
        end = text.find("-----END", at, following if following >= 0 else at + _LONGEST)
        if end >= 0:
            if re.search(r"[A-Za-z0-9+/=]{16}", text[at:end]):
                yield at, end, "private-key"
            closing = _border().match(text, end)
            at = closing.end() if closing else end
            continue
        body = _body().match(text, at, at + _LONGEST)
        # Headers alone are no key.
        if body and len(_no_key().sub("", body.group())) >= 16:
            stripped = body.group().rstrip("\"' \r\n\t,+")
            while stripped.endswith(("\\n", "\\r")):
                stripped = stripped[:-2]
            yield at, at + len(stripped.rstrip("\\")), "private-key"
            at += len(stripped)


def _tail_start(text: str, end: int) -> int:
    """Where the key text begins that leads up to `end`, line by line."""
    best = end
    line = _last_line()
    while True:
        match = line.search(text[max(0, best - 200) : best])
        if match is None or not match.group():
            return best
        best -= len(match.group())


@cache
def _last_line() -> re.Pattern[str]:
    # The last line of a block may be short; the others are not.
    return re.compile(
        r"(?:(?<![A-Za-z0-9+/=])|(?<=\\n))(?:[A-Za-z0-9+/]{16,}={0,2}|[A-Za-z0-9+/]{2,16}={1,2}|=[A-Za-z0-9+/]{4})"
        r"(?:\s|\\[nr]|[>|+])*\Z"
    )
