"""Signs of life of a child: what it says, what it calls, when anything happened last."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hermes.agent.delegating.reporting import last_text
from hermes.agent.providers.protocol import Discarded, Done, TextDelta

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.agent.loop import Conversation
    from hermes.agent.providers.protocol import Event
    from hermes.runtime.events import Event as CallEvent


class Signs:
    """What is seen of a conversation from outside."""

    def __init__(self) -> None:
        self.began = self.last = time.monotonic()
        self.tools: set[str] = set()
        self.last_tool = ""
        # Told which tools it calls.
        self.progress: Callable[[str], None] | None = None
        self._conversation: Conversation | None = None
        self._partial: list[str] = []

    def begin(self, conversation: Conversation) -> None:
        """Watch a conversation from now on."""
        self._conversation = conversation
        self._partial.clear()
        self.began = self.last = time.monotonic()

    def beat(self) -> None:
        """Something happened."""
        self.last = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long it has been at work."""
        return time.monotonic() - self.began

    @property
    def silent(self) -> float:
        """How long nothing has happened; waiting for a person is no silence."""
        return time.monotonic() - self.last

    @property
    def text(self) -> str:
        """What it said last, be it half of an answer."""
        messages = self._conversation.messages if self._conversation is not None else ()
        return last_text(messages, self._partial)

    def said(self, event: Event) -> None:
        """Something came from the model."""
        self.beat()
        if isinstance(event, TextDelta):
            self._partial.append(event.text)
        elif isinstance(event, Done | Discarded):
            self._partial.clear()
        if isinstance(event, Done) and event.message.calls:
            names = [use.name for use in event.message.calls]
            self.tools.update(names)
            self.last_tool = names[-1]
            if self.progress is not None:
                self.progress(", ".join(names))

    def heard(self, event: CallEvent) -> None:
        """Something happened to a call, perhaps one of its own."""
        messages = self._conversation.messages if self._conversation is not None else ()
        # Ids of two conversations may be alike: at worst another child's life is taken for ours.
        if messages and any(use.id == event.call_id for use in messages[-1].calls):
            asked = event.kind == "approval_requested"
            self.last = float("inf") if asked else time.monotonic()
