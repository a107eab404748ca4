"""Line mode: the chat for dumb terminals or without the `chat` extra."""

from __future__ import annotations

import queue
import sys
import threading
import time
from typing import TYPE_CHECKING

from hermes.interfaces.chat.history import remember
from hermes.interfaces.cli.approval_prompt import TOO_EARLY, forget_typed
from hermes.interfaces.cli.screen_text import only_styles

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.interfaces.chat.controller import Chat
    from hermes.interfaces.cli.approval_prompt import Question

_LOOK_SECONDS = 0.2
_SILENCE_SECONDS = 30.0


class Plain:
    """The chat's face where nothing that was printed can be changed."""

    echoes = True

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._happened: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._leaving = False
        self._question: Question | None = None
        self._asked: Question | None = None
        self._shown = time.monotonic()

    @property
    def width(self) -> int:
        """The columns there are."""
        from hermes.interfaces.cli.terminal import Terminal

        return min(Terminal(sys.__stdout__).width, 100)

    def show(self, text: str) -> None:
        """Print lines, from any thread."""
        encoding = sys.stdout.encoding or "utf-8"
        safe = only_styles(text).encode(encoding, "backslashreplace").decode(encoding)
        with self._lock:
            self._shown = time.monotonic()
            try:
                sys.stdout.write(f"{safe}\n")
                sys.stdout.flush()
            except OSError:
                # The window has gone; what is under way ends in order all the same.
                return

    def refresh(self) -> None:
        """Something has changed: perhaps the turn is over."""
        self._happened.put(None)

    @property
    def question(self) -> Question | None:
        """What the person sees being asked."""
        return self._question

    def asked(self, question: Question | None) -> None:
        """Something else is being asked, or nothing more."""
        self._asked = question
        self._happened.put(None)

    def leave(self) -> None:
        """End the chat."""
        self._leaving = True
        self._happened.put(None)

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
                remember(line)
                chat.line(line)
                self._wait(chat)

    def _read(self) -> str | None:
        """A line; one that ends with a backslash goes on. None at the end of the input."""
        lines: list[str] = []
        sign = "> "
        while True:
            try:
                line = input(sign)
            except (EOFError, OSError):
                return None
            lines.append(line)
            if not line.endswith("\\"):
                return "\n".join(lines)
            lines[-1] = line[:-1]
            sign = ". "

    def _wait(self, chat: Chat) -> None:
        """Until what was begun has ended; questions are answered meanwhile."""
        while not self._leaving and (chat.busy or chat.working):
            try:
                asked = self._asked
                if asked is not None and not asked.answer.done():
                    self._answer(chat, asked)
                    continue
                self._happened.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                self._say_what_is_awaited(chat)
            except KeyboardInterrupt:
                chat.interrupt()

    def _answer(self, chat: Chat, question: Question) -> None:
        if forget_typed():
            self.show(TOO_EARLY)
        try:
            line = input(f"{question.prompt}: ")
        except (EOFError, OSError, KeyboardInterrupt):
            self.show("")
            line = ""
        self._question = question
        chat.line(line) if line.startswith("/") else chat.reply(line)
        self._question = None

    def _say_what_is_awaited(self, chat: Chat) -> None:
        """Nothing moves here: a long silence is explained."""
        if time.monotonic() - self._shown >= _SILENCE_SECONDS:
            self.show("\n".join(chat.view.now(self.width)) or "…")
