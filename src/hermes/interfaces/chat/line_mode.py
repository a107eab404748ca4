"""Line mode: the chat for dumb terminals or without the `chat` extra."""

from __future__ import annotations

import queue
import sys
import threading
import time
from typing import TYPE_CHECKING

import hermes.interfaces.chat.history as history
from hermes.interfaces.cli.approval_prompt import TYPEAHEAD_DISCARDED, discard_typeahead
from hermes.interfaces.cli.terminal import only_styles

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.interfaces.chat.controller import Chat
    from hermes.interfaces.cli.approval_prompt import Question

_POLL_SECONDS = 0.2
_SILENCE_SECONDS = 30.0


class LineMode:
    """Frontend that reads and prints lines only."""

    echoes = True

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._leaving = False
        self._question: Question | None = None
        self._next_question: Question | None = None
        self._last_output = time.monotonic()

    @property
    def width(self) -> int:
        """Width in columns."""
        from hermes.interfaces.cli.terminal import Terminal

        return min(Terminal(sys.__stdout__).width, 100)

    def show(self, text: str) -> None:
        """Print lines, from any thread."""
        encoding = sys.stdout.encoding or "utf-8"
        safe = only_styles(text).encode(encoding, "backslashreplace").decode(encoding)
        with self._lock:
            self._last_output = time.monotonic()
            try:
                sys.stdout.write(f"{safe}\n")
                sys.stdout.flush()
            except OSError:
                # The terminal has gone; running work still ends in order.
                return

    def refresh(self) -> None:
        """Check whether the turn is over."""
        self._events.put(None)

    @property
    def question(self) -> Question | None:
        """The question that the person sees."""
        return self._question

    def set_question(self, question: Question | None) -> None:
        """Another question is next, or none."""
        self._next_question = question
        self._events.put(None)

    def leave(self) -> None:
        """End the chat."""
        self._leaving = True
        self._events.put(None)

    def run(self, chat: Chat, first: Callable[[], None]) -> None:
        """Read lines until the person leaves."""
        first()
        self._wait(chat)
        while not self._leaving:
            try:
                line = self._read()
            except KeyboardInterrupt:
                self.show("\n(Ctrl-D, or /quit, leaves the chat)")
                continue
            if line is None:
                self.show("")
                return
            if line.strip():
                history.append(line)
                chat.line(line)
                self._wait(chat)

    def _read(self) -> str | None:
        """An input line; a backslash at its end continues it. None at the end of the input."""
        lines: list[str] = []
        prompt = "> "
        while True:
            try:
                line = input(prompt)
            except (EOFError, OSError):
                return None
            lines.append(line)
            if not line.endswith("\\"):
                return "\n".join(lines)
            lines[-1] = line[:-1]
            prompt = ". "

    def _wait(self, chat: Chat) -> None:
        """Wait for the end of the turn, answering questions meanwhile."""
        while not self._leaving and (chat.busy or chat.working):
            try:
                question = self._next_question
                if question is not None and not question.answer.done():
                    self._answer(chat, question)
                    continue
                self._events.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                self._explain_silence(chat)
            except KeyboardInterrupt:
                chat.interrupt()

    def _answer(self, chat: Chat, question: Question) -> None:
        if discard_typeahead():
            self.show(TYPEAHEAD_DISCARDED)
        try:
            line = input(f"{question.prompt}: ")
        except (EOFError, OSError, KeyboardInterrupt):
            self.show("")
            line = ""
        self._question = question
        chat.line(line) if line.startswith("/") else chat.reply(line)
        self._question = None

    def _explain_silence(self, chat: Chat) -> None:
        """Print the status after a long silence."""
        if time.monotonic() - self._last_output >= _SILENCE_SECONDS:
            self.show("\n".join(chat.view.status(self.width)) or "…")
