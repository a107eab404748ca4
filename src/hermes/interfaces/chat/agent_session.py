"""Agent and stored session behind a chat: create, resume, close."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

from hermes.stores.sessions.session_db import created_session, locked_session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes.agent.agent import Agent
    from hermes.core.model_protocol import Message, Provider
    from hermes.interfaces.chat.view import View
    from hermes.interfaces.cli.approval_prompt import QuestionQueue
    from hermes.interfaces.cli.main import CliApp
    from hermes.stores.sessions import Session, Sessions


def show_last(view: View, session: Session, messages: list[Message], *, here: str) -> None:
    """Show the last exchange of a session that continues in the folder `here`."""
    requests = [message.text for message in messages if message.role == "user"]
    answers = [m.text for m in messages if m.role == "assistant" and m.text.strip()]
    title = f" “{session.title}”" if session.title else ""
    view.note(f"session {session.id}{title}, {len(messages)} messages")
    if session.workspace and session.workspace != here:
        view.note(f"started in {session.workspace}; continues here", "yellow")
    if requests:
        view.message(requests[-1])
    if answers and messages[-1].role != "user":
        view.markdown(view.redact(answers[-1]))


def interrupted_calls(session: Session, messages: list[Message]) -> list[str]:
    """Remarks on calls of an interrupted session that have no answer."""
    answered = {message.call_id for message in messages if message.role == "tool"}
    unanswered = [use for m in messages for use in m.calls if use.id not in answered]
    if not unanswered:
        return []
    started = {intent.call_id for intent in session.unfinished()}
    finished = {intent.call_id for intent in session.intents()} - started
    lines = []
    for use in unanswered:
        call = f"{use.name} {use.arguments}"[:200]
        if use.id in started:
            lines.append(f"? it was cut off during {call}: whether that was done is not known")
        elif use.id not in finished:
            lines.append(f"· it was cut off before {call}: that was not done")
    return lines


FRONT_DOOR = "chat"


class AgentOptions:
    """Options of the command line for the agent of a chat."""

    __slots__ = ("model", "profile", "toolsets")

    def __init__(
        self,
        model: str | None = None,
        toolsets: Sequence[str] | None = None,
        profile: str | None = None,
    ) -> None:
        self.model = model
        self.toolsets = toolsets
        self.profile = profile


class AgentSession:
    """The agent of a chat, created at the first message, and its session."""

    def __init__(
        self, app: CliApp, view: View, questions: QuestionQueue, options: AgentOptions
    ) -> None:
        self.app = app
        self.view = view
        self.questions = questions
        self.options = options
        self.agent: Agent | None = None
        self._creation: asyncio.Task[Agent] | None = None
        self._store_lock = threading.Lock()
        self._resources = ExitStack()
        self._session_lock = ExitStack()
        self._sessions: Sessions | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    def warm(self) -> None:
        """Load the modules that the first message needs; starts nothing."""
        from hermes.agent import agent
        from hermes.stores import sessions

        self.app.profile = self.options.profile
        self.app.runtime  # noqa: B018 - creates it
        self.app.offer()
        del agent, sessions

    def sessions(self) -> Sessions:
        """The session store, open until the chat ends; may be called from any thread."""
        with self._store_lock:
            if self._sessions is None:
                from hermes.stores.sessions.maintenance import open_sessions

                store = open_sessions(self.app.config, self.view.note)
                self._sessions = self._resources.enter_context(store)
            return self._sessions

    async def set_provider(self, provider: Provider) -> None:
        """Switch to another model."""
        agent = self.agent if self._creation is None else await self.start()
        if agent is None:
            return
        before, agent.provider = agent.provider, provider
        agent.conversation.provider = provider
        agent.delegation.provider = provider
        await before.close()

    async def start(self, session: Session | None = None) -> Agent:
        """The agent, created once for all callers; cancelling one does not cancel its creation."""
        if self._creation is None:
            self._creation = asyncio.ensure_future(self._create(session))
        return await asyncio.shield(self._creation)

    async def resume_session(self, session: Session) -> None:
        """Create the agent for a stored session, and show the session's state."""
        try:
            session, remark = await asyncio.to_thread(locked_session, session, self._session_lock)
            messages = await asyncio.to_thread(session.messages)
            # Before the agent starts, which answers every open call.
            interrupted = await asyncio.to_thread(interrupted_calls, session, messages)
            await self.start(session)
        except BaseException:
            self._session_lock.close()
            raise
        if remark:
            self.view.note(remark, "yellow")
        show_last(self.view, session, messages, here=self.app.project)
        for line in interrupted:
            self.view.note(line, "yellow")

    async def end(self) -> None:
        """End the conversation and its agent; the session stays stored."""
        if self._creation is not None:
            await asyncio.wait([self._creation])
        agent, self.agent = self.agent, None
        if agent is not None:
            self._unsubscribe()
            await agent.provider.close()
            await asyncio.to_thread(agent.close)
            self._session_lock.close()

    async def _create(self, session: Session | None) -> Agent:
        try:
            self.agent = agent = await asyncio.to_thread(self._new_agent, session)
        finally:
            self._creation = None
        self._unsubscribe = self.app.runtime.events.subscribe(self.view.tool_event)
        self.view.note(f"{agent.provider.model} at {agent.provider.name}, in {agent.workspace}")
        return agent

    def _new_agent(self, session: Session | None) -> Agent:
        self.app.profile = self.options.profile
        runtime = self.app.runtime
        runtime.services.ask_person = self.questions.ask_person
        self.view.redact = runtime.redactor.redact
        if session is not None:
            return self._agent_for(session)
        try:
            with created_session(
                self.sessions(),
                self._session_lock,
                workspace=self.app.project,
                front_door=FRONT_DOOR,
            ) as session:
                return self._agent_for(session)
        except BaseException:
            self._session_lock.close()
            raise

    def _agent_for(self, session: Session) -> Agent:
        from hermes.agent.agent import Agent

        return Agent(
            self.options.model,
            toolsets=self.options.toolsets,
            approver=self.questions.approve,
            app=self.app,
            journal=session,
            front_door=FRONT_DOOR,
            on_event=self.view.model_event,
        ).open()
