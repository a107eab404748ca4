"""Prompts: the tools of the toolset `prompts`, as prompts of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    GetPromptResult,
    Prompt,
    PromptArgument,
    PromptMessage,
)

from hermes.mcp.server.content import result_of, title_of
from hermes.mcp.untrusted_text import valid_unicode

if TYPE_CHECKING:
    from hermes.core.entry import ToolEntry, ToolOutcome

TOOLSET = "prompts"
# How many values are proposed for an argument.
MOST_VALUES = 100


def is_prompt(entry: ToolEntry) -> bool:
    """Whether a tool is offered as a prompt, and not as a tool."""
    return entry.toolset == TOOLSET


def described(entry: ToolEntry) -> Prompt:
    """A prompt as it is listed."""
    schema = entry.parameters
    required = schema.get("required") or ()
    return Prompt(
        name=entry.name,
        title=title_of(entry),
        description=valid_unicode(entry.description),
        arguments=[
            PromptArgument(
                name=name,
                description=valid_unicode(str(inner.get("description") or "")) or None,
                required=name in required,
            )
            for name, inner in schema.get("properties", {}).items()
            if isinstance(inner, dict)
        ],
    )


def prompt_result(outcome: ToolOutcome, entry: ToolEntry | None) -> GetPromptResult:
    """The messages of a prompt, from the outcome of its call."""
    if not outcome.ok:
        raise MCPError(INVALID_PARAMS, str(outcome.error))
    blocks = result_of(outcome).content
    return GetPromptResult(
        description=valid_unicode(entry.description) if entry is not None else None,
        messages=[PromptMessage(role="user", content=block) for block in blocks],
    )


def completions(entry: ToolEntry, argument: str, begun: str) -> list[str]:
    """The values of an argument that start with the given text."""
    inner = entry.parameters.get("properties", {}).get(argument)
    if not isinstance(inner, dict):
        return []
    values = inner.get("enum") or inner.get("examples") or []
    texts = [value for value in values if isinstance(value, str)]
    return [text for text in texts if text.casefold().startswith(begun.casefold())]
