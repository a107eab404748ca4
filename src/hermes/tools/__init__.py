"""What the model can call: one file per family, and what authors of tools import.

    from hermes.tools import tool, ToolResult, BaseTool, ToolContext, registry

A module here that registers a tool at its top level is found by discovery; no list names it.
"""

from __future__ import annotations

from hermes.core import (
    BaseTool,
    ToolContext,
    ToolError,
    ToolRegistry,
    ToolResult,
    needs,
    registry,
    tool,
    tool_error,
    tool_result,
)

__all__ = [
    "BaseTool",
    "ToolContext",
    "ToolError",
    "ToolRegistry",
    "ToolResult",
    "needs",
    "registry",
    "tool",
    "tool_error",
    "tool_result",
]


def _dispatcher(tools: ToolRegistry) -> object:
    from hermes.runtime.app import default_dispatcher

    return default_dispatcher(tools)


# A registry that is asked to dispatch before anybody gave it a runtime gets one.
ToolRegistry.default_dispatcher = staticmethod(_dispatcher)  # type: ignore[assignment]
