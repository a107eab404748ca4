"""What a session store speaks of: plain values, and its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from hermes.core.errors import HermesError

if TYPE_CHECKING:
    from hermes.core.messages import Usage


class SessionsError(HermesError):
    """A session can't be kept, found or read as asked."""


class DamagedError(SessionsError):
    """The store is damaged: what can be read is read, and nothing more is written to it."""


class QueryError(SessionsError):
    """A search can't be understood; the message says where, the hint how to write it."""


Relation = Literal["", "child", "fork"]


class SessionInfo(msgspec.Struct, frozen=True):
    """A session at a glance; times are seconds since 1970.

    `relation` says what `parent` is to it: a `child` works for it, a `fork` left it.
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
    """What came of the call whose intent has the number `call_seq`."""

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
    """What the calls of one tool came to."""

    calls: int
    failed: int
    seconds: float


class Totals(msgspec.Struct, frozen=True):
    """What a session cost, with those that worked for it. Each `by_…` adds up to `usage`.

    The tokens of a request go to the tools that its answer calls, in equal parts, and to `""`
    when it calls none.
    """

    usage: Usage
    by_model: dict[str, Usage]
    by_tool: dict[str, Usage]
    by_agent: dict[str, Usage]
    work: dict[str, Work]
