"""`memory`: facts kept for later sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from hermes.core import ToolContext, ToolError, ToolResult, tool

if TYPE_CHECKING:
    from typing import Any


@tool(
    toolset="agent",
    permissions=["memory:write"],
    effect="write",
    keeps="memory",
    reads_when={"action": ["read"]},
    emoji="🧠",
    max_result_size_chars=30_000,
    tags=[
        "remember", "forget", "preference", "note to self", "facts about the user", "MEMORY.md",
        "USER.md", "long-term", "next time", "lessons learned",
    ],
)  # fmt: skip
def memory(
    ctx: ToolContext,
    action: Literal["add", "replace", "remove", "read"],
    target: Literal["memory", "user"] = "memory",
    content: str | None = None,
    old_text: list[str] | str | None = None,
) -> ToolResult:
    """Keep short facts for later conversations: about the work (memory) or the person (user).

    Args:
        action: What to do; replace with several old_text merges them.
        target: Which file.
        content: The fact, for add and replace.
        old_text: A piece of each entry's text, for replace and remove.
    """
    from hermes.stores.memory import FullError, Memory

    kept = Memory(target)
    old = [old_text] if isinstance(old_text, str) else old_text or []
    if action in ("add", "replace") and not (content or "").strip():
        raise ToolError(f"{action} needs content")
    if action in ("replace", "remove") and not old:
        raise ToolError(f"{action} needs old_text, a piece of the entry's text")
    by = _author(ctx)
    try:
        if action == "add":
            change = kept.add(content or "", by=by)
        elif action == "replace":
            change = kept.replace(old, content or "", by=by)
        elif action == "remove":
            change = kept.remove(old, by=by)
        else:
            return ToolResult({"entries": kept.entries(), "limit": kept.limit})
    except FullError as error:
        return ToolResult(error.ways_out, error=str(error), hint=error.hint)
    answer: dict[str, Any] = {
        "file": kept.file,
        "entries": change.entries,
        "chars": change.chars,
        "limit": change.limit,
    }
    return ToolResult(answer, notes=[] if change.changed else ["nothing new: it was there already"])


def _author(ctx: ToolContext) -> str:
    """Who writes, in which turn of which session, and after which words of others."""
    by = " ".join(
        part for part in (ctx.front_door, ctx.session_id, ctx.turn, ctx.agent_path) if part
    )
    sources = ctx.service("runtime").heard.sources(ctx)
    return f"{by}; after {', '.join(sources)}" if sources else by
