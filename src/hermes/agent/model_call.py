"""Model call: one request to a model, read to its end, with a span in the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.model_protocol import Done

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hermes.core.messages import Usage
    from hermes.core.model_protocol import Event, Provider, Request
    from hermes.runtime.tracing import Tracer


async def ask(
    provider: Provider,
    request: Request,
    *,
    tracer: Tracer | None = None,
    tell: Callable[[Event], None] | None = None,
    purpose: str = "",
) -> Done:
    """The model's whole answer; raises `ModelError` where there is none.

    Args:
        provider: The model.
        request: The question.
        tracer: Where the span goes; there is none if None.
        tell: Told what the model says, as it says it.
        purpose: What is asked for outside of the conversation: `compaction`, `approval`, ….
    """
    if tracer is None:
        return await _heard(provider, request, tell)
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider.name,
        "gen_ai.request.model": provider.model,
    }
    if purpose:
        attributes["hermes.purpose"] = purpose
    with tracer.inside("chat", f"chat {provider.model}", attributes):
        done = await _heard(provider, request, tell)
        attributes["gen_ai.response.model"] = done.model
        attributes["gen_ai.response.finish_reasons"] = [done.finish]
        if done.asked and done.asked != provider.model:
            # Another one was asked in its place.
            attributes["gen_ai.request.model"] = done.asked
            attributes["gen_ai.provider.name"] = done.provider
        attributes.update(usage_attributes(done.usage))
    return done


def usage_attributes(usage: Usage) -> dict[str, int]:
    """Tokens under the names that OpenTelemetry has for them."""
    found = {
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": usage.output,
    }
    if usage.cached:
        found["gen_ai.usage.cache_read.input_tokens"] = usage.cached
    if usage.written:
        found["gen_ai.usage.cache_creation.input_tokens"] = usage.written
    if usage.reasoning:
        found["gen_ai.usage.reasoning.output_tokens"] = usage.reasoning
    return found


async def _heard(
    provider: Provider, request: Request, tell: Callable[[Event], None] | None
) -> Done:
    done = None
    async for event in provider.stream(request):
        if tell is not None:
            tell(event)
        if isinstance(event, Done):
            done = event
    assert done is not None, "a provider ends with Done or raises"
    return done
