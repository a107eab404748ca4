"""The journal of a child whose parent keeps none: it lasts as long as the program."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any

    from hermes.core.messages import Message, Usage


class _Intent(NamedTuple):
    seq: int
    call_id: str


class _Outcome(NamedTuple):
    call_seq: int
    content: str


class _Line(NamedTuple):
    kind: str
    value: Any


class Pages:
    """As much of a journal as a conversation needs to go on after a break; a `Journal`."""

    def __init__(self, id: str) -> None:  # noqa: A002
        self.id = id
        self._numbers = itertools.count(1)
        self._messages: list[Message] = []
        self._intents: list[_Intent] = []
        self._lines: list[_Line] = []

    def append(self, message: Message, *, usage: Usage | None = None, turn: str = "") -> int:  # noqa: ARG002
        """Keep a message."""
        self._messages.append(message)
        return next(self._numbers)

    def intend(self, turn: str, call_id: str, tool: str, arguments: str, effect: str) -> int:  # noqa: ARG002
        """Keep what is about to be called."""
        self._intents.append(_Intent(next(self._numbers), call_id))
        return self._intents[-1].seq

    def outcome(self, call_seq: int, status: str, content: str, seconds: float) -> int:  # noqa: ARG002
        """Keep what came of a call."""
        self._lines.append(_Line("outcome", _Outcome(call_seq, content)))
        return next(self._numbers)

    def messages(self) -> list[Message]:
        """The conversation so far."""
        return list(self._messages)

    def note(self, kind: str, data: Any, **_: Any) -> int:
        """Keep anything else."""
        self._lines.append(_Line(kind, data))
        return next(self._numbers)

    def compact(
        self,
        upto_seq: int,  # noqa: ARG002
        summary: list[Message],
        *,
        usage: Usage | None = None,  # noqa: ARG002
    ) -> int:
        """Let a summary stand for the conversation so far."""
        self._messages = list(summary)
        return next(self._numbers)

    def intents(self) -> list[_Intent]:
        """Every call that was begun."""
        return list(self._intents)

    def journal(self) -> list[_Line]:
        """Every line that is neither a message nor an intent."""
        return list(self._lines)
