"""`Agent`: a conversation with a model that has tools, for programs.

from hermes import Agent

agent = Agent(model="…", toolsets=["file"])
print(agent.run("How many lines has README.md?"))
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, NamedTuple

from hermes.agent.budget import STEPS, Budget, Pricing, spent_today
from hermes.agent.compaction import Compaction
from hermes.agent.delegation import Delegation
from hermes.agent.journal import restore_taint, resumed_messages
from hermes.agent.loop import Conversation
from hermes.agent.memory_extraction import MemoryExtraction
from hermes.agent.mixture import Mixture
from hermes.agent.system_prompt import context_files, system_prompt
from hermes.core.errors import HermesError
from hermes.core.log import Log
from hermes.core.model_protocol import Message, Request
from hermes.mcp.client import attach, follow
from hermes.runtime.app import App, default_app
from hermes.runtime.pipeline import begin_session, end_session
from hermes.stores.memory import snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Any

    from hermes.agent.delegation import ChildStatus
    from hermes.agent.loop import Journal, Result
    from hermes.core.context import Services, ToolContext
    from hermes.core.model_protocol import Event, Provider
    from hermes.core.protocols import Approver
    from hermes.safety.model_approver import Decision

log = Log("hermes.agent")


class Agent:
    """A model with tools, in one workspace. The conversation lasts until `close`.

    The constructor only wires the parts. `open` connects tool servers and begins the session; it is
    called by the first turn, and by `with`.
    """

    def __init__(
        self,
        model: str | Provider | None = None,
        *,
        toolsets: Sequence[str] | None = None,
        disabled: Sequence[str] | None = None,
        workspace: str | None = None,
        approver: Approver | None = None,
        system: str = "",
        max_steps: int | None = STEPS,
        max_tokens: int | None = None,
        max_usd: float | None = None,
        max_seconds: float | None = None,
        app: App | None = None,
        journal: Journal | None = None,
        front_door: str = "library",
        profiles: Sequence[Any] = (),
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        """Wire an agent; nothing is connected, read or sent yet.

        Args:
            model: A model name or a provider; from the environment or the settings if None.
            toolsets: The toolsets it may use; those of the settings if None.
            disabled: Toolsets it may not use.
            workspace: The working folder; the current one if None.
            approver: Decides on calls that need a person's approval; they are refused if None.
            system: Text appended to the system prompt.
            max_steps: Model calls in one turn.
            max_tokens: Tokens of the whole conversation.
            max_usd: Dollars of the whole conversation.
            max_seconds: Duration of one turn.
            app: Tools and settings; the default app if None.
            journal: Where the conversation is stored; nowhere if None.
            front_door: The interface that the requests come from, for the audit log.
            profiles: Further permission profiles.
            on_event: Receives model events as they are streamed.
        """
        self.app = app or default_app()
        self.workspace = os.path.abspath(workspace or self.app.project)
        self.provider = self._provider(model)
        self.journal = journal
        self.id = journal.id if journal is not None else f"agent-{os.urandom(4).hex()}"
        self.budget = Budget(
            steps=max_steps,
            tokens=max_tokens,
            usd=max_usd,
            seconds=max_seconds,
            usd_per_day=self.app.config.get("budget.usd_per_day") or None,
            today=lambda: spent_today(Pricing.of(self.app.runtime)),
        )
        self._toolsets = (
            None if toolsets is None else list(toolsets),
            None if disabled is None else list(disabled),
        )
        self._approver = approver
        self._system = system
        self._front_door = front_door
        self._profiles = profiles
        self._on_event = on_event
        self._services: Services | None = None
        self._lock = threading.RLock()
        self._session: _Session | None = None
        self._closed = False

    # -- opening and closing --------------------------------------------------------------------

    def open(self) -> Agent:
        """Connect tool servers, load memory and instructions, begin or resume the session."""
        with self._lock:
            if self._closed:
                raise HermesError("this agent was closed", hint="Make another one.")
            if self._session is None:
                self._session = self._begin()
        return self

    def close(self) -> None:
        """End the session: its children, processes, connections and approvals."""
        from hermes.runtime import waits

        with self._lock:
            if self._closed:
                return
            self._closed = True
            session = self._session
        if session is not None:
            session.unfollow()
            session.delegation.close()
            end_session(self.app.runtime, self.id)
            self.app.runtime.close_task(self.id)
        waits.run(self.provider.close())
        if session is not None:
            session.delegation.loop_thread.close()

    def __enter__(self) -> Agent:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def conversation(self) -> Conversation:
        """The conversation; opens the agent."""
        return self._opened().conversation

    @property
    def delegation(self) -> Delegation:
        """The supervisor of its child agents; opens the agent."""
        return self._opened().delegation

    def _opened(self) -> _Session:
        if self._session is None:
            self.open()
        assert self._session is not None
        return self._session

    def _begin(self) -> _Session:
        app, runtime, journal = self.app, self.app.runtime, self.journal
        attach(app)
        offer = app.offer(*self._toolsets)
        # Tools that servers add later are appended: the prefix of requests stays the same.
        unfollow = follow(app, offer, lambda: app.chosen(*self._toolsets))
        runtime.task(self.id, workspace=self.workspace)
        project = self._project_context()
        delegation = Delegation(
            self.provider, app, offer=offer, budget=self.budget, journal=journal, project=project
        )
        self._services = runtime.services.replace(
            offer=offer,
            journal=journal,
            delegate=delegation,
            sample=self._sample,
            mixture=Mixture(self.provider, app, budget=self.budget, journal=journal),
        )
        if self._approver is None:
            self._approver = runtime.approver
        if app.config.get("approvals.smart"):
            from hermes.safety.model_approver import ModelApprover

            self._approver = ModelApprover(self._judge, self._approver, self._note_decision)
        extraction = MemoryExtraction(
            Compaction(), self._unattended, every=app.config.get("memory.distill_every")
        )
        conversation = Conversation(
            self.provider,
            runtime,
            system=system_prompt(
                self.workspace,
                memory=snapshot(),
                context=project,
                more=[self._system] if self._system else (),
            ),
            offer=offer,
            context=self._context,
            journal=journal,
            budget=self.budget,
            compact=extraction,
            on_event=self._on_event,
            messages=resumed_messages(journal) if journal is not None else (),
            at_once=app.config.get("tools.parallel"),
        )
        conversation.notices = delegation.notices
        if conversation.messages:
            delegation.restore(self._context(""))
        restore_taint(runtime, self.id, journal, conversation.messages)
        begin_session(runtime, self.id)
        return _Session(conversation, delegation, unfollow)

    def _context(self, turn: str) -> ToolContext:
        return self.app.runtime.context(
            self.id,
            session_id=self.id,
            turn=turn,
            front_door=self._front_door,
            approver=self._approver,
            services=self._services,
            profiles=self._profiles,
        )

    def _unattended(self) -> ToolContext:
        """A context whose approver refuses."""
        return self.app.runtime.context(
            self.id,
            session_id=f"{self.id}-distilled",
            front_door=self._front_door,
            approver=lambda _: None,
            services=self._services,
            profiles=self._profiles,
        )

    def _provider(self, model: str | Provider | None) -> Provider:
        if model is not None and not isinstance(model, str):
            return model
        from hermes.agent.providers.model_choice import chosen_provider

        return chosen_provider(self.app.config, os.environ, model)

    def _project_context(self) -> dict[str, str]:
        """Instruction files of the project, where a person has trusted exactly these contents."""
        files = context_files(self.workspace)
        if not files:
            return {}
        from hermes.runtime.plugins import TrustStore

        trust = TrustStore()
        return {
            name: text
            for name, text in files.items()
            if trust.trusts(os.path.join(self.workspace, name)) or trust.trusts(self.workspace)
        }

    # -- turns ----------------------------------------------------------------------------------

    def run(self, text: str) -> str:
        """Carry out one request; the text of the last answer."""
        return self.turn(text).text

    def turn(self, text: str) -> Result:
        """Carry out one request; its result with cost and refusals."""
        from threading import TIMEOUT_MAX

        from hermes.runtime import waits

        self._check_deadlock()
        # No limit but the agent's own, also inside a notebook's event loop.
        result: Result = waits.run(self._turn(text), limit=TIMEOUT_MAX)
        return result

    async def arun(self, text: str) -> str:
        """`run` for async code."""
        return (await self._turn(text)).text

    async def _turn(self, text: str) -> Result:
        return await self.open().conversation.turn(text)

    def _check_deadlock(self) -> None:
        """Raise `HermesError` where blocking this thread would stop the turn it waits for."""
        import asyncio

        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        if self._session is not None and self.conversation.turn_lock.used_by(loop):
            raise HermesError(
                "a turn is under way in this event loop, and would stop; use `await agent.arun(…)`",
                hint="Or wait for that turn first.",
            )

    # -- children -------------------------------------------------------------------------------

    def background(self, text: str) -> str:
        """Start a child agent in the background; its handle.

        It sees nothing of this conversation. The model gets a notice when it has ended.
        """
        delegation = self.delegation
        context = self._context(f"{self.id}-background-{os.urandom(3).hex()}")
        (child,) = delegation.start([{"goal": text}], context)
        return child.handle

    def children(self) -> list[ChildStatus]:
        """The status of every child agent, and of theirs."""
        return [child.status() for child in self.delegation.children(self._context(""))]

    def report(self, handle: str) -> dict[str, Any]:
        """The report of a child: status, text, files_changed, tokens; empty while it runs."""
        child = self.delegation.child(handle, self._context(""))
        return {} if child.unfinished else dict(child.report)

    def cancel(self, handle: str) -> bool:
        """Cancel a child and its children; whether it was running."""
        child = self.delegation.child(handle, self._context(""))
        running = child.unfinished
        if running:
            child.cancel("cancelled by the person")
        return running

    def steer(self, handle: str, text: str) -> bool:
        """Send a child a message, which it reads at its next step; whether it is running."""
        child = self.delegation.child(handle, self._context(""))
        running = child.unfinished
        if running:
            child.steer(text)
        return running

    # -- services for tools ---------------------------------------------------------------------

    async def _judge(self, question: str) -> str:
        """Ask the model about an approval, outside of the conversation."""
        request = Request((Message("user", question),), max_tokens=200, temperature=0.0)
        return (await self.conversation.ask(request, purpose="approval")).message.text

    async def _sample(
        self, messages: Sequence[dict[str, str]], *, system: str, max_tokens: int
    ) -> tuple[str, str, int]:
        """Sampling for an MCP server: text, model, tokens. Raises `BudgetError`."""
        self.budget.step()
        history = [
            Message("assistant" if message["role"] == "assistant" else "user", message["text"])
            for message in messages
        ]
        head = [Message("system", system)] if system else []
        request = Request((*head, *history), max_tokens=max_tokens)
        done = await self.conversation.ask(request, purpose="sampling")
        model = done.model or self.provider.model
        return done.message.text, model, done.usage.input + done.usage.output

    def _note_decision(self, decision: Decision) -> None:
        log.warning(
            "approval by %s: %s (%s) %s", decision.who, decision.said, decision.why, decision.digest
        )
        if self.journal is not None:
            self.journal.note("approval", decision._asdict())


class _Session(NamedTuple):
    """Parts of an agent that exist from `open` to `close`."""

    conversation: Conversation
    delegation: Delegation
    unfollow: Callable[[], None]
