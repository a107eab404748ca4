"""Model call: one request to a model, read to its end, with a span in the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.model_protocol import Done

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hermes.core.model_protocol import Event, Provider, Request, Usage
    from hermes.runtime.tracing import Tracer


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
