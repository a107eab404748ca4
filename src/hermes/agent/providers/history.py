"""Message history made valid for every API: roles, call ids, names, images."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from hermes.core.errors import ArgumentError
from hermes.core.json_text import to_json
from hermes.core.model_protocol import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from hermes.core.model_protocol import Image

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

_NO_RESULT = '{"error":"no result: the call was interrupted, and nobody can tell what it did"}'
_INVALID = re.compile(r"[^A-Za-z0-9_-]")
# Conversations in the cache.
_MAX_CONVERSATIONS = 8
# Key of the raw text of unreadable arguments.
UNREADABLE = "unreadable_arguments"


def valid_arguments(raw: str) -> str:
    """Arguments as a JSON object; unreadable ones become a string in it."""
    try:
        if isinstance(_decode(raw.encode()), dict):
            return raw
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        pass
    from hermes.core.arguments.json_repair import read_object

    try:
        # It may contain escaped lone surrogates, which strict parsers reject.
        return to_json(_cleaned(read_object(raw) or {}))
    except (ArgumentError, RecursionError):
        return to_json({UNREADABLE: clean(raw)})


def valid_name(name: str) -> str:
    """A tool name that every server accepts."""
    return _INVALID.sub("_", name)[:64] or "unknown"


def valid_id(call_id: str, *, longest: int = 40) -> str:
    """A call id that every server accepts; equal ids stay equal."""
    if call_id and len(call_id) <= longest and not _INVALID.search(call_id):
        return call_id
    return f"call_{_digest(call_id)[:16]}"


def nine_character_id(call_id: str) -> str:
    """An id of nine letters and digits, the only kind that Mistral's servers accept."""
    if len(call_id) == 9 and call_id.isascii() and call_id.isalnum():
        return call_id
    return _digest(call_id)[:9]


def _digest(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode("utf-8", "replace")).hexdigest()


def clean(text: str) -> str:
    """A text without lone surrogates, which no server accepts."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def image_note(image: Image) -> str:
    """The text in place of an image, for models without image input."""
    return f"(a picture, {image.media_type or 'of an unknown kind'}: this model sees no pictures)"


def encoded(value: Any) -> bytes:
    """A value as JSON, without lone surrogates."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, ValueError):
        return _encode(_cleaned(value))


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(item) for key, item in value.items()}
    return [_cleaned(item) for item in value] if isinstance(value, list | tuple) else value


def paired(messages: Sequence[Message]) -> list[Message]:
    """The messages with exactly one result right after every call."""
    return list(_pairs(messages))


def _pairs(messages: Sequence[Message]) -> Iterator[Message]:
    waiting: dict[str, str] = {}
    for message in messages:
        if message.role == "tool":
            if waiting.pop(message.call_id, None) is None:
                head = f"A result of {message.name or 'a tool'} whose call is missing:"
                yield Message("user", f"{head}\n{message.text}", images=message.images)
            else:
                yield message
            continue
        yield from _unanswered(waiting)
        waiting = {}
        if message.role == "assistant":
            if not message.calls and not message.text.strip():
                # Some servers reject an empty message.
                continue
            waiting = {use.id: use.name for use in message.calls}
        yield message
    yield from _unanswered(waiting)


def _unanswered(waiting: dict[str, str]) -> Iterator[Message]:
    for call_id, name in waiting.items():
        yield Message("tool", _NO_RESULT, call_id=call_id, name=name)


class HistoryCache:
    """Cache of encoded conversations: each message is encoded once.

    Messages before the model's last answer no longer change and are kept as bytes, so the cost of
    a request depends on the new messages only. Thread-safe; one provider may serve several
    conversations.
    """

    def __init__(self, write: Callable[[list[Message]], bytes]) -> None:
        """`write` encodes consecutive messages as JSON items joined by commas."""
        self._write = write
        # The fixed part of the last few conversations, newest first; replaced as a whole.
        self._states: tuple[tuple[list[Message], bytes], ...] = ()

    def __call__(self, messages: Sequence[Message]) -> bytes:
        """The encoded items of a conversation."""
        states = self._states
        prefixes = [state for state in states if list(messages[: len(state[0])]) == state[0]]
        longest = max(prefixes, key=lambda state: len(state[0]), default=([], b""))
        fixed, data = longest
        cut = _last_answer(messages, len(fixed))
        if cut > len(fixed):
            data = _joined(data, self._write(paired(messages[len(fixed) : cut])))
            others = tuple(state for state in states if state is not longest)
            self._states = ((list(messages[:cut]), data), *others[: _MAX_CONVERSATIONS - 1])
        return _joined(data, self._write(paired(messages[cut:])))

    def forget(self) -> None:
        """Empty the cache."""
        self._states = ()


def _last_answer(messages: Sequence[Message], after: int) -> int:
    """The index of the last answer that follows a message of another role; `after` if none."""
    for at in range(len(messages) - 1, after, -1):
        message = messages[at]
        follows = message.role == "assistant" and messages[at - 1].role != "assistant"
        if follows and (message.calls or message.text.strip()):
            return at
    return after


def _joined(first: bytes, second: bytes) -> bytes:
    return first + b"," + second if first and second else first or second
