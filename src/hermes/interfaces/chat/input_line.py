"""Input line: key bindings, pastes, completion, history search."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import (
    CompleteEvent,
    Completer,
    Completion,
    get_common_complete_suffix,
)
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.search import accept_search, stop_search

import hermes.interfaces.chat.history as history
from hermes.interfaces.chat.mentions import mention_of
from hermes.interfaces.chat.slash_commands import completions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prompt_toolkit.document import Document
    from prompt_toolkit.key_binding import KeyPressEvent

    from hermes.interfaces.chat.controller import Chat


class InputLine:
    """The input buffer; Enter sends its text to the chat."""

    def __init__(self) -> None:
        self.chat: Chat | None = None
        # Whether the text is the answer to a question.
        self.answering = False
        self._draft = ""
        self._completer = _Completer(self)
        self.buffer = Buffer(
            multiline=True,
            history=_History(),
            completer=self._completer,
            complete_while_typing=Condition(self._completing),
        )
        self.buffer.on_text_changed += self._changed

    def set_answering(self, answering: bool) -> None:
        """A question was shown, or the last one has ended; a draft is kept aside meanwhile."""
        if answering:
            self._draft = self._draft if self.answering else self.buffer.text
            self.buffer.reset()
        elif self.answering and not self.buffer.text:
            self.buffer.text, self._draft = self._draft, ""
            self.buffer.cursor_position = len(self.buffer.text)
        self.answering = answering

    def keys(self) -> KeyBindings:
        """Key bindings."""
        keys = KeyBindings()
        for enter in ("enter", "c-j"):
            keys.add(enter)(self._entered)
            keys.add("escape", enter)(lambda event: event.current_buffer.insert_text("\n"))
        keys.add("c-c")(self._interrupted)
        keys.add("<sigint>")(self._interrupted)
        keys.add("c-o")(lambda _: self._chat.view.expand(None))
        keys.add("tab")(self._complete)
        keys.add("<bracketed-paste>")(self._pasted)
        empty = Condition(lambda: not self.buffer.text)
        keys.add("c-d", filter=empty)(lambda _: self._chat.frontend.leave())
        if hasattr(os, "getpgrp"):
            keys.add("c-z")(lambda event: event.app.suspend_to_background())
        return keys

    @property
    def _chat(self) -> Chat:
        assert self.chat is not None
        return self.chat

    def _changed(self, buffer: Buffer) -> None:
        if buffer.text and not buffer.text.startswith("/"):
            self._chat.warm()

    def _completing(self) -> bool:
        before = self.buffer.document.text_before_cursor
        return before.startswith("/") or "@" in before

    def _entered(self, event: KeyPressEvent) -> None:
        buffer = self.buffer
        if event.app.layout.is_searching:
            accept_search()
            return
        state = buffer.complete_state
        if state is not None and state.current_completion is not None:
            buffer.apply_completion(state.current_completion)
            return
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
            return
        text = buffer.text
        if text.strip() and not self.answering:
            history.append(text)
            buffer.history.append_string(text)
        buffer.reset()
        if self.answering and not text.startswith("/"):
            self._chat.reply(text)
        elif text.strip():
            self._chat.line(text)

    def _interrupted(self, event: KeyPressEvent) -> None:
        if event.app.layout.is_searching:
            stop_search()
        elif self._chat.busy or self.answering:
            self._chat.interrupt()
        elif self.buffer.text:
            self.buffer.reset()
        else:
            self._chat.view.note("Ctrl-D, or /quit, leaves the chat")

    def _complete(self, _: KeyPressEvent) -> None:
        """Insert the only completion, or cycle through several."""
        buffer = self.buffer
        if buffer.complete_state is not None:
            matches = buffer.complete_state.completions
        else:
            event = CompleteEvent(completion_requested=True)
            matches = list(self._completer.get_completions(buffer.document, event))
        if len(matches) == 1:
            buffer.cancel_completion()
            buffer.apply_completion(matches[0])
        elif buffer.complete_state is not None:
            buffer.complete_next()
        elif matches:
            buffer.insert_text(get_common_complete_suffix(buffer.document, matches))
            buffer.start_completion()

    def _pasted(self, event: KeyPressEvent) -> None:
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        mention = mention_of(text)
        event.current_buffer.insert_text(f"{mention} " if mention else text)


class _History(History):
    """The input history, loaded at its first use."""

    def load_history_strings(self) -> Iterable[str]:
        """Newest first."""
        return reversed(history.load())

    def store_string(self, string: str) -> None:
        """Nothing: written by `history.append` already."""


class _Completer(Completer):
    def __init__(self, line: InputLine) -> None:
        self._line = line

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002
    ) -> Iterable[Completion]:
        chat = self._line.chat
        if chat is None:
            return
        text = document.text_before_cursor
        for match in completions(text, chat.app.project, chat.arguments):
            yield Completion(match.text, -match.length, display_meta=match.about)
