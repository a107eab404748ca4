"""Discovery tools: `tool_search` finds a tool, `read_artifact` pages through a large result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from hermes.core import ToolContext, ToolError, ToolResult, tool
from hermes.core.schema import Field
from hermes.runtime.artifacts import PAGE

if TYPE_CHECKING:
    from typing import Any


@tool(
    toolset="discovery",
    effect="read",
    emoji="🔎",
    max_result_size_chars=200_000,
    tags=["which tool", "capabilities", "what can you do", "find a function", "load tools"],
)
def tool_search(
    ctx: ToolContext, query: str, limit: Annotated[int, Field(ge=1, le=20)] = 5
) -> dict[str, Any]:
    """Find tools by need and load them; afterwards call them by name.

    Args:
        query: The need in plain words, or `select:name,name` for tools you know by name.
        limit: How many tools to load at most.
    """
    offer = ctx.services.offer or _everything(ctx)
    definitions, unknown = offer.search(query, limit=limit)
    answer: dict[str, Any] = {"tools": [definition["function"] for definition in definitions]}
    if unknown:
        # The nearest names, so that a misspelling costs one more call and not a guess.
        answer["unknown"] = {name: offer.nearest(name) for name in unknown}
    if not definitions:
        answer["note"] = "nothing fits; say the need in other words"
    return answer


@tool(
    toolset="discovery",
    effect="read",
    emoji="📜",
    max_result_size_chars=2 * PAGE + 2_000,
    tags=["rest of the output", "truncated result", "page", "next part", "large result"],
)
def read_artifact(
    ctx: ToolContext,
    handle: str,
    offset: Annotated[int, Field(ge=0)] = 0,
    limit: Annotated[int, Field(ge=1, le=PAGE)] = PAGE,
    pattern: str | None = None,
) -> ToolResult:
    """Page through, or search, a large result that was cut.

    Args:
        handle: The `art_…` from the cut result.
        offset: Character to start at.
        limit: How many characters to return.
        pattern: Regular expression; only matching lines are returned.
    """
    artifacts = ctx.services.artifacts
    if artifacts is None:
        raise ToolError("large results are not kept here")
    source = artifacts.source(handle)
    page = artifacts.read(handle, offset=offset, limit=limit, pattern=pattern)
    # Looked at on both sides of the text, which may come and go meanwhile.
    return ToolResult(page, source=source or artifacts.source(handle))


def _everything(ctx: ToolContext) -> Any:
    """An offer of all tools, for a caller outside a conversation."""
    from hermes.runtime.tool_offer import Offer

    registry = ctx.service("runtime").registry
    offers: dict[int, Offer] = ctx.task.keep("tool_search", dict, dict.clear)
    if registry.generation not in offers:
        offers.clear()
        offers[registry.generation] = Offer(registry, registry.available())
    return offers[registry.generation]
