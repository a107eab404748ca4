"""`Agent`: a conversation with a model that has tools, for programs.

from hermes import Agent

agent = Agent(model="…", toolsets=["file"])
print(agent.run("How many lines has README.md?"))
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.agent.budget import STEPS, Budget
from hermes.agent.compaction import Compaction
from hermes.agent.delegating import Delegation
from hermes.agent.loop import Conversation
from hermes.agent.prompt import context_files, system_text
from hermes.agent.providers.protocol import Done, Request
from hermes.agent.resuming import resumed
from hermes.core.log import Log
from hermes.core.messages import Message
from hermes.runtime.app import App, default_app
from hermes.runtime.sessions import begin_session, end_session
from hermes.stores.memory import snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Any

    from hermes.agent.loop import Journal, Result
    from hermes.agent.providers.protocol import Event, Provider
    from hermes.core.context import Approver, ToolContext
    from hermes.safety.smart import Decision

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
        offer = self.app.offer(
            None if toolsets is None else list(toolsets),
            None if disabled is None else list(disabled),
        )
        task = runtime.task(self.id, workspace=self.workspace)
        budget = Budget(steps=max_steps, tokens=max_tokens, usd=max_usd, seconds=max_seconds)
        project = self._project_context()
        services = {
            **runtime.services,
            "offer": offer,
            "agent": self,
            "delegate": Delegation(
                self.provider,
                self.app,
                offer=offer,
                budget=budget,
                journal=journal,
                project=project,
            ),
        }
        asked = approver or runtime.approver
        if self.app.config.get("approvals.smart"):
            from hermes.safety.smart import SmartApprover

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

        self.conversation = Conversation(
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
            compact=Compaction(),
            on_event=on_event,
            messages=resumed(journal) if journal is not None else (),
            at_once=self.app.config.get("tools.parallel"),
        )
        begin_session(runtime, self.id)
        self._open = True

    def run(self, text: str) -> str:
        """Carry out one request; the model's last words."""
        return self.turn(text).text

    def turn(self, text: str) -> Result:
        """Carry out one request; how it went."""
        from hermes.runtime import bridge

        result: Result = bridge.run(self.conversation.turn(text))
        return result

    async def arun(self, text: str) -> str:
        """`run`, for code that awaits."""
        return (await self.conversation.turn(text)).text

    def close(self) -> None:
        """End what belongs to the conversation: processes, connections, approvals for it."""
        if not self._open:
            return
        self._open = False
        from hermes.runtime import bridge

        end_session(self.app.runtime, self.id)
        self.app.runtime.close_task(self.id)
        bridge.run(self.provider.close())

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
        from hermes.agent.providers.choosing import chosen

        return chosen(self.app.config, os.environ, model)

    async def _judge(self, question: str) -> str:
        """What the model says to a question outside of the conversation."""
        request = Request((Message("user", question),), max_tokens=200, temperature=0.0)
        async for event in self.provider.stream(request):
            if isinstance(event, Done):
                self.conversation.budget.spend(event.usage)
                return event.message.text
        return ""

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
