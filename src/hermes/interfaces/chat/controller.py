"""Chat controller: dispatch an input line as an answer, a slash command or a message."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes.interfaces.chat.agent_session import Settings
from hermes.interfaces.chat.slash_commands import (
    AT_ONCE,
    COMMANDS,
    arguments_of,
    command_in,
    nearest,
)
from hermes.interfaces.chat.turns import Talk
from hermes.interfaces.chat.view import View
from hermes.interfaces.cli.approval_prompt import Questions, usual_values
from hermes.runtime.loop_thread import LoopThread

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from concurrent.futures import Future
    from typing import Any, Protocol

    from hermes.interfaces.chat.view import Face as Shown
    from hermes.interfaces.cli.approval_prompt import Question
    from hermes.interfaces.cli.main import CliApp

    class Face(Shown, Protocol):
        """Where the chat happens."""

        # Whether what is typed stays where it was typed.
        echoes: bool

        @property
        def question(self) -> Question | None:
            """What the person sees being asked."""
            ...

        def asked(self, question: Question | None) -> None:
            """Another question waits for an answer now, or none does."""
            ...

        def leave(self) -> None:
            """End the chat."""
            ...


# How long the end waits for a running turn.
_CLOSE_SECONDS = 10.0


class Chat:
    """One chat: lines of the person in, everything else through the face."""

    def __init__(self, app: CliApp, face: Face, settings: Settings | None = None) -> None:
        self.app = app
        self.face = face
        self.view = View(face)
        self._agent_loop = LoopThread("hermes-agent")
        self.questions = Questions(self._asked, lambda tool: usual_values(app.registry, tool))
        self.talk = Talk(app, self.view, self.questions, settings or Settings())
        self.arguments = arguments_of(self)
        self._warmed = False
        self._working = 0
        self._orderly = asyncio.Lock()

    @property
    def working(self) -> bool:
        """Whether a line is being dealt with."""
        return self._working > 0

    @property
    def busy(self) -> bool:
        """Whether a turn is under way."""
        return self.talk.busy

    def warm(self) -> None:
        """Somebody began to type: load in the meantime what a message will need."""
        if not self._warmed:
            self._warmed = True
            self._submit(self._warm())

    async def _warm(self) -> None:
        from hermes.core.errors import HermesError

        try:
            await asyncio.to_thread(self.talk.warm)
        except (HermesError, OSError):
            # Said when it is needed, and tried again then.
            return

    def line(self, text: str) -> None:
        """A line that the person typed; called in the face's thread."""
        command = command_in(text)
        if command is not None:
            self._command(text, *command)
        elif self.face.question is not None:
            self.reply(text)
        elif text.strip():
            self._begin(self._say(text))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._working += 1
        self._submit(self._counted(work))

    def _submit(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the agent's thread; its error is shown."""

        def done(future: Future[None]) -> None:
            if not future.cancelled() and (error := future.exception()) is not None:
                self.view.bug(error)

        self._agent_loop.submit(work).add_done_callback(done)

    async def _counted(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        finally:
            self._working -= 1
            self.face.refresh()

    def reply(self, text: str) -> None:
        """An answer to what the person is shown as being asked."""
        told = self.questions.reply(text, self.face.question)
        if told:
            self.view.note(told)

    async def _say(self, text: str) -> None:
        # Said to the conversation that was asked for before, once it is there.
        async with self.talk.changing:
            if not self.face.echoes:
                self.view.person(text, "↪" if self.talk.busy else "❯")
            self.talk.say(text)

    def _command(self, line: str, name: str, rest: str) -> None:
        if not self.face.echoes:
            self.view.person(line)
        if name not in COMMANDS:
            near = nearest(name)
            meant = f"did you mean /{near}?" if near else "/help lists them"
            self.view.note(
                f"no command is called /{name}; {meant} (a blank before it sends it as text)",
                "yellow",
            )
        elif name == "quit":
            self.face.leave()
        elif name in ("approve", "deny"):
            # Here and now: what is asked at this moment is what the person has seen.
            self.reply((rest or "yes") if name == "approve" else "no")
        else:
            self._begin(self._run(name, rest))

    async def _run(self, name: str, rest: str) -> None:
        from hermes.interfaces.chat.slash_actions import run

        if name in AT_ONCE:
            await run(self, name, rest)
            return
        # One after the other: what they print does not mix.
        async with self._orderly:
            await run(self, name, rest)

    def interrupt(self) -> None:
        """Ctrl-C during a turn."""
        self.talk.interrupt()

    def close(self) -> str:
        """End everything that was begun; how to go on with it later, if there is anything."""
        agent = self.talk.agent
        self.questions.close()
        self._agent_loop.close(self.talk.leave(), seconds=_CLOSE_SECONDS)
        return f"hermes resume {agent.id}" if agent is not None else ""

    def _asked(self, question: Question | None) -> None:
        if question is not None:
            self.view.ask(question.lines)
        self.face.asked(question)
