"""The calls of one step in the journal: intent, outcome, and an answer for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.agent.resuming import NEVER, STOPPED
from hermes.core.errors import HermesError
from hermes.core.jsontext import to_json
from hermes.core.messages import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.agent.loop import Conversation
    from hermes.core.entry import ToolOutcome
    from hermes.core.messages import ToolUse


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
