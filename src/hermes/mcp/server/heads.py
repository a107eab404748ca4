"""The head of a message: whether it asks something, and under which number.

A client that uses a number twice at once would wait for ever for one of the two answers, and so
would one whose number can't be one; both are told instead.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
from mcp_types import INVALID_REQUEST

from hermes.core.jsontext import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class _Head(msgspec.Struct):
    id: int | str | msgspec.UnsetType = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET


_decoded = msgspec.json.Decoder(_Head).decode


class WrongNumberError(Exception):
    """A request whose number will not do; `body` is what its client is told."""

    def __init__(self, number: int | str | None, why: str) -> None:
        super().__init__(why)
        error = {"code": INVALID_REQUEST, "message": why}
        self.body = to_json({"jsonrpc": "2.0", "id": number, "error": error}).encode()


class Numbers:
    """The numbers under which the clients of each session wait for an answer."""

    def __init__(self) -> None:
        self._open: set[tuple[str, int | str]] = set()

    @contextmanager
    def waiting(self, session: str, body: bytes) -> Iterator[Callable[[], None]]:
        """While a request of a session is answered; raises `WrongNumberError`.

        Gives what says that it is answered, should that be known sooner.
        """
        number = _number(body)
        if number is None or not session:
            yield lambda: None
            return
        key = session, number
        if key in self._open:
            raise WrongNumberError(number, "another request under that id is not answered yet")
        self._open.add(key)
        ended = False

        def answered() -> None:
            nonlocal ended
            if not ended:
                ended = True
                self._open.discard(key)

        try:
            yield answered
        finally:
            answered()


def _number(body: bytes) -> int | str | None:
    """The number that a request is to be answered under; None where nothing is asked."""
    try:
        head = _decoded(body)
    except (ValueError, RecursionError):
        if _is_asked_wrongly(body):
            raise WrongNumberError(
                None, "an id is a number without a fraction, or a text"
            ) from None
        # No message at all, which is found out elsewhere.
        return None
    if head.method is msgspec.UNSET or head.id is msgspec.UNSET:
        return None
    return head.id


def _is_asked_wrongly(body: bytes) -> bool:
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, dict) or not isinstance(value.get("method"), str):
        return False
    number = value.get("id", 0)
    return isinstance(number, bool) or not isinstance(number, (int, str))
