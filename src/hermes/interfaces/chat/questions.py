"""What the person is asked while a turn goes on: approvals, and the agent's own questions.

One question at a time; others wait their turn. Only a line that the person typed after the
question was shown is an answer, and anything but a clear yes is a no.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from hermes.interfaces.chat.text import safe, safe_line, styled
from hermes.interfaces.cli.approval import ANSWERS, shown

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from hermes.core.context import ApprovalRequest

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
