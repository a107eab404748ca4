"""A conversation as it goes on after a break: every call answered, nothing done twice.

Whoever was killed in the middle of a step left calls without answers. One that had ended has its
answer in the journal. Of one that had begun nobody knows; it is said so, and it is not repeated.
One that never began is said not to have been carried out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.messages import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.agent.loop import Journal

_UNKNOWN = (
    '{"error": "interrupted: whether this was done is not known", "hint": "Look at what is there '
    'before you repeat it."}'
)
NEVER = '{"error": "interrupted before it began; it was not carried out"}'
STOPPED = (
    '{"error": "stopped with the turn while it was under way: how far it got is not known", '
    '"hint": "Look at what is there before you repeat it."}'
)


def resumed(journal: Journal) -> list[Message]:
    """The messages of a journal, with an answer appended for every call that lacks one."""
    messages = journal.messages()
    answered = {message.call_id for message in messages if message.role == "tool"}
    lacking = [use for message in messages for use in message.calls if use.id not in answered]
    if not lacking:
        return messages
    begun = {intent.call_id: intent.seq for intent in journal.intents()}
    ended = {
        line.value.call_seq: line.value.content
        for line in journal.journal()
        if line.kind == "outcome"
    }
    for use in lacking:
        content = ended.get(begun[use.id], _UNKNOWN) if use.id in begun else NEVER
        message = Message("tool", content, call_id=use.id, name=use.name)
        journal.append(message, usage=None, turn="")
        messages.append(message)
    return messages


def turns_of(journal: Journal | None, messages: Sequence[Message]) -> int:
    """How many turns there were: what a new one is called must not have been used before.

    Messages may have been summed up since; a journal knows the names themselves.
    """
    last = getattr(journal, "last_turn", None)
    said = sum(message.role == "user" for message in messages)
    return max(said, last() if last is not None else 0)
