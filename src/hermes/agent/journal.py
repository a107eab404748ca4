"""Journal of a conversation: intents and outcomes of calls, and resuming from them after a
crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.core.json_text import to_json
from hermes.core.log import Log
from hermes.core.messages import Message
from hermes.safety.taint import declared_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from hermes.agent.loop import Conversation, Journal
    from hermes.core.entry import ToolOutcome
    from hermes.core.messages import ToolUse
    from hermes.runtime.pipeline import Runtime


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


def told(outcome: ToolOutcome) -> str:
    """What came of a call, as the model is told it: the words of strangers are marked as theirs."""
    if not outcome.source:
        return outcome.content
    # Around what was said and not in it, where whoever said it could write the mark, too.
    return f'{{"untrusted":{to_json(outcome.source)},"result":{outcome.content}}}'


def answer_to(use: ToolUse, content: str) -> Message:
    """What the model is told of one of its calls."""
    return Message("tool", content, call_id=use.id, name=use.name)


class Record:
    """Keeps intent and outcome of each call as they happen."""

    def __init__(self, conversation: Conversation, uses: Sequence[ToolUse], turn: str) -> None:
        self._conversation = conversation
        self._uses = uses
        self._turn = turn
        self._intents: dict[int, int] = {}
        self._begun: set[int] = set()
        self._ended: dict[int, str] = {}

    def begun(self, number: int) -> None:
        self._begun.add(number)
        journal, use = self._conversation.journal, self._uses[number]
        if journal is not None:
            entry = self._conversation.runtime.registry.resolve(use.name)
            effect = "read" if entry is None else entry.effect
            self._intents[number] = journal.intend(
                self._turn, use.id, use.name, use.arguments, effect
            )

    def ended(self, number: int, outcome: ToolOutcome) -> None:
        journal = self._conversation.journal
        content = self._ended[number] = told(outcome)
        if journal is not None:
            journal.outcome(self._intents[number], outcome.status, content, outcome.seconds)

    def abandon(self) -> None:
        """The turn is being cancelled: no call may stay without an answer, here or there."""
        conversation = self._conversation
        answered = {m.call_id for m in conversation.messages[-len(self._uses) :] if m.call_id}
        for number, use in enumerate(self._uses):
            if use.id in answered:
                continue
            content = self._ended.get(number, STOPPED if number in self._begun else NEVER)
            message = answer_to(use, content)
            intent = self._intents.get(number)
            try:
                if intent is not None and number not in self._ended and conversation.journal:
                    conversation.journal.outcome(intent, "cancelled", content, 0.0)
                conversation.append(message, turn=self._turn)
            except (HermesError, OSError):
                # A journal that can't be written is mended when it is read again.
                conversation.messages.append(message)


log = Log("hermes.agent")

NOTE = "untrusted"


def hear(runtime: Runtime, session: str, journal: Any, messages: Sequence[Message]) -> None:
    """Go on with what a session had read, and have its journal keep what is new."""

    def keep(source: str) -> None:
        if journal is not None:
            try:
                journal.note(NOTE, source)
            except HermesError as error:
                log.warning("what the session read can't be kept: %s", error)

    known = dict.fromkeys(_known(runtime, journal, messages)) if messages else {}
    runtime.heard.keep(session, known, keep)


def _known(runtime: Runtime, journal: Any, messages: Sequence[Message]) -> Iterator[str]:
    for session in _line(journal):
        for note in session.notes(NOTE):
            yield str(note.data)
    # Messages may come from a session that is no more.
    for name in {message.name for message in messages if message.role == "tool"}:
        entry = runtime.registry.resolve(name)
        if entry is not None and (source := declared_source(entry)):
            yield source


def _line(journal: Any) -> Iterator[Any]:
    """A session and those that it was forked from."""
    seen = set()
    while journal is not None and hasattr(journal, "notes") and journal.id not in seen:
        seen.add(journal.id)
        yield journal
        try:
            journal = journal.store.open(journal.parent) if journal.parent else None
        except HermesError:
            # It was deleted.
            return
