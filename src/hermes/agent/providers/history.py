"""Message history made valid for every API: roles, call ids, names, images."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from hermes.core.errors import ArgumentError
from hermes.core.json_text import to_json
from hermes.core.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from hermes.core.messages import Image

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

_NO_RESULT = '{"error":"no result: the call was interrupted, and nobody can tell what it did"}'
_ODD = re.compile(r"[^A-Za-z0-9_-]")
# How many conversations at once are remembered.
_CONVERSATIONS = 8
# Where the quoted text of arguments that nobody could read is put.
UNREADABLE = "unreadable_arguments"


def valid_arguments(raw: str) -> str:
    """Arguments as the text of a JSON object; what can't be read as one is quoted in it."""
    try:
        if isinstance(_decode(raw.encode()), dict):
            return raw
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        pass
    from hermes.core.arguments.json_repair import read_object

    try:
        # Half of a character may be in it as an escape, which strict readers refuse.
        return to_json(_cleaned(read_object(raw) or {}))
    except (ArgumentError, RecursionError):
        return to_json({UNREADABLE: clean(raw)})


def valid_name(name: str) -> str:
    """A tool's name with nothing in it that a server refuses."""
    return _ODD.sub("_", name)[:64] or "unknown"


def valid_id(call_id: str, *, longest: int = 40) -> str:
    """A call's id with nothing in it that a server refuses; alike ids stay alike."""
    if call_id and len(call_id) <= longest and not _ODD.search(call_id):
        return call_id
    return f"call_{_digest(call_id)[:16]}"


def nine_letters(call_id: str) -> str:
    """An id of nine letters and digits, the only ones that Mistral's servers know."""
    if len(call_id) == 9 and call_id.isascii() and call_id.isalnum():
        return call_id
    return _digest(call_id)[:9]


def _digest(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode("utf-8", "replace")).hexdigest()


def clean(text: str) -> str:
    """A text that can be sent: halves of characters, which no server accepts, are replaced."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def blind_note(image: Image) -> str:
    """What a model is told in place of a picture that it can't see."""
    return f"(a picture, {image.media_type or 'of an unknown kind'}: this model sees no pictures)"


def encoded(value: Any) -> bytes:
    """A value as JSON, with every text in it clean."""
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


def mended(messages: Sequence[Message]) -> list[Message]:
    """The messages with one result for every call, right behind it, and no result without one."""
    return list(_paired(messages))


def _paired(messages: Sequence[Message]) -> Iterator[Message]:
    waiting: dict[str, str] = {}
    for message in messages:
        if message.role == "tool":
            if waiting.pop(message.call_id, None) is None:
                said = f"A result of {message.name or 'a tool'} whose call is missing:"
                yield Message("user", f"{said}\n{message.text}", images=message.images)
            else:
                yield message
            continue
        yield from _unanswered(waiting)
        waiting = {}
        if message.role == "assistant":
            if not message.calls and not message.text.strip():
                # Nothing was said; an empty message is refused by some.
                continue
            waiting = {use.id: use.name for use in message.calls}
        yield message
    yield from _unanswered(waiting)


def _unanswered(waiting: dict[str, str]) -> Iterator[Message]:
    for call_id, name in waiting.items():
        yield Message("tool", _NO_RESULT, call_id=call_id, name=name)


class Growing:
    """Conversations in the words of an API, each part of them written once.

    What comes before the model's last answer can't change any more and is kept as bytes: a turn
    costs what is new in it, however long the conversation is. One model may lead several
    conversations at once, also in several threads.
    """

    def __init__(self, write: Callable[[list[Message]], bytes]) -> None:
        """`write` gives the items of a stretch of messages, with commas between them."""
        self._write = write
        # What is settled of the last few conversations, newest first; replaced as a whole.
        self._known: tuple[tuple[list[Message], bytes], ...] = ()

    def __call__(self, messages: Sequence[Message]) -> bytes:
        """All of it."""
        known = self._known
        begun = [state for state in known if list(messages[: len(state[0])]) == state[0]]
        mine = max(begun, key=lambda state: len(state[0]), default=([], b""))
        settled, data = mine
        cut = _last_answer(messages, len(settled))
        if cut > len(settled):
            data = _joined(data, self._write(mended(messages[len(settled) : cut])))
            others = tuple(state for state in known if state is not mine)
            self._known = ((list(messages[:cut]), data), *others[: _CONVERSATIONS - 1])
        return _joined(data, self._write(mended(messages[cut:])))

    def forget(self) -> None:
        """Write everything anew the next time."""
        self._known = ()


def _last_answer(messages: Sequence[Message], after: int) -> int:
    """Where the last answer of the model begins that follows somebody else's words."""
    for at in range(len(messages) - 1, after, -1):
        said = messages[at]
        follows = said.role == "assistant" and messages[at - 1].role != "assistant"
        if follows and (said.calls or said.text.strip()):
            return at
    return after


def _joined(one: bytes, other: bytes) -> bytes:
    return one + b"," + other if one and other else one or other
