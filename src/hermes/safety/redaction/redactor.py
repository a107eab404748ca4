"""Secrets out of text and values: by shape, by name, by known value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.safety.redaction.gate import look
from hermes.safety.redaction.known import KnownValues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hermes.safety.redaction.gate import Look
    from hermes.safety.redaction.nested import Again, Show
    from hermes.safety.redaction.squeeze import Span
    from hermes.safety.redaction.stream import RedactingStream

_detect: Callable[[str, Look], Iterator[Span]] | None = None


def mark(value: str, kind: str, number: bool) -> str:  # noqa: ARG001
    """What stands in a secret's place unless somebody wants something else there."""
    return f"[REDACTED:{kind}]"


def redact(text: str, *, show: Show | None = None) -> str:
    """`text` with each secret that shows by shape or name replaced by `[REDACTED:kind]`.

    `show` makes something else of a secret; where `text` is JSON it is given the value itself, not
    the way JSON writes it.
    """
    spans = find_secrets(text)
    return replace(text, spans, redact, show) if spans else text


class Redactor:
    """`redact` that also knows the values of some secrets and masks them wherever they appear."""

    __slots__ = ("_known", "_knows")

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = KnownValues(known)
        # Kept apart: a look at a flag costs a fraction of asking an object.
        self._knows = bool(self._known)

    def add(self, value: str) -> None:
        """Mask this value from now on."""
        self._known.add(value)
        self._knows = bool(self._known)

    def redact(self, text: str, *, show: Show | None = None) -> str:
        """`text` with every secret replaced by `[REDACTED:kind]`, or by what `show` makes of it."""
        spans = self.find(text) if self._knows else find_secrets(text)
        return replace(text, spans, self.redact, show) if spans else text

    def find(self, text: str) -> list[Span]:
        """Where the secrets are, as start, end and kind, in no particular order."""
        spans = find_secrets(text)
        if self._knows:
            spans.extend(self._known.find(text))
            spans.extend(self._known.find_joined(text))
        return spans

    def redact_value(self, value: Any) -> Any:
        """The same value with secrets masked in every text in it, keys included."""
        from hermes.safety.redaction.nested import redact_nested

        return redact_nested(value, self.redact)

    def stream(self) -> RedactingStream:
        """For text that arrives in pieces: feed them, and close at the end."""
        from hermes.safety.redaction.stream import RedactingStream

        return RedactingStream(self.find, self._known)


def find_secrets(text: str) -> list[Span]:
    """Where the secrets are that show by shape or by name."""
    seen = look(text)
    if seen is None:
        return []
    global _detect
    if _detect is None:
        # The detectors are loaded when the first text needs them.
        from hermes.safety.redaction.detect import detect

        _detect = detect
    return list(_detect(text, seen))


def replace(text: str, spans: list[Span], again: Again, show: Show | None = None) -> str:
    """`text` with each span masked; `again` masks single values where the text is JSON."""
    from hermes.safety.redaction.nested import is_json, keep_json_valid, unwritten

    if show is None:
        masked = mask(text, spans)
    else:
        masked = mask(text, spans, unwritten(show) if is_json(text) else show)
    return keep_json_valid(text, masked, again, show) if masked != text else text


def mask(text: str, spans: list[Span], show: Show = mark) -> str:
    """`text` with each span replaced by its mask; overlapping spans become one."""
    pieces: list[str] = []
    at = 0
    for start, end, kind in merge(spans):
        quote = kind[: -len(kind.lstrip("\\\"'`"))] if kind[0] in "\\\"'`" else ""
        masked = show(text[start:end], kind[len(quote) :], bool(quote))
        pieces += [text[at:start], quote, masked, quote]
        at = end
    pieces.append(text[at:])
    return "".join(pieces)


def merge(spans: list[Span]) -> list[Span]:
    """The spans in order, those which touch each other's text joined under the first one's kind."""
    merged: list[Span] = []
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if end <= start:
            continue
        if merged and start < merged[-1][1]:
            first, last, name = merged[-1]
            merged[-1] = (first, max(last, end), name)
        else:
            merged.append((start, end, kind))
    return merged
