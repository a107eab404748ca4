"""Redactor: secrets replaced in text, in streams and in nested values, by format, name or known
value.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hermes.safety.redaction.known_values import KnownValues
from hermes.safety.redaction.prefilter import KEYWORDS, join_lines, prefilter, visible_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Protocol

    from hermes.safety.redaction.prefilter import Prefilter, Span


if TYPE_CHECKING:
    # What stands in a secret's place, from its value, its kind, and whether it was a bare number.
    Show = Callable[[str, str, bool], str]

    class Again(Protocol):
        """The redaction that single values are given to."""

        def __call__(self, text: str, *, show: Show | None = None) -> str: ...


_DEEPEST = 200
_MARK = re.compile(r"\[REDACTED:([\w\-]+)\]")


def redact_nested(value: Any, redact: Again, show: Show | None = None, *, depth: int = 0) -> Any:
    """`value` with `redact` done to every text in it, each judged together with its key."""
    if isinstance(value, str):
        return redact(value, show=show)
    if depth > _DEEPEST:
        # Deeper than any real result: nothing of it is shown rather than shown unread.
        return "[REDACTED:depth]"
    if isinstance(value, dict):
        named = _named(value)
        return {
            redact(key, show=show) if isinstance(key, str) else key: redact_nested(
                item, redact, show, depth=depth + 1
            )
            if not isinstance(key, str) or not isinstance(item, (str, int))
            else _under_key(
                named if named and key.lower() in ("value", "val") else key, item, redact, show
            )
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return type(value)([redact_nested(item, redact, show, depth=depth + 1) for item in value])
    return value


def _named(value: dict[Any, Any]) -> str | None:
    """The `name` of a `{"name": …, "value": …}`."""
    for key in ("name", "key", "Name", "Key"):
        if isinstance(value.get(key), str):
            return str(value[key])
    return None


def _under_key(key: str, item: str | int, redact: Again, show: Show | None) -> Any:
    import json

    if isinstance(item, bool):
        return item
    if isinstance(item, int):
        pair = f"{json.dumps(key)}: {item}"
        if redact(pair) == pair:
            return item
        return show(str(item), "number", True) if show else "[REDACTED:number]"
    plain = redact(item, show=show)
    if len(item) > 20_000:
        return plain
    # The pair as JSON text says whether the key makes a secret of the value.
    prefix = json.dumps(key) + ": "
    pair = prefix + json.dumps(item)
    masked = redact(pair)
    if masked == pair or not masked.startswith(prefix + '"[REDACTED:') or not masked.endswith(']"'):
        return plain
    whole: str = json.loads(masked[len(prefix) :])
    mark = _MARK.fullmatch(whole)
    if not mark:
        return plain
    return show(item, mark[1], False) if show else whole


def keep_json_valid(text: str, masked: str, redact: Again, show: Show | None = None) -> str:
    """`masked`, or where that is no longer the JSON that `text` was, each value masked alone."""
    if text.lstrip()[:1] not in ("{", "[", '"') or is_json(masked):
        return masked
    import json

    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return masked
    return json.dumps(redact_nested(document, redact, show), ensure_ascii=text.isascii())


def is_json(text: str) -> bool:
    """Whether a text is a JSON object, array or string."""
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return False
    import json

    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def json_decoded(show: Show) -> Show:
    """`show` for parts of a JSON text: it gets the decoded value."""
    import json

    def shown(value: str, kind: str, number: bool) -> str:
        try:
            return show(str(json.loads(f'"{value}"', strict=False)), kind, number)
        except ValueError:
            return show(value, kind, number)

    return shown


_detect: Callable[[str, Prefilter], Iterator[Span]] | None = None


def mark(value: str, kind: str, number: bool) -> str:  # noqa: ARG001
    """The default mask of a secret."""
    return f"[REDACTED:{kind}]"


def redact(text: str, *, show: Show | None = None) -> str:
    """`text` with every secret replaced by `[REDACTED:kind]`, or by the result of `show`."""
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
        """`text` with every secret replaced by `[REDACTED:kind]`, or by the result of `show`."""
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

        return redact_nested(value, self.redact)

    def stream(self) -> RedactingStream:
        """For text that arrives in pieces: feed them, and close at the end."""

        return RedactingStream(self.find, self._known)


def find_secrets(text: str) -> list[Span]:
    """Where the secrets are that show by shape or by name."""
    seen = prefilter(text)
    if seen is None:
        return []
    spans = _detected(text, seen)
    if seen.hidden or "\\" in text:
        bare = visible_text(text, plain=seen.hidden)
        again = prefilter(bare.text) if bare else None
        if bare and again:
            spans += map(bare.original, _detected(bare.text, again))
    return spans


def _detected(text: str, seen: Prefilter) -> list[Span]:
    if not (seen.keywords or seen.run or seen.linked or seen.option or seen.sql):
        return []
    global _detect
    if _detect is None:
        # The detectors are loaded when the first text needs them.
        from hermes.safety.redaction.detect import detect

        _detect = detect
    return list(_detect(text, seen))


def replace(text: str, spans: list[Span], again: Again, show: Show | None = None) -> str:
    """`text` with each span masked; `again` masks single values where the text is JSON."""

    if show is None:
        masked = mask(text, spans)
    else:
        masked = mask(text, spans, json_decoded(show) if is_json(text) else show)
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


# A line is held until it is complete, or until it is longer than this.
LONGEST_LINE = 8_192
# An unfinished secret (a key block, a value over lines) is held up to this size.
LONGEST_SECRET = 131_072


class RedactingStream:
    """Redaction of a stream: feed chunks, pass on the result, close at the end.

    Whole lines are returned at once, unless their end may start a secret that continues on the next
    line. At most `LONGEST_SECRET` characters are held back.
    """

    __slots__ = ("_find", "_held", "_inside", "_known", "_wait")

    def __init__(self, find: Callable[[str], list[Span]], known: KnownValues) -> None:
        self._find = find
        self._known = known
        self._held = ""
        self._inside = False
        self._wait = 0

    def feed(self, chunk: str) -> str:
        """Add a chunk; the text that is safe to show now."""
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
        """The rest of `chunk` after a secret that is too long to be held back."""
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
