"""Journal of a conversation: intents and outcomes of calls, and resuming from them after a crash.

A process killed in the middle of a step leaves calls without results. A call that ended has its
result in the journal. A call that began but did not end is uncertain: the model is told so, and the
call is not repeated. A call that never began is reported as not carried out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.core.json_text import to_json
from hermes.core.log import Log
from hermes.core.model_protocol import Message
from hermes.safety.taint import declared_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from hermes.agent.loop import Conversation, Journal
    from hermes.core.entry import ToolOutcome
    from hermes.core.model_protocol import ToolUse
    from hermes.runtime.pipeline import Runtime

log = Log("hermes.agent")

_UNCERTAIN = (
    '{"error": "interrupted: whether this was done is not known", "hint": "Look at what is there '
    'before you repeat it."}'
)
_NOT_BEGUN = '{"error": "interrupted before it began; it was not carried out"}'
_CANCELLED = (
    '{"error": "stopped with the turn while it was under way: how far it got is not known", '
    '"hint": "Look at what is there before you repeat it."}'
)
# Kind of the notes that record the untrusted sources a session has read.
_TAINT_NOTE = "untrusted"


def resumed_messages(journal: Journal) -> list[Message]:
    """The messages of a journal, with a result appended for every call that lacks one."""
    messages = journal.messages()
    answered = {message.call_id for message in messages if message.role == "tool"}
    open_calls = [use for message in messages for use in message.calls if use.id not in answered]
    if not open_calls:
        return messages
    begun = {intent.call_id: intent.seq for intent in journal.intents()}
    ended = {
        line.value.call_seq: line.value.content
        for line in journal.journal()
        if line.kind == "outcome"
    }
    for use in open_calls:
        content = ended.get(begun[use.id], _UNCERTAIN) if use.id in begun else _NOT_BEGUN
        message = result_message(use, content)
        journal.append(message, usage=None, turn="")
        messages.append(message)
    return messages


def turn_count(journal: Journal | None, messages: Sequence[Message]) -> int:
    """The number of turns so far; a new turn needs an id that was never used.

    Compaction may have removed messages, so the journal's own count is taken where it has one.
    """
    last_turn = getattr(journal, "last_turn", None)
    requests = sum(message.role == "user" for message in messages)
    return max(requests, last_turn() if last_turn is not None else 0)


def result_text(outcome: ToolOutcome) -> str:
    """The result of a call as the model reads it; untrusted content is marked with its source."""
    if not outcome.source:
        return outcome.content
    # The mark wraps the content: inside it, the untrusted source could forge the mark.
    return f'{{"untrusted":{to_json(outcome.source)},"result":{outcome.content}}}'


def result_message(use: ToolUse, content: str) -> Message:
    """The tool message that answers a call."""
    return Message("tool", content, call_id=use.id, name=use.name)


class CallJournal:
    """Writes intent and outcome of each call of one step, as they happen; a `Watcher`."""

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
        content = self._ended[number] = result_text(outcome)
        if journal is not None:
            journal.outcome(self._intents[number], outcome.status, content, outcome.seconds)

    def abandon(self) -> None:
        """Answer every open call when the turn is cancelled, in the messages and in the journal."""
        conversation = self._conversation
        answered = {m.call_id for m in conversation.messages[-len(self._uses) :] if m.call_id}
        for number, use in enumerate(self._uses):
            if use.id in answered:
                continue
            default = _CANCELLED if number in self._begun else _NOT_BEGUN
            content = self._ended.get(number, default)
            message = result_message(use, content)
            intent = self._intents.get(number)
            try:
                if intent is not None and number not in self._ended and conversation.journal:
                    conversation.journal.outcome(intent, "cancelled", content, 0.0)
                conversation.append(message, turn=self._turn)
            except (HermesError, OSError):
                # `resumed_messages` repairs the journal when it is read again.
                conversation.messages.append(message)


# -- taint ------------------------------------------------------------------------------------


def restore_taint(
    runtime: Runtime, session: str, journal: Any, messages: Sequence[Message]
) -> None:
    """Restore the taint of a resumed session, and write new untrusted sources to its journal."""

    def keep(source: str) -> None:
        if journal is not None:
            try:
                journal.note(_TAINT_NOTE, source)
            except HermesError as error:
                log.warning("an untrusted source of the session can't be recorded: %s", error)

    sources = dict.fromkeys(_sources(runtime, journal, messages)) if messages else {}
    runtime.heard.keep(session, sources, keep)


def _sources(runtime: Runtime, journal: Any, messages: Sequence[Message]) -> Iterator[str]:
    for session in _ancestry(journal):
        for note in session.notes(_TAINT_NOTE):
            yield str(note.data)
    # The session that these messages come from may have been deleted.
    for name in {message.name for message in messages if message.role == "tool"}:
        entry = runtime.registry.resolve(name)
        if entry is not None and (source := declared_source(entry)):
            yield source


def _ancestry(journal: Any) -> Iterator[Any]:
    """A session and the sessions that it was forked from."""
    seen = set()
    while journal is not None and hasattr(journal, "notes") and journal.id not in seen:
        seen.add(journal.id)
        yield journal
        try:
            journal = journal.store.open(journal.parent) if journal.parent else None
        except HermesError:
            # Deleted.
            return
