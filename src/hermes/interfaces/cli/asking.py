"""Asks the person at the terminal, for commands that print lines.

One question at a time, whoever asks. Only what is typed after a question was shown answers it: what
was typed before is thrown away, and the person is told so. A question that nobody needs answered
any more is taken back; no terminal, no answer, Ctrl-C and the end of the input mean no.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from hermes.interfaces.chat.questions import Questions
from hermes.interfaces.cli.typeahead import TOO_EARLY, forget_typed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from hermes.interfaces.chat.questions import Question
    from hermes.interfaces.cli.terminal import Terminal

# How often a waiting question looks whether it is still asked.
_LOOK_SECONDS = 0.1


class Asking(Questions):
    """Questions as lines on stderr, answered by lines from the terminal."""

    def __init__(self, terminal: Terminal, usual: Callable[[str], Mapping[str, Any]]) -> None:
        """Ask on `terminal`.

        Args:
            terminal: Where it is asked.
            usual: The values that the arguments of a tool have when nobody says others.
        """
        super().__init__(self._begin, usual)
        self._terminal = terminal
        self._reading = threading.Lock()

    def _begin(self, question: Question | None) -> None:
        if question is not None:
            threading.Thread(target=self._ask, args=(question,), daemon=True).start()

    def _ask(self, question: Question) -> None:
        # The one before may just be finding out that it is not asked any more.
        with self._reading:
            if question.answer.done():
                return
            for line in question.lines:
                self._terminal.note(line)
            prompt = f"Run it? {question.prompt}" if question.approval else "Your answer"
            _forget_early(self._terminal)
            said = _answer(self._terminal, prompt, question.answer.done)
            if said is not None and self.reply(said, question) and not question.answer.done():
                # Anything but a clear yes.
                self.refuse()


def answer_to(terminal: Terminal, prompt: str) -> str:
    """The line that the person types now; empty at the end of the input."""
    _forget_early(terminal)
    return _answer(terminal, prompt, lambda: False) or ""


def _forget_early(terminal: Terminal) -> None:
    """Throw away what was typed so far, and say so."""
    if forget_typed():
        terminal.note(TOO_EARLY)


def _answer(terminal: Terminal, prompt: str, answered: Callable[[], bool]) -> str | None:
    """The line that the person types; None when it is answered otherwise meanwhile."""
    terminal.stderr.write(f"{prompt}: ")
    terminal.stderr.flush()
    while not answered():
        if _readable(_LOOK_SECONDS):
            return sys.stdin.readline()
    terminal.note("")
    return None


def _readable(seconds: float) -> bool:
    """Whether a line can be read now, or within so many seconds."""
    import os
    import select

    if os.name == "nt":
        # Only sockets can be looked at there.
        return True
    return bool(select.select([sys.stdin], [], [], seconds)[0])
