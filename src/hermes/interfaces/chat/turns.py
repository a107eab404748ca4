"""Turns of a chat: send messages, steer or interrupt a running turn, switch sessions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.interfaces.chat.agent_session import DOOR, Opening, Settings
from hermes.interfaces.cli.screen_text import safe_line

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from hermes.agent.agent import Agent
    from hermes.agent.loop import Result
    from hermes.core.context import ToolContext
    from hermes.interfaces.chat.view import View
    from hermes.interfaces.cli.approval_prompt import Questions
    from hermes.interfaces.cli.main import CliApp

# How often somebody looks whether an agent in the background has ended.
_LOOK_SECONDS = 0.5


class Talk(Opening):
    """One chat's conversation: the one under way, and the change to another."""

    def __init__(self, app: CliApp, view: View, questions: Questions, settings: Settings) -> None:
        super().__init__(app, view, questions, settings)
        self.pictures: list[str] = []
        # Held while one conversation gives way to another: nothing is said in between.
        self.changing = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn: asyncio.Task[None] | None = None
        self._pressed = 0
        self._unread: list[str] = []
        # Said while the agent was being made.
        self._early: list[str] = []
        self._after: list[str] | None = None
        self._news: list[str] = []

    @property
    def busy(self) -> bool:
        """Whether a turn is under way."""
        return self._turn is not None

    # -- from one conversation to another -----------------------------------------------------

    async def leave(self) -> None:
        """End everything."""
        await self.new()
        await asyncio.to_thread(self._open.close)

    async def new(self) -> None:
        """End the conversation; what is said next begins another one."""
        async with self.changing:
            await self._close()

    async def resume(self, name: str) -> None:
        """Go on with a session; the person is shown where it stands."""
        async with self.changing:
            session = await asyncio.to_thread(lambda: self.sessions().open(name))
            await self._close()
            await self.go_on(session)

    async def _close(self) -> None:
        # What is left was meant for the conversation that ends.
        for text in (*(self._after or ()), *self._unread):
            self.view.note(f"not sent: {text}", "yellow")
        self._unread.clear()
        self._early.clear()
        if self._after:
            self._after = []
        await self.stop()
        await self.end()

    # -- a turn -------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """What the person typed: a request, or a word during one."""
        if self._turn is None:
            self._occupy(self._carry_out(text))
            return
        if self._after is not None:
            self._after.append(text)
            return
        self._unread.append(text)
        if self.agent is None:
            self._early.append(text)
        else:
            self.agent.conversation.steer(text)

    async def compress(self) -> None:
        """Make the conversation shorter; what is said meanwhile is said when that has ended.

        Done in place of a turn: nothing is added to what is being summed up, and Ctrl-C ends it.
        """
        agent = self.agent
        if agent is None:
            raise HermesError("nothing was said yet")
        if self.busy:
            raise HermesError("a turn is under way", hint="End it first: Ctrl-C, or /stop.")
        self._after = []
        self._occupy(self._shorten(agent))

    async def _shorten(self, agent: Agent) -> None:
        from hermes.agent.compaction import Compaction

        self.view.begin("making it shorter")
        conversation = agent.conversation
        before = len(conversation.messages)
        shorter = await Compaction().compress(conversation)
        self.view.end()
        after = len(conversation.messages)
        self.view.note(
            f"{before} messages became {after}; the originals stay searchable"
            if shorter
            else "it can't be made shorter"
        )

    def _occupy(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin what the person may interrupt, and what nothing else happens beside."""
        self._loop = asyncio.get_running_loop()
        self._pressed = 0
        self._turn = asyncio.ensure_future(work)
        self._turn.add_done_callback(self._ended)

    def tell(self, news: str) -> None:
        """Something that the model has to know with the next message."""
        self._news.append(news)

    async def _carry_out(self, text: str) -> None:
        self.view.begin()
        agent = self.agent or await self.begin()
        early, self._early = self._early, []
        for word in early:
            agent.conversation.steer(word)
        message = await self._prepared(agent, text)
        news, self._news = self._news, []
        text = "\n\n".join([*news, message.text])
        # Awaited here and not as a task of its own: between its last look at what the person said
        # meanwhile and the end of the turn, nothing else runs.
        result = await agent.conversation.turn(text, images=message.images)
        self._unread.clear()
        self._show_end(result)
        self._turn = None

    async def _prepared(self, agent: Agent, text: str) -> Any:
        from hermes.interfaces.chat.mentions import Prepared, prepared

        pictures, self.pictures = self.pictures, []
        if "@" not in text and not pictures:
            return Prepared(text)
        from hermes.agent.providers.model_profiles import profile_of

        runtime = self.app.runtime

        def context() -> ToolContext:
            return runtime.context(
                agent.id, session_id=agent.id, front_door=DOOR, approver=self.questions.approve
            )

        message = await prepared(
            text,
            pictures,
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

    def _ended(self, turn: asyncio.Task[None]) -> None:
        """However the turn ended: the screen is in order, and the chat goes on."""
        if turn.cancelled():
            self.view.end()
            what = "it" if self._after is not None else "the turn"
            self.view.note(f"■ {what} was ended; the session goes on", "yellow")
        elif (error := turn.exception()) is not None:
            self.view.end()
            self.view.bug(error)
        unread, self._unread = self._unread, []
        for text in unread:
            self.view.note(f"not read yet, it goes with the next message: {text}")
        # Only now, when all is shown: somebody may wait for it to show a prompt.
        self._turn = None
        after, self._after = self._after, None
        for text in after or ():
            self.say(text)
        self.view.face.refresh()

    async def background(self, text: str) -> None:
        """Have another agent carry out a request; the person hears when it has ended."""
        async with self.changing:
            agent = self.agent or await self.begin()
        handle = await asyncio.to_thread(agent.background, text)
        self.view.note(f"{handle} works on it; /agents says how far it is")
        while agent is self.agent:
            child = next((one for one in agent.children() if one.handle == handle), None)
            if child is None or not child.running:
                report = agent.report(handle)
                why = f" ({safe_line(str(report['reason']))})" if report.get("reason") else ""
                state = child.state if child else "gone"
                self.view.note(f"{handle} has ended: {state}{why}", "yellow")
                self.view.markdown(str(report.get("text") or ""))
                return
            await asyncio.sleep(_LOOK_SECONDS)

    # -- interrupts ---------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Ctrl-C during a turn: the call under way first, the turn the second time."""
        turn, agent = self._turn, self.agent
        asked = self.questions.refuse()
        if turn is None:
            return
        self._pressed += 1
        cancelled = agent is not None and agent.conversation.cancel_calls()
        if self._pressed == 1 and (asked or cancelled):
            self.view.note("stopping that; Ctrl-C again ends the turn", "yellow")
        elif self._loop is not None:
            self._loop.call_soon_threadsafe(turn.cancel)
            self.questions.refuse_asked()

    async def stop(self) -> None:
        """End the turn that is under way, and wait for its end."""
        turn = self._turn
        if turn is not None:
            self.questions.refuse_asked()
            turn.cancel()
            await asyncio.wait([turn])
