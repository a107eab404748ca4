"""Approval prompt: question queue, texts and yes-words, prompt on stderr, type-ahead discarded.

One question at a time. Only a line typed after the question was shown is an answer, and anything
but a clear yes is a no; so are Ctrl-C, the end of the input and a missing terminal.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from hermes.interfaces.cli.terminal import safe, safe_line, styled

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from hermes.core.context import ApprovalRequest
    from hermes.core.registry import ToolRegistry
    from hermes.interfaces.cli.terminal import Terminal

YES = ("y", "yes")
_NO = ("n", "no", "deny", "")
_DECISIONS = {
    **dict.fromkeys(YES, "once"),
    **dict.fromkeys(("s", "session"), "session"),
    **dict.fromkeys(("a", "always"), "always"),
    **dict.fromkeys(("r", "rest"), "batch"),
    **dict.fromkeys(_NO, "deny"),
}
_CONFIRMATIONS = {
    "once": "yes, this once",
    "session": "yes, for this session",
    "always": "yes, always",
    "batch": "yes, for the rest",
    "deny": "no",
}
# Longer arguments are shown by both ends, with their size and a digest.
_WHOLE = 4_000
TYPEAHEAD_DISCARDED = "(typed before the question was shown: not taken as an answer)"
# How often a prompt checks whether its question is still open.
_POLL_SECONDS = 0.1


class Question:
    """A question to the person: `lines` describe it, `prompt` names the possible answers.

    An approval that is one of a `batch` may be given for the rest of it.
    """

    def __init__(
        self, lines: Sequence[str], prompt: str, *, approval: bool, batch: str = ""
    ) -> None:
        from concurrent.futures import Future

        self.batch = batch
        self.lines = list(lines)
        self.prompt = prompt
        self.approval = approval
        self.answer: concurrent.futures.Future[str | None] = Future()

    def resolve(self, answer: str | None) -> None:
        """Set the answer, unless there is one."""
        if not self.answer.done():
            self.answer.set_result(answer)

    def refuse(self) -> None:
        """Answer no, or nothing."""
        self.resolve("deny" if self.approval else None)


class QuestionQueue:
    """Queue of questions; `changed` gets the one to show next, or None."""

    def __init__(
        self,
        changed: Callable[[Question | None], None],
        defaults: Callable[[str], Mapping[str, Any]],
    ) -> None:
        """`defaults` gives the default arguments of a tool, which are not shown."""
        self._changed = changed
        self._defaults = defaults
        self._lock = threading.Lock()
        self._waiting: list[Question] = []

    @property
    def current(self) -> Question | None:
        """The question being asked."""
        waiting = self._waiting
        return waiting[0] if waiting else None

    async def approve(self, request: ApprovalRequest) -> str | None:
        """Ask for the approval of a call; an `Approver`."""
        import asyncio

        rest = f"for the [r]est ({request.batch}), " if request.batch else ""
        question = Question(
            _description(request, self._defaults(request.tool)),
            f"[y]es once, {rest}for this [s]ession, [a]lways, [N]o",
            approval=True,
            batch=request.batch,
        )
        self._add(question)
        try:
            return await asyncio.wrap_future(question.answer)
        finally:
            self._remove(question)

    def ask_person(self, question: str, choices: Sequence[str]) -> str | None:
        """Ask a question of the agent; blocks until it is answered."""
        lines = [styled("❓ ", "yellow") + safe(question)]
        lines += [f"  {number}. {safe_line(choice)}" for number, choice in enumerate(choices, 1)]
        prompt = "a number, or words of your own" if choices else "your answer"
        entry = Question(lines, prompt, approval=False)
        self._add(entry)
        try:
            return entry.answer.result()
        finally:
            self._remove(entry)

    def reply(self, text: str, question: Question | None) -> str:
        """Answer the question that the person has seen; returns the confirmation to show.

        The answer counts for that question only, not for one that took its place meanwhile.
        """
        if question is None or question.answer.done():
            return "nothing is being asked"
        if question is not self.current:
            return "that is not being asked any more"
        answer = text.strip()
        if not question.approval:
            question.resolve(answer or None)
            return "" if answer else "no answer given"
        decision = _DECISIONS.get(answer.lower())
        if decision is None or (decision == "batch" and not question.batch):
            return f"that is no answer to the question: {question.prompt}"
        question.resolve(decision)
        return f"→ {_CONFIRMATIONS[decision]}"

    def refuse(self) -> bool:
        """Refuse the current question; False when there is none."""
        question = self.current
        if question is not None:
            question.refuse()
        return question is not None

    def refuse_asked(self) -> None:
        """Refuse the agent's own questions at the end of a turn; approvals end with their call."""
        for question in list(self._waiting):
            if not question.approval:
                question.refuse()

    def close(self) -> None:
        """Refuse all questions."""
        for question in list(self._waiting):
            question.refuse()

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
            following = self._waiting[0] if self._waiting else None
        if was_first:
            self._changed(following)


def _description(request: ApprovalRequest, defaults: Mapping[str, Any]) -> list[str]:
    agent = f" (asked by {safe_line(request.agent_path)})" if request.agent_path else ""
    lines = [
        styled("⚠ ", "yellow")
        + f"{safe_line(request.tool)}: {safe_line(request.reason)}"
        + styled(f" [{safe_line(request.rule)}]{agent}", "dim")
    ]
    for name, value in request.arguments.items():
        # Default values would bury the others.
        if value is not None and not (name in defaults and defaults[name] == value):
            lines.append(f"  {safe_line(str(name))} = {_visible(value)}")
    return lines


def _visible(value: object) -> str:
    """A value as JSON, with control, bidi and zero-width characters escaped."""
    import hashlib

    from hermes.core.json_text import to_json

    text = to_json(value)
    escaped = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    if len(escaped) <= _WHOLE:
        return escaped
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    ends = _WHOLE // 2
    return f"{escaped[:ends]} …[{len(text)} characters, sha256 {digest}]… {escaped[-ends:]}"


def default_arguments(registry: ToolRegistry, tool: str) -> dict[str, Any]:
    """The default values of a tool's arguments."""
    entry = registry.resolve(tool)
    properties = entry.parameters.get("properties", {}) if entry is not None else {}
    return {name: field["default"] for name, field in properties.items() if "default" in field}


def approve_all(request: ApprovalRequest) -> bool:  # noqa: ARG001
    """The approver of `--yes`: approves every call of this command."""
    return True


# -- prompt on a terminal ---------------------------------------------------------------------


def can_ask() -> bool:
    """Whether stdin and stderr are a terminal, so that a person can answer."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


class LinePrompt(QuestionQueue):
    """Questions as lines on stderr, answered by lines from stdin.

    A question that was answered elsewhere meanwhile is withdrawn.
    """

    def __init__(self, terminal: Terminal, defaults: Callable[[str], Mapping[str, Any]]) -> None:
        super().__init__(self._start, defaults)
        self._terminal = terminal
        self._reading = threading.Lock()

    def _start(self, question: Question | None) -> None:
        if question is not None:
            threading.Thread(target=self._ask, args=(question,), daemon=True).start()

    def _ask(self, question: Question) -> None:
        # The prompt before this one may still be noticing that it was withdrawn.
        with self._reading:
            if question.answer.done():
                return
            for line in question.lines:
                self._terminal.note(line)
            prompt = f"Run it? {question.prompt}" if question.approval else "Your answer"
            _discard_typeahead(self._terminal)
            answer = _read_line(self._terminal, prompt, question.answer.done)
            if answer is not None and self.reply(answer, question) and not question.answer.done():
                # Anything but a clear yes.
                self.refuse()


def ask_line(terminal: Terminal, prompt: str) -> str:
    """Prompt for a line; empty at the end of the input."""
    _discard_typeahead(terminal)
    return _read_line(terminal, prompt, lambda: False) or ""


def confirm(terminal: Terminal, prompt: str) -> bool:
    """Ask a yes-or-no question."""
    return ask_line(terminal, f"{prompt} [y/N]").strip().lower() in YES


def _discard_typeahead(terminal: Terminal) -> None:
    if discard_typeahead():
        terminal.note(TYPEAHEAD_DISCARDED)


def _read_line(terminal: Terminal, prompt: str, answered: Callable[[], bool]) -> str | None:
    """A line from stdin; None when the question is answered otherwise meanwhile."""
    terminal.stderr.write(f"{prompt}: ")
    terminal.stderr.flush()
    while not answered():
        if _readable(_POLL_SECONDS):
            return sys.stdin.readline()
    terminal.note("")
    return None


def _readable(seconds: float) -> bool:
    """Whether stdin can be read within so many seconds."""
    import os
    import select

    if os.name == "nt":
        # `select` takes only sockets there.
        return True
    return bool(select.select([sys.stdin], [], [], seconds)[0])


def discard_typeahead() -> bool:
    """Discard input typed so far, also an unfinished line; False when there was none."""
    try:
        import array
        import fcntl
        import termios
    except ImportError:
        return False
    try:
        before = termios.tcgetattr(sys.stdin)
        # An unfinished line is visible only in non-canonical mode.
        raw = [*before]
        raw[3] = before[3] & ~termios.ICANON
        termios.tcsetattr(sys.stdin, termios.TCSANOW, raw)
        try:
            waiting = array.array("i", [0])
            fcntl.ioctl(sys.stdin, termios.FIONREAD, waiting)
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSANOW, before)
    except (termios.error, OSError):
        # Not a terminal.
        return False
    return waiting[0] > 0
