"""`Agent`: a conversation with a model that has tools, for programs.

from hermes import Agent

agent = Agent(model="…", toolsets=["file"])
print(agent.run("How many lines has README.md?"))
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.agent.budget import STEPS, Budget, Pricing, spent_today
from hermes.agent.compaction import Compaction
from hermes.agent.delegation import Delegation
from hermes.agent.journal import hear, resumed
from hermes.agent.loop import Conversation
from hermes.agent.memory_extraction import Distillation
from hermes.agent.mixture import Mixture
from hermes.agent.system_prompt import context_files, system_text
from hermes.core.errors import HermesError
from hermes.core.log import Log
from hermes.core.messages import Message
from hermes.core.model_protocol import Request
from hermes.mcp.client import attach, follow
from hermes.runtime.app import App, default_app
from hermes.runtime.pipeline import begin_session, end_session
from hermes.stores.memory import snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Any

    from hermes.agent.delegation import Child
    from hermes.agent.loop import Journal, Result
    from hermes.core.context import ToolContext
    from hermes.core.model_protocol import Event, Provider
    from hermes.core.protocols import Approver
    from hermes.safety.model_approver import Decision

log = Log("hermes.agent")


class Agent:
    """A model with tools. Works in one folder, remembers the conversation until it is closed."""

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
        """Make an agent; nothing is asked of the model yet.

        Args:
            model: A model's name, or a provider; what the environment or the settings say if None.
            toolsets: The toolsets that it may use; those of the settings if None.
            disabled: Toolsets that it may not use.
            workspace: The folder it works in; the current one if None.
            approver: Who is asked when something needs a person's approval; nobody if None.
            system: More to say to the model at the beginning.
            max_steps: How often the model may be asked in one turn.
            max_tokens: How many tokens the whole conversation may use.
            max_usd: How much money it may cost.
            max_seconds: How long one turn may take.
            app: The tools and settings to work with; the usual ones if None.
            journal: Where the conversation is kept; nowhere if None.
            front_door: Who is asking, for the audit log.
            profiles: Further limits on what it may do.
            on_event: Told what the model says, as it says it.
        """
        self.app = app or default_app()
        self.workspace = os.path.abspath(workspace or self.app.project)
        self.provider = self._provider(model)
        self.journal = journal
        self.id = journal.id if journal is not None else f"agent-{os.urandom(4).hex()}"
        runtime = self.app.runtime
        attach(self.app)
        chosen = (
            None if toolsets is None else list(toolsets),
            None if disabled is None else list(disabled),
        )
        offer = self.app.offer(*chosen)
        # What servers add later is appended, never put in between.
        self._unfollow = follow(self.app, offer, lambda: self.app.chosen(*chosen))
        task = runtime.task(self.id, workspace=self.workspace)
        pricing = Pricing.of(runtime)
        budget = Budget(
            steps=max_steps,
            tokens=max_tokens,
            usd=max_usd,
            seconds=max_seconds,
            usd_per_day=self.app.config.get("budget.usd_per_day") or None,
            today=lambda: spent_today(pricing),
        )
        self.budget = budget
        project = self._project_context()
        self.delegation = Delegation(
            self.provider,
            self.app,
            offer=offer,
            budget=budget,
            journal=journal,
            project=project,
        )
        services = runtime.services.replace(
            offer=offer,
            journal=journal,
            delegate=self.delegation,
            sample=self._sample,
            mixture=Mixture(self.provider, self.app, budget=budget, journal=journal),
        )
        asked = approver or runtime.approver
        if self.app.config.get("approvals.smart"):
            from hermes.safety.model_approver import SmartApprover

            asked = SmartApprover(self._judge, asked, self._note_decision)

        def context(turn: str) -> ToolContext:
            return runtime.context(
                task.id,
                session_id=self.id,
                turn=turn,
                front_door=front_door,
                approver=asked,
                services=services,
                profiles=profiles,
            )

        def unattended() -> ToolContext:
            return runtime.context(
                task.id,
                session_id=f"{self.id}-distilled",
                front_door=front_door,
                approver=lambda _: None,
                services=services,
                profiles=profiles,
            )

        kind: type[Conversation] = getattr(self.provider, "conversation", Conversation)
        self.conversation = kind(
            self.provider,
            runtime,
            system=system_text(
                self.workspace,
                memory=snapshot(),
                context=project,
                more=[system] if system else (),
            ),
            offer=offer,
            context=context,
            journal=journal,
            budget=budget,
            compact=Distillation(
                Compaction(), unattended, every=self.app.config.get("memory.distill_every")
            ),
            on_event=on_event,
            messages=resumed(journal) if journal is not None else (),
            at_once=self.app.config.get("tools.parallel"),
        )
        self._context = context
        self.conversation.news = self.delegation.news
        if self.conversation.messages:
            self.delegation.recall(context(""))
        hear(runtime, self.id, journal, self.conversation.messages)
        begin_session(runtime, self.id)
        self._open = True

    def run(self, text: str) -> str:
        """Carry out one request; the model's last words."""
        return self.turn(text).text

    def turn(self, text: str) -> Result:
        """Carry out one request; how it went."""
        from threading import TIMEOUT_MAX

        from hermes.runtime import bridge

        self._not_in_the_way()
        # Also in a notebook it may take as long as its own limits say.
        result: Result = bridge.run(self._turn(text), limit=TIMEOUT_MAX)
        return result

    async def arun(self, text: str) -> str:
        """`run`, for code that awaits."""
        return (await self._turn(text)).text

    def _not_in_the_way(self) -> None:
        """Raises `HermesError` where waiting here would stop what is waited for."""
        import asyncio

        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            return
        if self.conversation.turnstile.needs(here):
            raise HermesError(
                "a turn is under way in this event loop, and would stop; use `await agent.arun(…)`",
                hint="Or wait for that turn first.",
            )

    async def _turn(self, text: str) -> Result:
        if not self._open:
            raise HermesError("this agent was closed", hint="Make another one.")
        return await self.conversation.turn(text)

    def background(self, text: str) -> str:
        """Have a fresh agent carry out a request beside the conversation; its handle.

        It knows nothing of the conversation. The model hears of it when it has ended.
        """
        around = self._context(f"{self.id}-background-{os.urandom(3).hex()}")
        (child,) = self.delegation.start([{"goal": text}], around)
        return child.handle

    def children(self) -> list[Child]:
        """The agents that work or worked for this one, and for those, at a glance."""
        return [worker.seen() for worker in self.delegation.workers(self._context(""))]

    def report(self, handle: str) -> dict[str, Any]:
        """What came of a child: status, text, files_changed, tokens; empty while it works."""
        worker = self.delegation.worker(handle, self._context(""))
        return {} if worker.unfinished else dict(worker.report)

    def cancel(self, handle: str) -> bool:
        """Stop a child and all that works for it; whether it was at work."""
        worker = self.delegation.worker(handle, self._context(""))
        at_work = worker.unfinished
        if at_work:
            worker.cancel("cancelled by the person")
        return at_work

    def steer(self, handle: str, text: str) -> bool:
        """Tell a child something, which it reads at its next step; whether it is at work."""
        worker = self.delegation.worker(handle, self._context(""))
        at_work = worker.unfinished
        if at_work:
            worker.steer(text)
        return at_work

    def close(self) -> None:
        """End what belongs to the conversation: processes, connections, approvals for it."""
        if not self._open:
            return
        self._open = False
        self._unfollow()
        from hermes.runtime import bridge

        self.delegation.close()
        end_session(self.app.runtime, self.id)
        self.app.runtime.close_task(self.id)
        bridge.run(self.provider.close())
        self.delegation.crew.close()

    def __enter__(self) -> Agent:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _provider(self, model: str | Provider | None) -> Provider:
        if model is not None and not isinstance(model, str):
            return model
        from hermes.agent.providers.model_choice import chosen

        return chosen(self.app.config, os.environ, model)

    async def _judge(self, question: str) -> str:
        """What the model says to a question outside of the conversation."""
        request = Request((Message("user", question),), max_tokens=200, temperature=0.0)
        return (await self.conversation.ask(request, purpose="approval")).message.text

    async def _sample(
        self, messages: Sequence[dict[str, str]], *, system: str, max_tokens: int
    ) -> tuple[str, str, int]:
        """What the model says to an MCP server that may ask it: text, model, tokens.

        Raises `SpentError` when the conversation may not ask any more.
        """
        self.budget.step()
        said = [
            Message("assistant" if one["role"] == "assistant" else "user", one["text"])
            for one in messages
        ]
        head = [Message("system", system)] if system else []
        request = Request((*head, *said), max_tokens=max_tokens)
        done = await self.conversation.ask(request, purpose="sampling")
        model = done.model or self.provider.model
        return done.message.text, model, done.usage.input + done.usage.output

    def _note_decision(self, decision: Decision) -> None:
        log.warning(
            "approval by %s: %s (%s) %s", decision.who, decision.said, decision.why, decision.digest
        )
        if self.journal is not None:
            self.journal.note("approval", decision._asdict())

    def _project_context(self) -> dict[str, str]:
        """The project's words to agents, where a person has trusted exactly these."""
        found = context_files(self.workspace)
        if not found:
            return {}
        from hermes.runtime.trust import TrustStore

        trust = TrustStore()
        return {
            name: text
            for name, text in found.items()
            if trust.trusts(os.path.join(self.workspace, name)) or trust.trusts(self.workspace)
        }
