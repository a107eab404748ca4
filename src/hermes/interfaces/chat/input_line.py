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

from hermes.interfaces.chat.history import remember, typed_before
from hermes.interfaces.chat.mentions import mention_of
from hermes.interfaces.chat.slash_commands import completions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prompt_toolkit.document import Document
    from prompt_toolkit.key_binding import KeyPressEvent

    from hermes.interfaces.chat.controller import Chat


class Line:
    """What the person is typing; Enter sends it to the chat."""

    def __init__(self) -> None:
        self.chat: Chat | None = None
        # While something is being asked, what is sent answers it.
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

    def ask(self, asked: bool) -> None:
        """Another question begins, or the last has ended; what was typed before is no answer."""
        if asked:
            self._draft = self._draft if self.answering else self.buffer.text
            self.buffer.reset()
        elif not asked and self.answering and not self.buffer.text:
            self.buffer.text, self._draft = self._draft, ""
            self.buffer.cursor_position = len(self.buffer.text)
        self.answering = asked

    def keys(self) -> KeyBindings:
        """What the keys do."""
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
        keys.add("c-d", filter=empty)(lambda _: self._chat.face.leave())
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
            remember(text)
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
        """The only thing that it may become at once; else a choice, from one to the next."""
        buffer = self.buffer
        if buffer.complete_state is not None:
            found = buffer.complete_state.completions
        else:
            asked = CompleteEvent(completion_requested=True)
            found = list(self._completer.get_completions(buffer.document, asked))
        if len(found) == 1:
            buffer.cancel_completion()
            buffer.apply_completion(found[0])
        elif buffer.complete_state is not None:
            buffer.complete_next()
        elif found:
            buffer.insert_text(get_common_complete_suffix(buffer.document, found))
            buffer.start_completion()

    def _pasted(self, event: KeyPressEvent) -> None:
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        mention = mention_of(text)
        event.current_buffer.insert_text(f"{mention} " if mention else text)


class _History(History):
    """What was typed before; read when it is first looked at."""

    def load_history_strings(self) -> Iterable[str]:
        """Newest first."""
        return reversed(typed_before())

    def store_string(self, string: str) -> None:
        """Nothing: `remember` has written it."""


class _Completer(Completer):
    def __init__(self, line: Line) -> None:
        self._line = line

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002
    ) -> Iterable[Completion]:
        chat = self._line.chat
        if chat is None:
            return
        for half in completions(document.text_before_cursor, chat.app.project, chat.arguments):
            yield Completion(half.text, -half.length, display_meta=half.about)
