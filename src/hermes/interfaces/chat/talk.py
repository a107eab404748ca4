"""The conversation behind a chat: begun with the first message, resumed, asked, interrupted.

Everything here runs in the worker's loop; `interrupt` may be called from any thread.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hermes.agent.agent import Agent
    from hermes.agent.loop import Result
    from hermes.agent.providers.protocol import Provider
    from hermes.core.context import ToolContext
    from hermes.core.messages import Message
    from hermes.interfaces.chat.questions import Questions
    from hermes.interfaces.chat.view import View
    from hermes.interfaces.cli.main import CliApp
    from hermes.stores.sessions import Session, Sessions

DOOR = "chat"
# How often somebody looks whether an agent in the background has ended.
_LOOK_SECONDS = 0.5


class Settings:
    """What was asked for on the command line."""

    __slots__ = ("model", "profile", "toolsets")

    def __init__(
        self, model: str | None = None, toolsets: str | None = None, profile: str | None = None
    ) -> None:
        self.model = model
        self.toolsets = toolsets
        self.profile = profile


class Talk:
    """One chat's agent, and the session that keeps what is said."""

    def __init__(self, app: CliApp, view: View, questions: Questions, settings: Settings) -> None:
        self.app = app
        self.view = view
        self.questions = questions
        self.settings = settings
        self.agent: Agent | None = None
        self.pictures: list[str] = []
        self._opening = threading.Lock()
        self._open = ExitStack()
        self._sessions: Sessions | None = None
        self._unsubscribe: Callable[[], None] = lambda: None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn: asyncio.Task[None] | None = None
        self._pressed = 0
        self._unread: list[str] = []
        self._news: list[str] = []

    # -- the session --------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether a turn is under way."""
        return self._turn is not None

    def warm(self) -> None:
        """Load what the first message will need; nothing is begun by it."""
        from hermes.agent import agent
        from hermes.stores import sessions

        self.app.profile = self.settings.profile
        self.app.runtime  # noqa: B018 - made by being asked for
        self.app.offer()
        del agent, sessions

    def sessions(self) -> Sessions:
        """The store of sessions, open until the person leaves; may be called from any thread."""
        with self._opening:
            if self._sessions is None:
                from hermes.stores.sessions.keeping import kept_sessions

                kept = kept_sessions(self.app.config, self.view.note)
                self._sessions = self._open.enter_context(kept)
            return self._sessions

    async def leave(self) -> None:
        """End everything."""
        await self.close()
        await asyncio.to_thread(self._open.close)

    async def resume(self, name: str) -> None:
        """Go on with a session; the person is shown where it stands."""
        session = await asyncio.to_thread(lambda: self.sessions().open(name))
        await self.close()
        messages = await asyncio.to_thread(session.messages)
        unknown = await asyncio.to_thread(_unknown, session, messages)
        await self._begin(session)
        self._show_last(session, messages)
        for line in unknown:
            self.view.note(line, "yellow")

    async def ask(self, provider: Provider) -> None:
        """Have another model asked from now on."""
        agent = self.agent
        if agent is None:
            return
        before, agent.provider = agent.provider, provider
        agent.conversation.provider = provider
        agent.delegation.provider = provider
        await before.close()

    async def close(self) -> None:
        """End the conversation and what belongs to it; the session stays."""
        await self.stop()
        agent, self.agent = self.agent, None
        if agent is not None:
            self._unsubscribe()
            await agent.provider.close()
            await asyncio.to_thread(agent.close)

    async def _begin(self, session: Session | None = None) -> Agent:
        self.agent = agent = await asyncio.to_thread(self._made, session)
        self._unsubscribe = self.app.runtime.events.subscribe(self.view.tool)
        self.view.note(f"{agent.provider.model} at {agent.provider.name}, in {agent.workspace}")
        return agent

    def _made(self, session: Session | None) -> Agent:
        from hermes.agent.agent import Agent

        self.app.profile = self.settings.profile
        runtime = self.app.runtime
        runtime.services["ask_person"] = self.questions.ask_person
        self.view.redact = runtime.redactor.redact
        journal = session or self.sessions().begin(
            workspace=self.app.project, front_door=DOOR, model=""
        )
        toolsets = self.settings.toolsets
        return Agent(
            self.settings.model,
            toolsets=toolsets.split(",") if toolsets else None,
            approver=self.questions.approve,
            app=self.app,
            journal=journal,
            front_door=DOOR,
            on_event=self.view.model,
        )

    # -- a turn -------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """What the person typed: a request, or a word during one."""
        self._loop = asyncio.get_running_loop()
        if self._turn is None:
            self._pressed = 0
            self._turn = asyncio.ensure_future(self._carry_out(text))
            self._turn.add_done_callback(self._ended)
            return
        self._unread.append(text)
        if self.agent is not None:
            self.agent.conversation.steer(text)

    def tell(self, news: str) -> None:
        """Something that the model has to know with the next message."""
        self._news.append(news)

    async def _carry_out(self, text: str) -> None:
        self.view.begin()
        agent = self.agent
        if agent is None:
            agent = await self._begin()
            # Said while the agent was being made.
            for word in self._unread:
                agent.conversation.steer(word)
        message = await self._prepared(agent, text)
        news, self._news = self._news, []
        text = "\n\n".join([*news, message.text])
        # Awaited here and not as a task of its own: between its last look at what the person said
        # meanwhile and the end of the turn, nothing else runs.
        result = await agent.conversation.turn(text, images=message.images)
        self._turn = None
        self._unread.clear()
        self._show_end(result)

    async def _prepared(self, agent: Agent, text: str) -> Any:
        from hermes.interfaces.chat.mentions import Prepared, prepared

        pictures, self.pictures = self.pictures, []
        if "@" not in text and not pictures:
            return Prepared(text)
        from hermes.agent.providers.profiles import profile_of

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
            sees=not profile_of(agent.provider.model).blind,
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
        self._turn = None
        if turn.cancelled():
            self.view.end()
            self.view.note("■ the turn was ended; the session goes on", "yellow")
        elif (error := turn.exception()) is not None:
            self.view.end()
            self.view.bug(error)
        unread, self._unread = self._unread, []
        for text in unread:
            self.view.note(f"not read yet, it goes with the next message: {text}")
        self.view.face.refresh()

    async def background(self, text: str) -> None:
        """Have another agent carry out a request; the person hears when it has ended."""
        agent = self.agent or await self._begin()
        handle = await asyncio.to_thread(agent.background, text)
        self.view.note(f"{handle} works on it; /agents says how far it is")
        while agent is self.agent:
            child = next((one for one in agent.children() if one.handle == handle), None)
            if child is None or not child.running:
                self.view.note(f"{handle} has ended: {child.state if child else 'gone'}", "yellow")
                self.view.markdown(str(agent.report(handle).get("text") or ""))
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

    # -- what is shown of a session -----------------------------------------------------------

    def _show_last(self, session: Session, messages: list[Message]) -> None:
        asked = [message.text for message in messages if message.role == "user"]
        said = [m.text for m in messages if m.role == "assistant" and m.text.strip()]
        title = f" “{session.title}”" if session.title else ""
        self.view.note(f"session {session.id}{title}, {len(messages)} messages")
        if session.workspace and session.workspace != self.app.project:
            self.view.note(f"it worked in {session.workspace}; now it works here", "yellow")
        if asked:
            self.view.person(asked[-1])
        if said and messages[-1].role != "user":
            self.view.markdown(self.view.redact(said[-1]))


def _unknown(session: Session, messages: list[Message]) -> list[str]:
    """What a break left open: calls that nobody has an answer to."""
    answered = {message.call_id for message in messages if message.role == "tool"}
    lacking = [use for m in messages for use in m.calls if use.id not in answered]
    if not lacking:
        return []
    begun = {intent.call_id for intent in session.unfinished()}
    ended = {intent.call_id for intent in session.intents()} - begun
    lines = []
    for use in lacking:
        what = f"{use.name} {use.arguments}"[:200]
        if use.id in begun:
            lines.append(f"? it was cut off during {what}: whether that was done is not known")
        elif use.id not in ended:
            lines.append(f"· it was cut off before {what}: that was not done")
    return lines
