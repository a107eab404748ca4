"""The loop: ask the model, run its calls, append the results, repeat until it answers."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from contextlib import nullcontext
from hashlib import sha256
from typing import TYPE_CHECKING, Literal

import msgspec

from hermes.agent.budget import Budget, BudgetError, Pricing
from hermes.agent.journal import CallJournal, result_message, result_text, turn_count
from hermes.agent.system_prompt import PROGRAM_NOTE
from hermes.agent.turn_lock import TurnLock
from hermes.core.entry import ToolCall
from hermes.core.model_protocol import (
    Done,
    Message,
    Request,
    ToolUse,
    TurnRunner,
    Usage,
    WindowError,
)
from hermes.core.wire_names import wire_definitions, wire_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, Protocol

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolOutcome
    from hermes.core.model_protocol import Event, Provider
    from hermes.runtime.pipeline import Runtime
    from hermes.runtime.tool_offer import Offer
    from hermes.runtime.tracing import Span, Tracer


async def call_model(
    provider: Provider,
    request: Request,
    *,
    tracer: Tracer | None = None,
    on_event: Callable[[Event], None] | None = None,
    purpose: str = "",
) -> Done:
    """The whole answer of a model; raises `ModelError`.

    Args:
        provider: The model.
        request: The request.
        tracer: Records the span; no span if None.
        on_event: Receives the streamed events.
        purpose: Set for a call outside of the conversation: `compaction`, `approval`, ….
    """
    if tracer is None:
        return await _read_to_end(provider, request, on_event)
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider.name,
        "gen_ai.request.model": provider.model,
    }
    if purpose:
        attributes["hermes.purpose"] = purpose
    with tracer.inside("chat", f"chat {provider.model}", attributes):
        done = await _read_to_end(provider, request, on_event)
        attributes["gen_ai.response.model"] = done.model
        attributes["gen_ai.response.finish_reasons"] = [done.finish]
        if done.asked and done.asked != provider.model:
            # A fallback answered.
            attributes["gen_ai.request.model"] = done.asked
            attributes["gen_ai.provider.name"] = done.provider
        attributes.update(usage_attributes(done.usage))
    return done


def usage_attributes(usage: Usage) -> dict[str, int]:
    """Token counts under their OpenTelemetry names."""
    attributes = {
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": usage.output,
    }
    if usage.cached:
        attributes["gen_ai.usage.cache_read.input_tokens"] = usage.cached
    if usage.written:
        attributes["gen_ai.usage.cache_creation.input_tokens"] = usage.written
    if usage.reasoning:
        attributes["gen_ai.usage.reasoning.output_tokens"] = usage.reasoning
    return attributes


async def _read_to_end(
    provider: Provider, request: Request, on_event: Callable[[Event], None] | None
) -> Done:
    done = None
    async for event in provider.stream(request):
        if on_event is not None:
            on_event(event)
        if isinstance(event, Done):
            done = event
    assert done is not None, "a provider ends with Done or raises"
    return done


# Repeats without a new result until the warning, and until the end of the turn.
WARN, STOP = 3, 5
# Fields that differ from one run of the same call to the next.
_VOLATILE = re.compile(r'"(?:seconds|duration|duration_seconds|elapsed|ms|at|time|pid)": ?[^,}\]]*')


class RepeatDetector:
    """Counts repeated results of one turn."""

    def __init__(self, *, warn: int = WARN, stop: int = STOP) -> None:
        self._warn = warn
        self._stop = stop
        self._seen: set[str] = set()
        self._repeats: Counter[str] = Counter()

    def see(self, outcome: ToolOutcome, arguments: str, *, reads: bool) -> str:
        """Count one call: `""`, `"warn"` or `"stop"`.

        Args:
            outcome: The result of the call.
            arguments: As the model sent them.
            reads: Whether the tool only reads.
        """
        result = _VOLATILE.sub("", outcome.content)
        result_only = reads or outcome.status != "ok"
        parts = (outcome.name, result) if result_only else (outcome.name, arguments, result)
        key = sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
        if key not in self._seen:
            self._seen.add(key)
            self._repeats.clear()
        self._repeats[key] += 1
        times = self._repeats[key]
        if times >= self._stop:
            return "stop"
        return "warn" if times >= self._warn else ""


if TYPE_CHECKING:

    class Journal(Protocol):
        """Persistent log of a conversation: messages, intents and outcomes of calls, notes."""

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
        """Shortens a conversation that nears the end of the model's context window."""

        async def __call__(self, conversation: Conversation, *, overflowed: bool) -> bool: ...


Ended = Literal["answered", "stopped", "spent"]

_EMPTY_ANSWER = f"{PROGRAM_NOTE} your answer was empty. Answer the request, or call a tool."
_CALL_AS_TEXT = (
    f"{PROGRAM_NOTE} you wrote a tool call as text, so nothing was done. Call the tool itself."
)
_REPEATING = (
    f"{PROGRAM_NOTE} the same result has come several times. Try something else, or tell the "
    "person."
)


class Result(msgspec.Struct, frozen=True):
    """Result of a turn: the last text, how it ended and why, its cost, and the refused calls."""

    text: str
    ended: Ended
    usage: Usage = Usage()
    steps: int = 0
    refused: tuple[str, ...] = ()
    reason: str = ""


class TurnState:
    """State of one turn: its id, steps, usage and refusals so far."""

    __slots__ = ("corrected", "refused", "repeats", "steps", "turn", "usage")

    def __init__(self, turn: str) -> None:
        self.turn = turn
        self.repeats = RepeatDetector()
        self.usage = Usage()
        self.steps = 0
        self.corrected = False
        self.refused: list[str] = []


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
        # Context of the calls of one turn, by the turn's id.
        self.context = context
        self.journal = journal
        self.budget = budget or Budget()
        self.messages = list(messages)
        self.last_input = 0
        # Pending notices for the model, read before each step: a child agent that ended, for one.
        self.notices: Callable[[], Sequence[str]] = tuple
        self.turn_lock = TurnLock()
        self._pricing = Pricing.of(runtime)
        self._compact = compact
        self._on_event = on_event or (lambda _: None)
        self._at_once = at_once
        self._steering: list[str] = []
        self._turns = itertools.count(turn_count(journal, self.messages) + 1)
        self._ids = {call.id for message in self.messages for call in message.calls}
        self._running: ToolContext | None = None

    async def turn(self, text: str, *, images: Sequence[Any] = ()) -> Result:
        """Run one turn: a request of the person, to its answer or to the reason why it ended.

        Turns are serialised: a request that arrives during a turn waits for its end.
        """
        async with self.turn_lock.turn():
            name = f"{self.journal.id if self.journal else 'turn'}-{next(self._turns)}"
            with self._traced(name) as span:
                result = await self._turn(name, Message("user", text, images=tuple(images)))
                if span is not None:
                    span.attributes |= usage_attributes(result.usage)
                    span.attributes["hermes.turn.ended"] = result.ended
                return result

    async def _turn(self, name: str, request: Message) -> Result:
        self.budget.renew()
        state = TurnState(name)
        self.append(request, turn=name)
        try:
            async with self.budget.in_time():
                if isinstance(self.provider, TurnRunner):
                    result: Result = await self.provider.run_turn(self, state, request.text)
                    return result
                return await self._steps(state)
        except BudgetError as error:
            return self._end(state, "spent", str(error))
        finally:
            self._running = None

    async def _steps(self, state: TurnState) -> Result:
        while True:
            self.take_steering(state.turn)
            self.budget.step()
            state.steps += 1
            done = await self._step(state)
            if done.message.calls:
                stopped = await self.run_calls(done, state)
                if stopped:
                    return self._end(state, "stopped", stopped)
            elif (correction := self._correction(done)) and not state.corrected:
                state.corrected = True
                self.append(Message("user", correction), turn=state.turn)
            elif not self._steering:
                return self._end(state, "answered", text=done.message.text)

    def emit(self, event: Event) -> None:
        """Pass an event to the listener."""
        self._on_event(event)

    def set_listener(self, on_event: Callable[[Event], None]) -> None:
        """Replace the listener for model events."""
        self._on_event = on_event

    @property
    def steered(self) -> bool:
        """Whether a message of the person waits for the next step."""
        return bool(self._steering)

    def steer(self, text: str) -> None:
        """Add a message during a turn: the model reads it at its next step."""
        self._steering.append(text)

    def take_steering(self, turn: str) -> None:
        """Append the messages and notices that arrived since the last step."""
        steering, self._steering = self._steering, []
        for text in (*steering, *self.notices()):
            self.append(Message("user", text), turn=turn)

    def cancel_calls(self, reason: str = "the person stopped it") -> bool:
        """Cancel the running calls; False if there are none. The turn goes on."""
        running = self._running
        if running is None:
            return False
        running.cancellation.cancel(reason)
        return True

    def append(self, message: Message, *, usage: Usage | None = None, turn: str = "") -> None:
        """Append a message: to the journal first, then in memory."""
        if self.journal is not None:
            self.journal.append(message, usage=usage, turn=turn)
        self.messages.append(message)

    async def ask(self, request: Request, *, purpose: str = "") -> Done:
        """Ask the model. With a `purpose`, the call is counted but its text is not kept."""
        listener = None if purpose else self._on_event
        done = await call_model(
            self.provider, request, tracer=self.runtime.tracer, on_event=listener, purpose=purpose
        )
        model = self.pay(done)
        if purpose and self.journal is not None:
            self.journal.note("asked", {"for": purpose}, usage=done.usage, model=model)
        return done

    def pay(self, done: Done) -> str:
        """Charge an answer to the budget; the model name that it is counted under."""
        model = self._pricing.counted_as(done, self.provider)
        self.budget.spend(done.usage, self._pricing.cost(model, done.usage))
        journal: Any = self.journal
        if getattr(journal, "model", model) != model:
            # Usage from here on is counted under this model.
            journal.model = model
        return model

    # -- one step -----------------------------------------------------------------------------

    async def _step(self, state: TurnState) -> Done:
        if self._compact is not None:
            await self._compact(self, overflowed=False)
        try:
            done = await self._answer()
        except WindowError:
            if self._compact is None or not await self._compact(self, overflowed=True):
                raise
            done = await self._answer()
        self.last_input = done.usage.input
        state.usage += done.usage
        message = self.with_own_ids(done.message)
        self.append(message, usage=done.usage, turn=state.turn)
        return msgspec.structs.replace(done, message=message)

    async def _answer(self) -> Done:
        messages = (self.system, *self.messages)
        return await self.ask(Request(messages, tuple(wire_definitions(self.offer.definitions()))))

    def _correction(self, done: Done) -> str:
        """Note for the model about an answer that is empty or a call written as text; else ""."""
        text = done.message.text
        if not text.strip():
            return _EMPTY_ANSWER
        # Every format of a call written as text has one of these characters.
        if not any(mark in text for mark in "{<["):
            return ""
        from hermes.agent.providers.text_calls import looks_like_call

        return _CALL_AS_TEXT if looks_like_call(text, self.offer.reachable) else ""

    async def run_calls(self, done: Done, state: TurnState) -> str:
        """Run the calls of an answer and append the results; the reason to end the turn, or ""."""
        uses = done.message.calls
        # A fresh context for each step: a cancelled one stays cancelled.
        context = self.context(state.turn)
        calls = [ToolCall(use.name, use.arguments, id=use.id) for use in uses]
        self._running = context
        journal = CallJournal(self, uses, state.turn)
        try:
            outcomes = await self.runtime.call_many(
                calls, context, at_once=self._at_once, watcher=journal
            )
            self._running = None
            return self._append_results(uses, outcomes, state)
        except BaseException:
            journal.abandon()
            raise
        finally:
            self._running = None

    def _append_results(
        self, uses: Sequence[ToolUse], outcomes: Sequence[ToolOutcome], state: TurnState
    ) -> str:
        stop, repeating = "", False
        for use, outcome in zip(uses, outcomes, strict=True):
            verdict = state.repeats.see(outcome, use.arguments, reads=self._reads(use))
            if verdict == "warn":
                repeating = True
            elif verdict == "stop":
                stop = f"stopped: {use.name} kept giving the same result and nothing else changed"
            if outcome.status == "refused":
                state.refused.append(f"{use.name}: {outcome.error}")
            elif '"refused"' in outcome.content and not self._reads(use):
                # Of the agents and scripts that the call ran.
                state.refused += _refused_inside(outcome.value)
            self.append(result_message(use, result_text(outcome)), turn=state.turn)
        if repeating and not stop:
            # A message of its own after the results, because results are JSON.
            self.append(Message("user", _REPEATING), turn=state.turn)
        return stop

    def _reads(self, use: ToolUse) -> bool:
        entry = self.runtime.registry.resolve(use.name)
        return entry is None or entry.effect == "read"

    def with_own_ids(self, message: Message) -> Message:
        """The message with call ids unique in this conversation, and tool names valid for any API.

        Some servers reuse ids, or send none.
        """
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

    def result(
        self, state: TurnState, text: str, ended: Ended = "answered", reason: str = ""
    ) -> Result:
        """The result of a turn."""
        return Result(text, ended, state.usage, state.steps, tuple(state.refused), reason)

    def _end(self, state: TurnState, ended: Ended, reason: str = "", *, text: str = "") -> Result:
        if reason:
            # Appended to the conversation too, so that later turns show why this one ended.
            text = f"{text}\n\n{reason}".strip()
            self.append(Message("assistant", text), turn=state.turn)
        return self.result(state, text, ended, reason)

    def _traced(self, turn: str) -> AbstractContextManager[Span | None]:
        """The span of a turn: below its session, or below the call that delegated it."""
        tracer = self.runtime.tracer
        if tracer is None:
            return nullcontext()
        context = self.context(turn)
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


def _refused_inside(value: Any) -> list[str]:
    """The refusals in the reports of a call: lists named `refused`, and calls of a script."""
    if isinstance(value, list):
        return [line for item in value for line in _refused_inside(item)]
    if not isinstance(value, dict):
        return []
    own = value.get("refused")
    lines = [line for line in own if isinstance(line, str)] if isinstance(own, list) else []
    if value.get("status") == "refused" and "tool" in value:
        lines.append(f"{value['tool']}: refused in a script")
    return lines + [line for item in value.values() for line in _refused_inside(item)]
