"""Session records: data types, errors, and their encoding in the journal."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from hermes.core.errors import HermesError
from hermes.core.model_protocol import Image, Message, Role, ToolUse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes.core.model_protocol import Usage


class SessionsError(HermesError):
    """A session can't be kept, found or read as asked."""


class DamagedError(SessionsError):
    """The store is damaged: it is read as far as possible, and not written any more."""


class QueryError(SessionsError):
    """A search can't be understood; the message says where, the hint how to write it."""


Relation = Literal["", "child", "fork"]


class SessionInfo(msgspec.Struct, frozen=True):
    """Summary of a session; times are seconds since 1970.

    `relation` to its `parent`: a `child` works for it, a `fork` continues a copy of it.
    """

    id: str
    title: str
    workspace: str
    model: str
    front_door: str
    parent: str
    relation: Relation
    began: float
    touched: float
    messages: int


class Intent(msgspec.Struct, frozen=True):
    """A call that was about to be made. `arguments` is a dict, or the text when it was none."""

    seq: int
    turn: str
    call_id: str
    tool: str
    arguments: Any
    effect: str
    at: float


class Outcome(msgspec.Struct, frozen=True):
    """Result of the call with the intent `call_seq`."""

    seq: int
    call_seq: int
    status: str
    content: str
    seconds: float
    at: float


class Note(msgspec.Struct, frozen=True):
    """Anything else worth keeping: an approval, a word of steering."""

    seq: int
    turn: str
    kind: str
    data: Any
    at: float


class Entry(msgspec.Struct, frozen=True):
    """One line of a journal as it stands: `value` is a message, Intent, Outcome, Note or Base."""

    seq: int
    kind: str
    turn: str
    at: float
    value: Any
    usage: Usage | None = None


class Base(msgspec.Struct, frozen=True):
    """A new beginning of the conversation: `messages` stand for everything up to `upto`."""

    upto: int
    messages: list[Any]


class Work(msgspec.Struct, frozen=True):
    """Number, failures and duration of the calls of one tool."""

    calls: int
    failed: int
    seconds: float


class Totals(msgspec.Struct, frozen=True):
    """Usage of a session and its children. Each `by_…` adds up to `usage`.

    The tokens of a request go to the tools that its answer calls, in equal parts, and to `""` when
    it calls none.
    """

    usage: Usage
    by_model: dict[str, Usage]
    by_tool: dict[str, Usage]
    by_agent: dict[str, Usage]
    work: dict[str, Work]


SYSTEM, USER, ASSISTANT, TOOL, INTENT, OUTCOME, NOTE, BASE = range(1, 9)
KINDS: dict[int, str] = {
    SYSTEM: "system", USER: "user", ASSISTANT: "assistant", TOOL: "tool",
    INTENT: "intent", OUTCOME: "outcome", NOTE: "note", BASE: "base",
}  # fmt: skip
MESSAGES = {kind: number for number, kind in KINDS.items() if number <= TOOL}

# A message's own text, or the one of the line that it refers to.
TEXT = f"CASE WHEN e.kind = {TOOL} AND e.ref IS NOT NULL THEN o.text ELSE e.text END"
LINES = "entries AS e LEFT JOIN entries AS o ON o.seq = e.ref"


class _Rest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message without its role and its text."""

    calls: tuple[ToolUse, ...] = ()
    call_id: str = ""
    name: str = ""
    reasoning: str = ""
    images: tuple[Image, ...] = ()
    extra: dict[str, Any] = msgspec.field(default_factory=dict)


_encode = msgspec.json.Encoder().encode
_decode_rest = msgspec.json.Decoder(_Rest).decode
_decode_messages = msgspec.json.Decoder(list[Message]).decode


def packed(message: Message) -> bytes | None:
    """The fields of a message besides role and text, encoded; None for most."""
    m = message
    if not (m.calls or m.call_id or m.name or m.reasoning or m.images or m.extra):
        return None
    return encoded(_Rest(m.calls, m.call_id, m.name, m.reasoning, m.images, m.extra))


def unpacked(kind: int, text: str, data: bytes | None) -> Message:
    """The message that was written down."""
    role = cast("Role", KINDS[kind])
    if data is None:
        return Message(role, text)
    rest = _decode_rest(data)
    return Message(
        role, text, rest.calls, rest.call_id, rest.name, rest.reasoning, rest.images, rest.extra
    )


def packed_base(messages: Iterable[Message]) -> bytes:
    """Messages that stand for all before them."""
    return zlib.compress(encoded(list(messages)))


def unpacked_base(upto: int, data: bytes) -> Base:
    """The messages that were written down together."""
    return Base(upto, _decode_messages(zlib.decompress(data)))


def encoded(value: Any) -> bytes:
    """JSON; invalid surrogates are replaced."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_mended(msgspec.to_builtins(value)))


def writable(text: str) -> str:
    """The text with unpaired surrogates replaced, so that it can be stored."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def searchable(kind: int, text: str, data: bytes | None) -> str:
    """The text that a search sees: the message, and the arguments of its calls."""
    if kind != ASSISTANT or data is None:
        return text
    calls = _decode_rest(data).calls
    return "\n".join([text, *(line for call in calls for line in _words_of(call))])


def _words_of(call: ToolUse) -> Iterable[str]:
    yield call.name
    try:
        value = msgspec.json.decode(call.arguments)
    except msgspec.DecodeError:
        yield call.arguments
    else:
        yield from _texts(value)


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return writable(value)
    if isinstance(value, dict):
        return {_mended(key): _mended(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(inner) for inner in value]
    return value
