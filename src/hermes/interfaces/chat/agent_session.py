"""Agent and stored session behind a chat: create, resume, close."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

from hermes.stores.sessions.session_lock import begun, held

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes.agent.agent import Agent
    from hermes.core.messages import Message
    from hermes.core.model_protocol import Provider
    from hermes.interfaces.chat.view import View
    from hermes.interfaces.cli.approval_prompt import Questions
    from hermes.interfaces.cli.main import CliApp
    from hermes.stores.sessions import Session, Sessions


def show_last(view: View, session: Session, messages: list[Message], *, here: str) -> None:
    """Show the last exchange of a session that goes on in the folder `here`."""
    asked = [message.text for message in messages if message.role == "user"]
    said = [m.text for m in messages if m.role == "assistant" and m.text.strip()]
    title = f" “{session.title}”" if session.title else ""
    view.note(f"session {session.id}{title}, {len(messages)} messages")
    if session.workspace and session.workspace != here:
        view.note(f"it worked in {session.workspace}; now it works here", "yellow")
    if asked:
        view.person(asked[-1])
    if said and messages[-1].role != "user":
        view.markdown(view.redact(said[-1]))


def cut_off(session: Session, messages: list[Message]) -> list[str]:
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


DOOR = "chat"


class Settings:
    """What was asked for on the command line."""

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


class Opening:
    """Makes one chat's agent when it is needed, and lets go of it."""

    def __init__(self, app: CliApp, view: View, questions: Questions, settings: Settings) -> None:
        self.app = app
        self.view = view
        self.questions = questions
        self.settings = settings
        self.agent: Agent | None = None
        self._making: asyncio.Task[Agent] | None = None
        self._opening = threading.Lock()
        self._open = ExitStack()
        self._held = ExitStack()
        self._sessions: Sessions | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

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
                from hermes.stores.sessions.retention import kept_sessions

                kept = kept_sessions(self.app.config, self.view.note)
                self._sessions = self._open.enter_context(kept)
            return self._sessions

    async def ask(self, provider: Provider) -> None:
        """Have another model asked from now on."""
        agent = self.agent if self._making is None else await self.begin()
        if agent is None:
            return
        before, agent.provider = agent.provider, provider
        agent.conversation.provider = provider
        agent.delegation.provider = provider
        await before.close()

    async def begin(self, session: Session | None = None) -> Agent:
        """The agent, made once however many ask for it; who stops waiting leaves it to others."""
        if self._making is None:
            self._making = asyncio.ensure_future(self._make(session))
        return await asyncio.shield(self._making)

    async def go_on(self, session: Session) -> None:
        """Make the agent for a session that is there; the person is shown where it stands."""
        try:
            session, elsewhere = await asyncio.to_thread(held, session, self._held)
            messages = await asyncio.to_thread(session.messages)
            # Before it goes on: then every call has an answer.
            unknown = await asyncio.to_thread(cut_off, session, messages)
            await self.begin(session)
        except BaseException:
            self._held.close()
            raise
        if elsewhere:
            self.view.note(elsewhere, "yellow")
        show_last(self.view, session, messages, here=self.app.project)
        for line in unknown:
            self.view.note(line, "yellow")

    async def end(self) -> None:
        """End the conversation and what belongs to it; the session stays."""
        if self._making is not None:
            await asyncio.wait([self._making])
        agent, self.agent = self.agent, None
        if agent is not None:
            self._unsubscribe()
            await agent.provider.close()
            await asyncio.to_thread(agent.close)
            self._held.close()

    async def _make(self, session: Session | None) -> Agent:
        try:
            self.agent = agent = await asyncio.to_thread(self._made, session)
        finally:
            self._making = None
        self._unsubscribe = self.app.runtime.events.subscribe(self.view.tool)
        self.view.note(f"{agent.provider.model} at {agent.provider.name}, in {agent.workspace}")
        return agent

    def _made(self, session: Session | None) -> Agent:
        self.app.profile = self.settings.profile
        runtime = self.app.runtime
        runtime.services.ask_person = self.questions.ask_person
        self.view.redact = runtime.redactor.redact
        if session is not None:
            return self._for(session)
        try:
            place = self.app.project
            with begun(self.sessions(), self._held, workspace=place, door=DOOR) as session:
                return self._for(session)
        except BaseException:
            self._held.close()
            raise

    def _for(self, session: Session) -> Agent:
        from hermes.agent.agent import Agent

        return Agent(
            self.settings.model,
            toolsets=self.settings.toolsets,
            approver=self.questions.approve,
            app=self.app,
            journal=session,
            front_door=DOOR,
            on_event=self.view.model,
        ).open()
