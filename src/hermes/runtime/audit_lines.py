"""One line of the audit log: what it holds, how it is masked, and how lines are chained.

Lines are made into text many at a time: one pass of masking, one of encoding; the hash of each
depends on all lines before it.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import msgspec

from hermes.core.jsontext import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
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
