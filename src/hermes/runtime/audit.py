"""Audit log: one JSON line per call, hash-chained.

Lines are buffered for at most one second; refused and approved calls are written at once. Each
line's hash covers the previous one, so `verify` reports the first line that was changed, removed or
moved. The head, the newest hash with the number of lines, is kept in a guarded folder apart from
the log: a log that is cut, deleted or written anew does not fit it. A writer compares before it
appends and records such a break in the head, where it stays.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from hermes.core.json_text import to_json
from hermes.core.paths import flock, home_path, make_private
from hermes.runtime.json_lines import FULL, LineBuffer, append_lines, read_at, read_json_lines
from hermes.safety.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from hermes.runtime.stages import CallState


# What the first line follows.
START = "0" * 64
_CUT = 4_000
_HEAD_BYTES = 64 + 1 + 20 + 1 + 6 + 1
_encode = msgspec.json.Encoder().encode_lines


class AuditLine(msgspec.Struct, gc=False):
    """One call in the log. `arguments` is JSON text, masked when the line is written."""

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
    """The encoded lines that follow the hash `after`, and the hash of the last one."""
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

    def record(self, state: CallState, status: str, seconds: float, *, now: bool = False) -> None:
        """Record one call; `now` puts it on disk before returning."""
        context = state.context
        waiting = self._waiting
        waiting.append(
            AuditLine(
                time.time(),
                context.front_door,
                context.session_id,
                context.task.id,
                context.agent_path,
                state.call_id,
                state.tool,
                state.verdict,
                state.rule,
                state.approver,
                status,
                int(seconds * 1_000_000) / 1000,
                state.noted,
            )
        )
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
        with _opened_head(self.path) as head_file:
            head = _read_head(head_file, self.path)
            last, count, problem = START, 0, ""

            def chained(handle: int, size: int) -> bytes:
                nonlocal last, count, problem
                # Another process may have written since.
                before = self._last if size == self._size else _last_hash(handle, size)
                count, problem = _compare(handle, size, before, head)
                # Whoever writes the log anew can write a head that fits.
                gone = size < self._size or (
                    0 < self._size < size and _last_hash(handle, self._size) != self._last
                )
                if gone and not problem:
                    problem = "the lines that this program wrote are gone"
                data, last = chain(lines, before, self.redact)
                return data

            self._size = append_lines(self.path, chained)
            self._last = last
            # The lines are written: a head that can't be is no reason to write them twice.
            with suppress(OSError):
                _write_head(head_file, Head(last, count + len(lines), head.breaks), problem)


class Head(NamedTuple):
    """The newest line's hash, `lines` in the log (-1: unknown), and the breaks recorded so far."""

    hash: str = ""
    lines: int = -1
    breaks: int = 0


def head_path(path: str) -> str:
    """The head file of a log; that of the default log is not in the log's folder."""
    if path == home_path("audit", "audit.jsonl"):
        return home_path("approvals", "audit.head")
    return f"{path}.head"


@contextmanager
def _opened_head(path: str) -> Iterator[int]:
    """The head file, locked; -1 where it can't be opened."""
    target = head_path(path)
    handle = -1
    with suppress(OSError):
        make_private(os.path.dirname(target))
        handle = os.open(target, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        if handle >= 0:
            flock(handle)
        yield handle
    finally:
        if handle >= 0:
            os.close(handle)


def _read_head(handle: int, path: str) -> Head:
    text = read_at(handle, 100, 0) if handle >= 0 else b""
    if not text:
        # Written by an older version, beside the log.
        with suppress(OSError), open(f"{path}.head", "rb") as file:
            text = file.read(100)
    words = text.decode("ascii", "replace").split("\n")[0].split()
    try:
        return Head(words[0], *map(int, words[1:3]))
    except (IndexError, ValueError):
        return Head()


def _write_head(handle: int, head: Head, problem: str) -> None:
    """Write the record of fixed size in place, and a break as one more line at the end."""
    if handle < 0:
        return
    if problem:
        head = head._replace(breaks=head.breaks + 1)
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        end = max(os.fstat(handle).st_size, _HEAD_BYTES)
        os.lseek(handle, end, os.SEEK_SET)
        os.write(handle, f"{stamp} {problem}\n".encode())
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, f"{head.hash} {head.lines:020d} {head.breaks:06d}\n".encode())


def _compare(handle: int, size: int, before: str, head: Head) -> tuple[int, str]:
    """The number of lines in the log, and the reason if it does not continue its head."""
    if head.hash == before and head.lines >= 0:
        return head.lines, ""
    if not size:
        return 0, f"the log of {head.lines} lines is gone" if head.lines > 0 else ""
    position = number = 0
    last, intact = START.encode(), True
    for number, line in enumerate(read_at(handle, size, 0).rstrip(b"\n").split(b"\n"), 1):
        given, body = split_line(line)
        last = hash_of(body, last)
        intact = intact and given.encode() == last
        if given == head.hash:
            position = number
    # A crash between a line and its head leaves a longer log; a head of an older version has no
    # count, and the first one no hash.
    expected = position if head.lines < 0 else head.lines
    if not head.hash or (intact and position and position == expected):
        return number, ""
    return number, f"the log of {number} lines does not continue that of {head.lines} lines"


def lines(path: str) -> Iterator[dict[str, Any]]:
    """The lines of a log, oldest first; one that is no JSON is marked `unreadable`."""
    for line, value in read_json_lines(path):
        if isinstance(value, dict):
            yield value
        else:
            yield {"status": "unreadable", "tool": line[:80].decode("utf-8", "replace")}


def verify(path: str) -> tuple[int, str | None]:
    """The number of valid lines and the first problem; `FileNotFoundError` without a log."""
    notes = ""
    try:
        with open(head_path(path), "rb") as file:
            head = _read_head(file.fileno(), path)
            notes = read_at(file.fileno(), 4_000, _HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        head = _read_head(-1, path)
    if head.lines > 0 and not os.path.exists(path):
        return 0, f"the log is missing; it had {head.lines} lines"
    last, number = START.encode(), 0
    position = 0 if not head.hash else -1
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            given, body = split_line(line.rstrip(b"\n"))
            last = hash_of(body, last)
            if given.encode() != last:
                return number - 1, f"line {number} does not follow from the lines before it"
            if given == head.hash:
                position = number
    if position < 0 or number < head.lines:
        return min(number, max(head.lines - 1, 0)), "lines are missing at the end"
    if head.hash and head.lines >= 0 and position != head.lines:
        return 0, f"it is not the log that was written: line {head.lines} is another one"
    if head.breaks:
        first = notes.strip().split("\n")[0]
        return number, f"{head.breaks} breaks were recorded, the first: {first}"
    return number, None


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
