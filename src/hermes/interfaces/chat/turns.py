"""Turns of a chat: send messages, steer or interrupt a running turn, switch sessions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.interfaces.chat.agent_session import FRONT_DOOR, AgentOptions, AgentSession
from hermes.interfaces.cli.terminal import safe_line

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from hermes.agent.agent import Agent
    from hermes.agent.loop import Result
    from hermes.core.context import ToolContext
    from hermes.interfaces.chat.view import View
    from hermes.interfaces.cli.approval_prompt import QuestionQueue
    from hermes.interfaces.cli.main import CliApp

# How often a background agent is checked.
_POLL_SECONDS = 0.5


class Turns(AgentSession):
    """The turns of a chat, and its switches from one session to another."""

    def __init__(
        self, app: CliApp, view: View, questions: QuestionQueue, options: AgentOptions
    ) -> None:
        super().__init__(app, view, questions, options)
        self.images: list[str] = []
        # Held during a session switch: no message is sent meanwhile.
        self.switching = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn: asyncio.Task[None] | None = None
        self._interrupts = 0
        # Messages sent during a turn that the model has not read yet.
        self._unread: list[str] = []
        # Messages sent while the agent was being created.
        self._early: list[str] = []
        # Messages sent while the conversation is being compressed; None otherwise.
        self._queued: list[str] | None = None
        self._notices: list[str] = []

    @property
    def busy(self) -> bool:
        """Whether a turn is running."""
        return self._turn is not None

    # -- sessions -----------------------------------------------------------------------------

    async def leave(self) -> None:
        """End everything."""
        await self.new()
        await asyncio.to_thread(self._resources.close)

    async def new(self) -> None:
        """End the session; the next message starts another one."""
        async with self.switching:
            await self._close()

    async def resume(self, name: str) -> None:
        """Switch to a stored session."""
        async with self.switching:
            session = await asyncio.to_thread(lambda: self.sessions().open(name))
            await self._close()
            await self.resume_session(session)

    async def _close(self) -> None:
        # Messages that were not read yet belong to the session that ends.
        for text in (*(self._queued or ()), *self._unread):
            self.view.note(f"not sent: {text}", "yellow")
        self._unread.clear()
        self._early.clear()
        if self._queued:
            self._queued = []
        await self.stop()
        await self.end()

    # -- turns --------------------------------------------------------------------------------

    def send(self, text: str) -> None:
        """Send a message: starts a turn, or steers the running one."""
        if self._turn is None:
            self._start_turn(self._run_turn(text))
            return
        if self._queued is not None:
            self._queued.append(text)
            return
        self._unread.append(text)
        if self.agent is None:
            self._early.append(text)
        else:
            self.agent.conversation.steer(text)

    async def compress(self) -> None:
        """Compress the conversation; messages sent meanwhile are queued.

        It takes the place of a turn: nothing is appended meanwhile, and Ctrl-C ends it.
        """
        agent = self.agent
        if agent is None:
            raise HermesError("there is no conversation yet")
        if self.busy:
            raise HermesError("a turn is running", hint="End it first: Ctrl-C, or /stop.")
        self._queued = []
        self._start_turn(self._compress(agent))

    async def _compress(self, agent: Agent) -> None:
        from hermes.agent.compaction import Compaction

        self.view.begin("compressing")
        conversation = agent.conversation
        before = len(conversation.messages)
        compressed = await Compaction().compress(conversation)
        self.view.end()
        after = len(conversation.messages)
        self.view.note(
            f"{before} messages became {after}; the originals stay searchable"
            if compressed
            else "the conversation can't be shortened"
        )

    def _start_turn(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work that Ctrl-C interrupts and that excludes other turns."""
        self._loop = asyncio.get_running_loop()
        self._interrupts = 0
        self._turn = asyncio.ensure_future(work)
        self._turn.add_done_callback(self._turn_ended)

    def add_notice(self, notice: str) -> None:
        """Add a notice for the model to the next message."""
        self._notices.append(notice)

    async def _run_turn(self, text: str) -> None:
        self.view.begin()
        agent = self.agent or await self.start()
        early, self._early = self._early, []
        for message in early:
            agent.conversation.steer(message)
        prepared = await self._prepared(agent, text)
        notices, self._notices = self._notices, []
        text = "\n\n".join([*notices, prepared.text])
        # Awaited here, not as a task of its own: between its last look at the steering messages
        # and the end of the turn nothing else runs.
        result = await agent.conversation.turn(text, images=prepared.images)
        self._unread.clear()
        self._show_end(result)
        self._turn = None

    async def _prepared(self, agent: Agent, text: str) -> Any:
        from hermes.interfaces.chat.mentions import Prepared, prepared

        images, self.images = self.images, []
        if "@" not in text and not images:
            return Prepared(text)
        from hermes.agent.providers.model_profiles import profile_of

        runtime = self.app.runtime

        def context() -> ToolContext:
            return runtime.context(
                agent.id,
                session_id=agent.id,
                front_door=FRONT_DOOR,
                approver=self.questions.approve,
            )

        message = await prepared(
            text,
            images,
            runtime=runtime,
            context=context,
            sees=not profile_of(agent.provider.model).no_images,
        )
        for remark in message.remarks:
            self.view.note(remark, "yellow")
        return message

    def _show_end(self, result: Result) -> None:
        self.view.end()
        if result.reason:
            self.view.note(result.reason, "yellow")

    def _turn_ended(self, turn: asyncio.Task[None]) -> None:
        """Clean up after a turn, and send the queued messages."""
        if turn.cancelled():
            self.view.end()
            self.view.note("■ interrupted; the session goes on", "yellow")
        elif (error := turn.exception()) is not None:
            self.view.end()
            self.view.failure(error)
        unread, self._unread = self._unread, []
        for text in unread:
            self.view.note(f"not read yet, sent with the next message: {text}")
        # Last of all: the line mode shows its prompt as soon as there is no turn.
        self._turn = None
        queued, self._queued = self._queued, None
        for text in queued or ():
            self.send(text)
        self.view.display.refresh()

    async def background(self, text: str) -> None:
        """Run a request by a background agent; its end is shown."""
        async with self.switching:
            agent = self.agent or await self.start()
        handle = await asyncio.to_thread(agent.background, text)
        self.view.note(f"{handle} works on it; /agents shows its progress")
        while agent is self.agent:
            child = next((c for c in agent.children() if c.handle == handle), None)
            if child is None or not child.running:
                report = agent.report(handle)
                reason = f" ({safe_line(str(report['reason']))})" if report.get("reason") else ""
                state = child.state if child else "gone"
                self.view.note(f"{handle} has ended: {state}{reason}", "yellow")
                self.view.markdown(str(report.get("text") or ""))
                return
            await asyncio.sleep(_POLL_SECONDS)

    # -- interrupts ---------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Handle Ctrl-C: the first stops the running call, the second ends the turn."""
        turn, agent = self._turn, self.agent
        refused = self.questions.refuse()
        if turn is None:
            return
        self._interrupts += 1
        cancelled = agent is not None and agent.conversation.cancel_calls()
        if self._interrupts == 1 and (refused or cancelled):
            self.view.note("stopping that; Ctrl-C again ends the turn", "yellow")
        elif self._loop is not None:
            self._loop.call_soon_threadsafe(turn.cancel)
            self.questions.refuse_asked()

    async def stop(self) -> None:
        """End the running turn and wait for it."""
        turn = self._turn
        if turn is not None:
            self.questions.refuse_asked()
            turn.cancel()
            await asyncio.wait([turn])
