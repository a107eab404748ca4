"""The agent loop: ask the model, run its tool calls, append the results, repeat.

A `Conversation` is append-only. A request is the system prompt, every message so far, and the tools
in an order that only grows at its end. Each request therefore starts with the bytes of the one
before it, and the prompt caches of providers hold.

The intent of a call is in the journal before the call begins, its outcome as soon as it ends. After
a crash, the journal shows which calls were done, which were not, and which are uncertain.
"""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from typing import TYPE_CHECKING, Literal

import msgspec

from hermes.agent.budget import Budget, Pricing, SpentError
from hermes.agent.journal import Record, answer_to, told, turns_of
from hermes.agent.model_call import ask, usage_attributes
from hermes.agent.repeat_detector import LoopGuard
from hermes.agent.system_prompt import PROGRAM
from hermes.agent.turn_lock import Turnstile
from hermes.core.entry import ToolCall
from hermes.core.messages import Message, ToolUse, Usage
from hermes.core.model_protocol import Request, WindowError
from hermes.core.wire_names import wire_name, wired

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, Protocol

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolOutcome
    from hermes.core.model_protocol import Done, Event, Provider
    from hermes.runtime.pipeline import Runtime
    from hermes.runtime.tool_offer import Offer
    from hermes.runtime.tracing import Span

    class Journal(Protocol):
        """Where a conversation is kept, message by message and call by call."""

        id: str

        def append(self, message: Message, *, usage: Usage | None, turn: str) -> int: ...
        def intend(
            self, turn: str, call_id: str, tool: str, arguments: str, effect: str
        ) -> int: ...
        def outcome(self, call_seq: int, status: str, content: str, seconds: float) -> int: ...
        def messages(self) -> list[Message]: ...
        def note(
            self, kind: str, data: Any, *, usage: Usage | None = None, model: str = ""
        ) -> int: ...
        def intents(self) -> Sequence[Any]: ...
        def journal(self) -> Sequence[Any]: ...

    class Compactor(Protocol):
        """Makes a conversation shorter when the model's window nears its end."""

        async def __call__(self, conversation: Conversation, *, overflowed: bool) -> bool: ...


Ended = Literal["answered", "stopped", "spent"]

_AGAIN = f"{PROGRAM} your answer was empty. Answer the request, or call a tool."
_AS_TEXT = f"{PROGRAM} you wrote a tool call as text, so nothing was done. Call the tool itself."
_LOOPING = (
    f"{PROGRAM} the same result has come several times. Try something else, or tell the person."
)


class Result(msgspec.Struct, frozen=True):
    """How a turn ended: the last text, why, what it cost and what was refused on the way."""

    text: str
    ended: Ended
    usage: Usage = Usage()
    steps: int = 0
    refused: tuple[str, ...] = ()
    reason: str = ""


class Conversation:
    """One conversation with one model."""

    def __init__(
        self,
        provider: Provider,
        runtime: Runtime,
        *,
        system: str,
        offer: Offer,
        context: Callable[[str], ToolContext],
        journal: Journal | None = None,
        budget: Budget | None = None,
        compact: Compactor | None = None,
        on_event: Callable[[Event], None] | None = None,
        messages: Sequence[Message] = (),
        at_once: int = 16,
    ) -> None:
        self.provider = provider
        self.runtime = runtime
        self.system = Message("system", system)
        self.offer = offer
        self.journal = journal
        self.budget = budget or Budget()
        self.messages = list(messages)
        self.last_input = 0
        # Asked before each step for what the model should hear of, such as a child that ended.
        self.news: Callable[[], Sequence[str]] = tuple
        self._pricing = Pricing.of(runtime)
        self._context = context
        self._compact = compact
        self._tell = on_event or (lambda _: None)
        self._at_once = at_once
        self._steering: list[str] = []
        self._turns = itertools.count(turns_of(journal, self.messages) + 1)
        self._ids = {call.id for message in self.messages for call in message.calls}
        self._running: ToolContext | None = None
        self.turnstile = Turnstile()

    async def turn(self, text: str, *, images: Sequence[Any] = ()) -> Result:
        """Carry out one request of a person, to its answer or to the reason why it ended.

        One at a time: a request that comes during another one waits for its end.
        """
        async with self.turnstile.turn():
            return await self._traced_turn(text, images)

    async def _traced_turn(self, text: str, images: Sequence[Any]) -> Result:
        name = f"{self.journal.id if self.journal else 'turn'}-{next(self._turns)}"
        with self._traced(name) as span:
            result = await self._turn(name, Message("user", text, images=tuple(images)))
            if span is not None:
                span.attributes |= usage_attributes(result.usage)
                span.attributes["hermes.turn.ended"] = result.ended
            return result

    async def _turn(self, name: str, request: Message) -> Result:
        self.budget.renew()
        work = Work(name, LoopGuard())
        self.append(request, turn=name)
        try:
            async with self.budget.in_time():
                return await self._steps(work)
        except SpentError as error:
            return self._end(work, "spent", str(error))
        finally:
            self._running = None

    async def _steps(self, work: Work) -> Result:
        while True:
            self._take_steering(work.turn)
            self.budget.step()
            work.steps += 1
            done = await self._ask(work)
            if done.message.calls:
                stopped = await self._carry_out(done, work)
                if stopped:
                    return self._end(work, "stopped", stopped)
            elif (wrong := self._wrong(done)) and not work.nudged:
                work.nudged = True
                self.append(Message("user", wrong), turn=work.turn)
            elif not self._steering:
                return self._end(work, "answered", text=done.message.text)

    def tell(self, event: Event) -> None:
        """Have something told to whoever listens."""
        self._tell(event)

    def listen(self, on_event: Callable[[Event], None]) -> None:
        """Have what the model says told to somebody else from now on."""
        self._tell = on_event

    def steer(self, text: str) -> None:
        """Say something while a turn is under way: the model reads it at its next step."""
        self._steering.append(text)

    def cancel_calls(self, reason: str = "the person stopped it") -> bool:
        """Stop the calls under way, if there are any; the model is told and goes on."""
        running = self._running
        if running is None:
            return False
        running.cancellation.cancel(reason)
        return True

    def append(self, message: Message, *, usage: Usage | None = None, turn: str = "") -> None:
        """Add to what was said: first to the journal, then here."""
        if self.journal is not None:
            self.journal.append(message, usage=usage, turn=turn)
        self.messages.append(message)

    async def ask(self, request: Request, *, purpose: str = "") -> Done:
        """Ask the model; what is said to it for another `purpose` is counted, and not kept."""
        tell = None if purpose else self._tell
        done = await ask(
            self.provider, request, tracer=self.runtime.tracer, tell=tell, purpose=purpose
        )
        model = self._pay(done)
        if purpose and self.journal is not None:
            self.journal.note("asked", {"for": purpose}, usage=done.usage, model=model)
        return done

    def _pay(self, done: Done) -> str:
        """Count what an answer cost; the name of the model that it is counted under."""
        model = self._pricing.counted_as(done, self.provider)
        self.budget.spend(done.usage, self._pricing.cost(model, done.usage))
        journal: Any = self.journal
        if getattr(journal, "model", model) != model:
            # What is used from now on is counted as this model's.
            journal.model = model
        return model

    # -- one step -----------------------------------------------------------------------------

    async def _ask(self, work: Work) -> Done:
        if self._compact is not None:
            await self._compact(self, overflowed=False)
        try:
            done = await self._answer()
        except WindowError:
            if self._compact is None or not await self._compact(self, overflowed=True):
                raise
            done = await self._answer()
        self.last_input = done.usage.input
        work.usage += done.usage
        message = self._with_own_ids(done.message)
        self.append(message, usage=done.usage, turn=work.turn)
        return msgspec.structs.replace(done, message=message)

    def _wrong(self, done: Done) -> str:
        """What the model should be told about an answer that is none; nothing if it is one."""
        from hermes.agent.providers.text_calls import seems_call

        if not done.message.text.strip():
            return _AGAIN
        return _AS_TEXT if seems_call(done.message.text, self.offer.reachable) else ""

    async def _answer(self) -> Done:
        messages = (self.system, *self.messages)
        return await self.ask(Request(messages, tuple(wired(self.offer.definitions()))))

    async def _carry_out(self, done: Done, work: Work) -> str:
        """Run the calls of an answer; why the turn has to end, or nothing."""
        uses = done.message.calls
        # A fresh one for every step: what was cancelled stays cancelled.
        context = self._context(work.turn)
        calls = [ToolCall(use.name, use.arguments, id=use.id) for use in uses]
        self._running = context
        record = Record(self, uses, work.turn)
        try:
            outcomes = await self.runtime.call_many(
                calls, context, at_once=self._at_once, watcher=record
            )
            self._running = None
            return self._tell_results(uses, outcomes, work)
        except BaseException:
            record.abandon()
            raise
        finally:
            self._running = None

    def _tell_results(
        self, uses: Sequence[ToolUse], outcomes: Sequence[ToolOutcome], work: Work
    ) -> str:
        """Append what came of the calls; why the turn has to end, or nothing."""
        stop, going_round = "", False
        for use, outcome in zip(uses, outcomes, strict=True):
            said = work.guard.see(outcome, use.arguments, reads=self._reads(use))
            if said == "tell":
                going_round = True
            elif said == "stop":
                stop = f"stopped: {use.name} kept giving the same result and nothing else changed"
            if outcome.status == "refused":
                work.refused.append(f"{use.name}: {outcome.error}")
            self.append(answer_to(use, told(outcome)), turn=work.turn)
        if going_round and not stop:
            # After the results and apart from them, for those are JSON.
            self.append(Message("user", _LOOPING), turn=work.turn)
        return stop

    def _reads(self, use: ToolUse) -> bool:
        entry = self.runtime.registry.resolve(use.name)
        return entry is None or entry.effect == "read"

    def _with_own_ids(self, message: Message) -> Message:
        """The same message with ids that no call had before, and names that any API takes."""
        calls = []
        for use in message.calls:
            own = use.id
            while not own or own in self._ids:
                own = f"call_{len(self._ids) + 1}"
                if own in self._ids:
                    own = f"{use.id or 'call'}_{len(self._ids) + 1}"
            self._ids.add(own)
            calls.append(ToolUse(own, wire_name(use.name), use.arguments))
        return msgspec.structs.replace(message, calls=tuple(calls)) if calls else message

    def _take_steering(self, turn: str) -> None:
        said, self._steering = self._steering, []
        for text in (*said, *self.news()):
            self.append(Message("user", text), turn=turn)

    def _end(self, work: Work, ended: Ended, reason: str = "", *, text: str = "") -> Result:
        if reason:
            # In the conversation, too: whoever goes on, person or model, sees why it ended here.
            text = f"{text}\n\n{reason}".strip()
            self.append(Message("assistant", text), turn=work.turn)
        return Result(text, ended, work.usage, work.steps, tuple(work.refused), reason)

    def _traced(self, turn: str) -> AbstractContextManager[Span | None]:
        """The part of a turn in the trace: in its session, or in the call that handed it on."""
        tracer = self.runtime.tracer
        if tracer is None:
            return nullcontext()
        context = self._context(turn)
        agent = context.agent_path
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": agent or "hermes",
            "gen_ai.conversation.id": context.session_id,
            "hermes.turn": turn,
        }
        around = tracer.around(context.session_id, inside=bool(agent))
        kind: Literal["agent", "turn"] = "agent" if agent else "turn"
        return tracer.inside(kind, f"invoke_agent {agent or 'hermes'}", attributes, around)


class Work:
    """What one turn has done so far."""

    __slots__ = ("guard", "nudged", "refused", "steps", "turn", "usage")

    def __init__(self, turn: str, guard: LoopGuard) -> None:
        self.turn = turn
        self.guard = guard
        self.usage = Usage()
        self.steps = 0
        self.nudged = False
        self.refused: list[str] = []
