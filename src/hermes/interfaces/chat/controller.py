"""Controller: dispatches an input line to answer, slash command or message; captured stdout."""

from __future__ import annotations

import asyncio
import io

from hermes.interfaces.chat.agent_session import AgentOptions
from hermes.interfaces.chat.slash_commands import (
    AT_ONCE,
    COMMANDS,
    arguments_of,
    command_in,
    nearest,
)
from hermes.interfaces.chat.turns import Turns
from hermes.interfaces.chat.view import View
from hermes.interfaces.cli.approval_prompt import QuestionQueue, default_arguments
from hermes.runtime.loop_thread import LoopThread

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future
    from typing import Any, Protocol

    from hermes.interfaces.chat.view import Display
    from hermes.interfaces.cli.approval_prompt import Question
    from hermes.interfaces.cli.main import CliApp


class CapturedOutput(io.TextIOBase):
    """A text stream that passes on complete lines.

    With the `descriptor` of the terminal it acts as a terminal (`isatty`, window size); without
    one, programs print plain lines.
    """

    encoding = "utf-8"

    def __init__(self, show: Callable[[str], None], descriptor: int | None = None) -> None:
        self._show = show
        self._descriptor = descriptor
        self._partial = ""

    def write(self, text: str) -> int:
        """Buffer the text up to the end of its line."""
        *lines, self._partial = (self._partial + text).split("\n")
        if lines:
            self._show("\n".join(lines))
        return len(text)

    def flush(self) -> None:
        """Pass on a line without its end."""
        partial, self._partial = self._partial, ""
        if partial:
            self._show(partial)

    def isatty(self) -> bool:
        return self._descriptor is not None

    def fileno(self) -> int:
        if self._descriptor is None:
            raise io.UnsupportedOperation("fileno")
        return self._descriptor


if TYPE_CHECKING:

    class Frontend(Display, Protocol):
        """Input and output of a chat."""

        # Whether the terminal itself shows the typed lines.
        echoes: bool

        @property
        def question(self) -> Question | None:
            """The question that the person sees."""
            ...

        def set_question(self, question: Question | None) -> None:
            """Show the next question, or none."""
            ...

        def leave(self) -> None:
            """End the chat."""
            ...


# How long the end waits for a running turn.
_CLOSE_SECONDS = 10.0


class Chat:
    """One chat: input lines from the frontend to the agent, and its output back."""

    def __init__(
        self, app: CliApp, frontend: Frontend, options: AgentOptions | None = None
    ) -> None:
        self.app = app
        self.frontend = frontend
        self.view = View(frontend)
        self._agent_loop = LoopThread("hermes-agent")
        self.questions = QuestionQueue(
            self._ask, lambda tool: default_arguments(app.registry, tool)
        )
        self.turns = Turns(app, self.view, self.questions, options or AgentOptions())
        self.arguments = arguments_of(self)
        self._warmed = False
        self._running = 0
        self._command_lock = asyncio.Lock()

    @property
    def working(self) -> bool:
        """Whether an input line is being processed."""
        return self._running > 0

    @property
    def busy(self) -> bool:
        """Whether a turn is running."""
        return self.turns.busy

    def warm(self) -> None:
        """Load the modules for the first message while the person types."""
        if not self._warmed:
            self._warmed = True
            self._submit(self._warm())

    async def _warm(self) -> None:
        from hermes.core.errors import HermesError

        try:
            await asyncio.to_thread(self.turns.warm)
        except (HermesError, OSError):
            # Reported when the first message fails in the same way.
            return

    def line(self, text: str) -> None:
        """Process an input line; called in the frontend's thread."""
        command = command_in(text)
        if command is not None:
            self._command(text, *command)
        elif self.frontend.question is not None:
            self.reply(text)
        elif text.strip():
            self._start(self._send(text))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._running += 1
        self._submit(self._counted(work))

    def _submit(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the agent's thread; its error is shown."""

        def done(future: Future[None]) -> None:
            if not future.cancelled() and (error := future.exception()) is not None:
                self.view.failure(error)

        self._agent_loop.submit(work).add_done_callback(done)

    async def _counted(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        finally:
            self._running -= 1
            self.frontend.refresh()

    def reply(self, text: str) -> None:
        """Answer the question that the person sees."""
        confirmation = self.questions.reply(text, self.frontend.question)
        if confirmation:
            self.view.note(confirmation)

    async def _send(self, text: str) -> None:
        # A session switch that was requested before comes first.
        async with self.turns.switching:
            if not self.frontend.echoes:
                self.view.message(text, "↪" if self.turns.busy else "❯")
            self.turns.send(text)

    def _command(self, line: str, name: str, rest: str) -> None:
        if not self.frontend.echoes:
            self.view.message(line)
        if name not in COMMANDS:
            near = nearest(name)
            hint = f"did you mean /{near}?" if near else "/help lists them"
            self.view.note(
                f"no command is called /{name}; {hint} (a blank before it sends it as text)",
                "yellow",
            )
        elif name == "quit":
            self.frontend.leave()
        elif name in ("approve", "deny"):
            # At once: for the question that the person sees now.
            self.reply((rest or "yes") if name == "approve" else "no")
        else:
            self._start(self._run(name, rest))

    async def _run(self, name: str, rest: str) -> None:
        from hermes.interfaces.chat.slash_commands import run

        if name in AT_ONCE:
            await run(self, name, rest)
            return
        # One after the other, so that their output does not mix.
        async with self._command_lock:
            await run(self, name, rest)

    def interrupt(self) -> None:
        """Handle Ctrl-C during a turn."""
        self.turns.interrupt()

    def close(self) -> str:
        """End the chat; the command that resumes its session, if there is one."""
        agent = self.turns.agent
        self.questions.close()
        self._agent_loop.close(self.turns.leave(), seconds=_CLOSE_SECONDS)
        return f"hermes resume {agent.id}" if agent is not None else ""

    def _ask(self, question: Question | None) -> None:
        if question is not None:
            self.view.question(question.lines)
        self.frontend.set_question(question)
