"""Tools that a model can call, one file per family, and the names that authors of tools import.

    from hermes.tools import tool, ToolResult, BaseTool, ToolContext, registry

Discovery finds each module here that registers a tool at its top level; there is no list of them.
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
from hermes.core.context import Services
from hermes.core.lazy import names_from

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from hermes.core.arguments import coerce_tool_args
    from hermes.core.toolsets import create_custom_toolset, resolve_toolset
    from hermes.runtime.app import discover_builtin_tools, handle_function_call
    from hermes.runtime.definitions import get_tool_definitions

__all__ = [
    "BaseTool", "ToolContext", "ToolError", "ToolRegistry", "ToolResult", "coerce_tool_args",
    "create_custom_toolset", "discover_builtin_tools", "get_tool_definitions",
    "handle_function_call", "needs", "registry", "resolve_toolset", "tool", "tool_error",
    "tool_result",
]  # fmt: skip

__getattr__ = names_from(
    __name__,
    {
        "hermes.core.arguments": "coerce_tool_args",
        "hermes.core.toolsets": "create_custom_toolset resolve_toolset",
        "hermes.runtime.app": "discover_builtin_tools handle_function_call",
        "hermes.runtime.definitions": "get_tool_definitions",
    },
)


class _Programs:
    """`Programs`, imported at its first use."""

    def __getattr__(self, name: str) -> object:
        from hermes.files.programs import PROGRAMS

        return getattr(PROGRAMS, name)


def _dispatcher(tools: ToolRegistry) -> object:
    from hermes.runtime.app import default_dispatcher

    return default_dispatcher(tools)


Services.programs = _Programs()  # type: ignore[assignment]
# A registry without a runtime gets the default one at its first `dispatch`.
ToolRegistry.default_dispatcher = staticmethod(_dispatcher)  # type: ignore[assignment]
