"""Approval prompt: question queue, texts and yes-words, prompt on stderr, type-ahead discarded.

One question at a time. Only a line typed after the question was shown is an answer, and
anything but a clear yes is a no; so are Ctrl-C, the end of the input and a missing terminal.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from hermes.interfaces.cli.screen_text import safe, safe_line, styled

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from hermes.core.context import ApprovalRequest
    from hermes.core.registry import ToolRegistry
    from hermes.interfaces.cli.terminal import Terminal


# Shown whole up to here; longer arguments by both ends, with the size and a digest.
_WHOLE = 4_000
ANSWERS = {
    "y": "once",
    "yes": "once",
    "s": "session",
    "session": "session",
    "a": "always",
    "always": "always",
}


def can_ask() -> bool:
    """Whether there is a person who sees the question and can type an answer."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def yes_to_this(request: ApprovalRequest) -> bool:  # noqa: ARG001
    """The approver for a person who said yes beforehand, for this one command."""
    return True


def usual_values(registry: ToolRegistry, tool: str) -> dict[str, Any]:
    """The values that the arguments of a tool have when nobody gives others."""
    entry = registry.resolve(tool)
    properties = entry.parameters.get("properties", {}) if entry is not None else {}
    return {name: one["default"] for name, one in properties.items() if "default" in one}


def shown(value: object) -> str:
    """A value as the person has to see it: nothing hidden, nothing that moves the cursor."""
    import hashlib

    from hermes.core.json_text import to_json

    text = to_json(value)
    # Escapes make control, bidi and zero-width characters visible.
    plain = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    if len(plain) <= _WHOLE:
        return plain
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    ends = _WHOLE // 2
    return f"{plain[:ends]} …[{len(text)} characters, sha256 {digest}]… {plain[-ends:]}"


_NO = ("n", "no", "deny", "")
_SAID = {
    "once": "yes, this once",
    "session": "yes, for this session",
    "always": "yes, always",
    "deny": "no",
}


class Question:
    """Something to be answered; `lines` say what it is about, `prompt` what can be said."""

    def __init__(self, lines: Sequence[str], prompt: str, *, approval: bool) -> None:
        from concurrent.futures import Future

        self.lines = list(lines)
        self.prompt = prompt
        self.approval = approval
        self.answer: concurrent.futures.Future[str | None] = Future()


class Questions:
    """Asks one thing after the other; `changed` is told which, or None when all are answered."""

    def __init__(
        self, changed: Callable[[Question | None], None], usual: Callable[[str], Mapping[str, Any]]
    ) -> None:
        """`usual` gives the values that the arguments of a tool have when nobody says others."""
        self._changed = changed
        self._usual = usual
        self._lock = threading.Lock()
        self._waiting: list[Question] = []

    @property
    def current(self) -> Question | None:
        """What is being asked now."""
        waiting = self._waiting
        return waiting[0] if waiting else None

    async def approve(self, request: ApprovalRequest) -> str | None:
        """What the person says to a call that needs approval; an `Approver`."""
        import asyncio

        question = Question(
            _about(request, self._usual(request.tool)),
            "[y]es once, for this [s]ession, [a]lways, [N]o",
            approval=True,
        )
        self._add(question)
        try:
            return await asyncio.wrap_future(question.answer)
        finally:
            self._remove(question)

    def ask_person(self, question: str, choices: Sequence[str]) -> str | None:
        """What the person says to a question of the agent's; waits for it."""
        lines = [styled("❓ ", "yellow") + safe(question)]
        lines += [f"  {number}. {safe_line(choice)}" for number, choice in enumerate(choices, 1)]
        asked = Question(
            lines, "a number, or words of your own" if choices else "your answer", approval=False
        )
        self._add(asked)
        try:
            return asked.answer.result()
        finally:
            self._remove(asked)

    def reply(self, text: str, question: Question | None) -> str:
        """Take a typed line as the answer to the question that was seen; what to tell the person.

        An answer is for that question alone: when another one took its place meanwhile, it is none.
        """
        if question is None or question.answer.done():
            return "nothing is being asked"
        if question is not self.current:
            return "that is not being asked any more"
        said = text.strip()
        if not question.approval:
            _give(question, said or None)
            return "" if said else "no answer given"
        meant = ANSWERS.get(said.lower()) or ("deny" if said.lower() in _NO else "")
        if not meant:
            return f"that is no answer to the question: {question.prompt}"
        _give(question, meant)
        return f"→ {_SAID[meant]}"

    def refuse(self) -> bool:
        """Say no to the current question; whether there was one."""
        question = self.current
        if question is not None:
            _give(question, "deny" if question.approval else None)
        return question is not None

    def refuse_asked(self) -> None:
        """The turn ends, and with it the agent's own questions; approvals end with their call."""
        for question in list(self._waiting):
            if not question.approval:
                _give(question, None)

    def close(self) -> None:
        """Nobody will answer any more: everything that waits is told so."""
        for question in list(self._waiting):
            _give(question, "deny" if question.approval else None)

    def _add(self, question: Question) -> None:
        with self._lock:
            self._waiting.append(question)
            first = self._waiting[0] is question
        if first:
            self._changed(question)

    def _remove(self, question: Question) -> None:
        with self._lock:
            was_first = bool(self._waiting) and self._waiting[0] is question
            if question in self._waiting:
                self._waiting.remove(question)
            now = self._waiting[0] if self._waiting else None
        if was_first:
            self._changed(now)


def _give(question: Question, answer: str | None) -> None:
    if not question.answer.done():
        question.answer.set_result(answer)


def _about(request: ApprovalRequest, usual: Mapping[str, Any]) -> list[str]:
    who = f" (asked by {safe_line(request.agent_path)})" if request.agent_path else ""
    lines = [
        styled("⚠ ", "yellow")
        + f"{safe_line(request.tool)}: {safe_line(request.reason)}"
        + styled(f" [{safe_line(request.rule)}]{who}", "dim")
    ]
    for name, value in request.arguments.items():
        # What is as always says nothing, and would bury what is not.
        if value is not None and not (name in usual and usual[name] == value):
            lines.append(f"  {safe_line(str(name))} = {shown(value)}")
    return lines


TOO_EARLY = "(what was typed before this was asked is no answer to it)"


def forget_typed() -> bool:
    """Throw away what was typed so far, also a line without its end; whether there was any."""
    try:
        import array
        import fcntl
        import termios
    except ImportError:
        # Not on this system.
        return False
    try:
        before = termios.tcgetattr(sys.stdin)
        # Half a line shows up only where no whole lines are waited for.
        loose = [*before]
        loose[3] = before[3] & ~termios.ICANON
        termios.tcsetattr(sys.stdin, termios.TCSANOW, loose)
        try:
            waiting = array.array("i", [0])
            fcntl.ioctl(sys.stdin, termios.FIONREAD, waiting)
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSANOW, before)
    except (termios.error, OSError):
        # It is no terminal.
        return False
    return waiting[0] > 0


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
