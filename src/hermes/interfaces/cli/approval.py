"""Asks the person at the terminal. No terminal, no answer, Ctrl-C or end of input mean no."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.core.context import ApprovalRequest
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


class TerminalApprover:
    """Shows what would run and why it asks, and waits for a yes."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def __call__(self, request: ApprovalRequest) -> str:
        """What the person said: once, session, always or deny."""
        note = self._terminal.note
        who = f"{request.agent_path} wants " if request.agent_path else ""
        note(f"{who}{request.tool}: {request.reason} [{request.rule}]")
        for name, value in request.arguments.items():
            note(f"  {name} = {shown(value)}")
        self._terminal.stderr.write("Run it? [y]es, for this [s]ession, [a]lways, [N]o: ")
        self._terminal.stderr.flush()
        try:
            answer = sys.stdin.readline()
        except KeyboardInterrupt:
            note("")
            return "deny"
        return ANSWERS.get(answer.strip().lower(), "deny")


class TerminalQuestions:
    """Puts the agent's own questions to the person: `ask_person` for its tools."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def __call__(self, question: str, choices: Sequence[str]) -> str:
        """What the person typed; empty when that is nothing."""
        self._terminal.note(question)
        for number, choice in enumerate(choices, 1):
            self._terminal.note(f"  {number}. {choice}")
        self._terminal.stderr.write("Your answer: ")
        self._terminal.stderr.flush()
        return sys.stdin.readline().strip()


def can_ask() -> bool:
    """Whether there is a person who sees the question and can type an answer."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def yes_to_this(request: ApprovalRequest) -> bool:  # noqa: ARG001
    """The approver for a person who said yes beforehand, for this one command."""
    return True


def shown(value: object) -> str:
    """A value as the person has to see it: nothing hidden, nothing that moves the cursor."""
    import hashlib

    from hermes.core.jsontext import to_json

    text = to_json(value)
    # Escapes make control, bidi and zero-width characters visible.
    plain = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    if len(plain) <= _WHOLE:
        return plain
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    ends = _WHOLE // 2
    return f"{plain[:ends]} …[{len(text)} characters, sha256 {digest}]… {plain[-ends:]}"
