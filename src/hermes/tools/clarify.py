"""`clarify`: ask the person a question and wait for the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from hermes.core import ToolContext, ToolError, tool
from hermes.core.schema import Field

if TYPE_CHECKING:
    from typing import Any


@tool(
    toolset="agent",
    effect="read",
    concurrency="exclusive",
    emoji="❓",
    tags=["ask the user", "question", "multiple choice", "which one", "confirm", "unclear"],
)
def clarify(
    ctx: ToolContext,
    question: Annotated[str, Field(min_length=1)],
    choices: Annotated[list[str], Field(max_length=10)] | None = None,
) -> dict[str, Any]:
    """Ask the person when you can't go on without knowing.

    Args:
        question: One question.
        choices: Answers to choose from; any other answer may come.
    """
    ask = ctx.services.ask_person
    if ask is None:
        raise ToolError(
            "nobody can answer here",
            hint="Take the most sensible assumption, say which, and go on.",
        )
    from hermes.safety.sanitise import clean_text

    offered = [reply for choice in choices or () if (reply := clean_text(choice).strip())]
    answer = ask(clean_text(question), offered)
    if hasattr(answer, "__await__"):
        from hermes.runtime import waits

        answer = waits.run(waits.settle(answer))
    reply = str(answer or "").strip()
    if not reply:
        raise ToolError(
            "the person gave no answer",
            hint="Take the most sensible assumption, say which, and go on.",
        )
    return {"answer": _meant(reply, offered)}


def _meant(reply: str, offered: list[str]) -> str:
    """The choice that a person names by its number, as `2`, `2.` or `(2)`; else their words."""
    number = reply.strip("(). ")
    if reply not in offered and number.isdecimal() and len(number) < 3:
        index = int(number)
        if 0 < index <= len(offered):
            return offered[index - 1]
    return reply
