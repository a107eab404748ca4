"""`mixture_of_agents`: several models answer a hard question, one merges the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from hermes.core import ToolContext, ToolError, tool
from hermes.core.schema import Field

if TYPE_CHECKING:
    from typing import Any

    from hermes.core.protocols import Mixture


@tool(
    toolset="moa",
    permissions=["agent:ask"],
    effect="network",
    concurrency="parallel",
    aliases=["moa", "ask_models"],
    emoji="🧠",
    max_result_size_chars=100_000,
    tags=["several models", "ensemble", "hard question", "consensus", "vote", "debate"],
)
async def mixture_of_agents(
    ctx: ToolContext, question: Annotated[str, Field(min_length=1)]
) -> dict[str, Any]:
    """Put one hard question to several models at once and get one answer made of theirs.

    Slow and costly: for hard reasoning, not for what a tool can tell.

    Args:
        question: All they need to know; they see nothing else and have no tools.
    """
    if not question.strip():
        raise ToolError("the question is empty", hint="Say what they are to answer.")
    mixture: Mixture = ctx.service("mixture")
    return await mixture(question, ctx)
