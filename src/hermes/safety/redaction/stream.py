"""Redaction of text that arrives in pieces: no secret slips through where two pieces meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.redaction.gate import KEYWORDS
from hermes.safety.redaction.redactor import mask, merge
from hermes.safety.redaction.squeeze import join_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.redaction.known import KnownValues
    from hermes.safety.redaction.squeeze import Span

# A line is held until it is complete, or until it is longer than this.
LONGEST_LINE = 8_192
# An unfinished secret (a key block, a value over lines) is held up to this size.
LONGEST_SECRET = 131_072


class RedactingStream:
    """Feed pieces, pass on what comes back, close at the end.

    Whole lines come back at once, unless their end may be the beginning of a secret that goes on
    in the next line. Never more than `LONGEST_SECRET` characters are held back.
    """

    __slots__ = ("_find", "_held", "_inside", "_known", "_wait")

    def __init__(self, find: Callable[[str], list[Span]], known: KnownValues) -> None:
        self._find = find
        self._known = known
        self._held = ""
        self._inside = False
        self._wait = 0

    def feed(self, chunk: str) -> str:
        """Take one more piece; returns what is now safe to show."""
        if self._inside:
            chunk = self._skip(chunk)
        self._held += chunk
        if len(self._held) < self._wait or (
            "\n" not in chunk and len(self._held) < 2 * LONGEST_LINE
        ):
            return ""
        spans = merge(self._find(self._held))
        cut = self._cut(spans)
        if len(self._held) - cut > LONGEST_SECRET:
            cut = len(self._held)
            self._inside = bool(spans) and spans[-1][1] == cut
        # Nothing to show: with a lot held, look again only when there's a good deal more.
        self._wait = len(self._held) * 5 // 4 if cut == 0 and len(self._held) > LONGEST_LINE else 0
        return self._release(cut, spans)

    def close(self) -> str:
        """The end: returns everything still held, masked."""
        return self._release(len(self._held), self._find(self._held))

    def _release(self, cut: int, spans: list[Span]) -> str:
        text, self._held = self._held[:cut], self._held[cut:]
        return mask(text, [span for span in spans if span[1] <= cut])

    def _skip(self, chunk: str) -> str:
        """What is left of `chunk` after the rest of a secret too long to be held."""
        _, end, rest = chunk.partition("\n")
        self._inside = not end
        return end + rest

    def _cut(self, spans: list[Span]) -> int:
        """Up to where the held text can be shown: no secret can reach over this place."""
        line = self._held.rfind("\n") + 1
        if len(self._held) - line < 2 * LONGEST_LINE:
            return self._line_cut(line, spans)
        # One endless line: far enough from its end, after something that names no secret.
        cut = len(self._held) - max(LONGEST_LINE, 2 * self._known.longest)
        for _ in range(16):
            cut = next((end for start, end, _ in spans if start < cut < end), cut)
            if not any(word in self._held[max(0, cut - 200) : cut].lower() for word in KEYWORDS):
                break
            cut = max(0, cut - 200)
        return cut

    def _line_cut(self, cut: int, spans: list[Span]) -> int:
        last = self._held[self._held.rfind("\n", 0, max(0, cut - 1)) + 1 : cut]
        if any(word in last.lower() for word in KEYWORDS):
            # The value of a name in this line may stand in the next.
            cut -= len(last)
        cut = min(cut, self._open_key(cut), self._open_value(cut))
        for start, end, _ in reversed(spans):
            if start < cut < end:
                # From the line's start on, so that the name of the secret is seen again.
                cut = self._held.rfind("\n", 0, start) + 1
        return cut

    def _open_key(self, cut: int) -> int:
        """Where a private key block begins that has no end yet."""
        begin = self._held.rfind("-----BEGIN", 0, cut)
        if begin < 0 or "-----END" in self._held[begin:cut]:
            return cut
        return self._held.rfind("\n", 0, begin) + 1

    def _open_value(self, cut: int) -> int:
        """Where the beginning of a known value begins that goes on after the cut."""
        if not self._known:
            return cut
        text = self._held[max(0, cut - 4 * self._known.longest) : cut]
        joined = join_lines(text)
        size = self._known.begins_at_end(joined.text if joined else text)
        if not size:
            return cut
        length = len(joined.text) if joined else len(text)
        span = (length - size, length, "")
        start = joined.original(span)[0] if joined else span[0]
        return self._held.rfind("\n", 0, cut - len(text) + start) + 1
