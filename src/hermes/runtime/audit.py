"""Audit log: one JSON line per call, hash-chained.

Lines are buffered for at most one second; refused and approved calls are written at once. Each
line's hash covers the previous one, so `verify` reports the first line that was changed, removed
or moved.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from hermes.core.home import home_path
from hermes.core.json_text import to_json
from hermes.runtime.json_lines import (
    FULL,
    LineBuffer,
    append_lines,
    read_at,
    read_json_lines,
)
from hermes.safety.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any


# What the first line follows.
START = "0" * 64
_CUT = 4_000
_encode = msgspec.json.Encoder().encode_lines


class AuditLine(msgspec.Struct, gc=False):
    """What is noted of one call. `arguments` is JSON text, masked when the line is written."""

    at: float
    front_door: str
    session: str
    task: str
    agent: str
    call: str
    tool: str
    verdict: str
    rule: str
    approver: str
    status: str
    ms: float
    arguments: str | msgspec.Raw


def chain(
    lines: Sequence[AuditLine], after: str, redact: Callable[[str], str]
) -> tuple[bytes, str]:
    """The lines as they are written after the one whose hash is given; and the last one's hash."""
    _mask([line for line in lines if isinstance(line.arguments, str)], redact)
    written: list[bytes] = []
    last, append = after.encode(), written.append
    for body in _bodies(lines):
        last = hash_of(body, last)
        append(b'{"hash":"%b",%b\n' % (last, body[1:]))
    return b"".join(written), last.decode()


def hash_of(body: bytes, before: bytes) -> bytes:
    """The hash of a line, given that of the line before."""
    return hashlib.sha256(before + body).hexdigest().encode()


def split_line(line: bytes) -> tuple[str, bytes]:
    """A written line as its hash and the body that was hashed."""
    if not line.startswith(b'{"hash":"') or line[73:75] != b'",':
        return "", line
    return line[9:73].decode("ascii", "replace"), b"{" + line[75:]


def _bodies(lines: Sequence[AuditLine]) -> list[bytes]:
    try:
        text = _encode(lines)
    except UnicodeEncodeError:
        # A model may send lone surrogates even as a name.
        text = _encode([_printable(line) for line in lines])
    # JSON text has no raw newline, so each one ends a line.
    return text.split(b"\n")[:-1]


def _printable(line: AuditLine) -> AuditLine:
    fields = {name: getattr(line, name) for name in line.__struct_fields__}
    for name, value in fields.items():
        if isinstance(value, str):
            fields[name] = value.encode("utf-8", "backslashreplace").decode()
    return AuditLine(**fields)


def _mask(lines: Sequence[AuditLine], redact: Callable[[str], str]) -> None:
    """Put masked arguments, long texts cut, in place of the given ones."""
    given = [str(line.arguments) for line in lines]
    short = [text if len(text) <= _CUT else _shortened(text) for text in given]
    # One pass over all of them costs a fraction of one pass each.
    masked = redact("\n".join(short)).encode().split(b"\n")
    if len(masked) != len(short):
        masked = [redact(text).encode() for text in short]
    for line, arguments in zip(lines, masked, strict=True):
        line.arguments = msgspec.Raw(arguments)


def _shortened(arguments: str) -> str:
    return to_json(_cut(json.loads(arguments)))


def _cut(value: Any) -> Any:
    """Long texts by both ends, size and digest."""
    if isinstance(value, str) and len(value) > _CUT // 2:
        digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return f"{value[:500]}…[{len(value)} characters, sha256 {digest}]…{value[-500:]}"
    if isinstance(value, dict):
        return {key: _cut(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut(item) for item in value]
    return value


class AuditLog:
    """Appends to one file; several processes may share it."""

    def __init__(self, path: str | None = None) -> None:
        self.path = path or home_path("audit", "audit.jsonl")
        # Masks secrets in arguments; a runtime sets its own, which knows more of them.
        self.redact: Callable[[str], str] = redact
        self._buffer = LineBuffer("audit", self.flush)
        self._waiting: list[AuditLine] = self._buffer.waiting
        self._last = START
        self._size = -1

    def record(self, line: AuditLine, *, now: bool = False) -> None:
        """Record one call; `now` puts it on disk before returning."""
        waiting = self._waiting
        waiting.append(line)
        if now:
            self.flush()
        elif len(waiting) == 1:
            self._buffer.wake()
        elif len(waiting) == FULL:
            self._buffer.full()

    def flush(self) -> None:
        """Write the buffered lines; those that can't be written are tried again next time."""
        self._buffer.drain(self._append)

    def _append(self, lines: list[AuditLine]) -> None:
        if not lines:
            return
        last = START

        def chained(handle: int, size: int) -> bytes:
            nonlocal last
            # Another process may have written since.
            before = self._last if size == self._size else _last_hash(handle, size)
            data, last = chain(lines, before, self.redact)
            return data

        self._size = append_lines(self.path, chained)
        self._last = last
        # The lines are there: an older hash beside them is no reason to write them twice.
        with suppress(OSError):
            self._write_head()

    def _write_head(self) -> None:
        """Write the newest hash beside the log, in place: a rename would double the cost."""
        handle = os.open(f"{self.path}.head", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.write(handle, self._last.encode())
        finally:
            os.close(handle)


def lines(path: str) -> Iterator[dict[str, Any]]:
    """The lines of a log, oldest first; one that is no JSON is marked `unreadable`."""
    for line, value in read_json_lines(path):
        if isinstance(value, dict):
            yield value
        else:
            yield {"status": "unreadable", "tool": line[:80].decode("utf-8", "replace")}


def verify(path: str) -> tuple[int, str | None]:
    """How many lines hold, and what is wrong with the first that does not."""
    last, number, noted = START.encode(), 0, _noted(path)
    met = noted is None
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            given, body = split_line(line.rstrip(b"\n"))
            last = hash_of(body, last)
            if given.encode() != last:
                return number - 1, f"line {number} does not follow from the lines before it"
            met = met or last.decode() == noted
    return number, None if met else "lines are missing at the end"


def _noted(path: str) -> str | None:
    """The hash of the newest line, as it was noted beside the log: shows a log cut short."""
    try:
        with open(f"{path}.head", encoding="ascii") as file:
            return file.read() or None
    except (OSError, UnicodeDecodeError):
        return None


def _last_hash(handle: int, size: int) -> str:
    """The hash of the last whole line of the file."""
    back = 4096
    while size:
        start = max(0, size - back)
        tail = read_at(handle, size - start, start)
        lines = tail.rstrip(b"\n").split(b"\n")
        if len(lines) > 1 or start == 0:
            return split_line(lines[-1])[0] or START
        back *= 8
    return START
