"""The words everyone shares: what a tool is, who holds which name, what a call looks like.

    entry          ToolEntry, ToolCall, ToolOutcome
    registry       ToolRegistry: names, versions, definitions
    decorator      @tool;  base_tool  BaseTool
    schema         a function's signature and docstring as JSON Schema
    arguments      what a model sent, read, coerced and validated
    context        ToolContext, Task;  cancellation  how a call is stopped;  approval  who is asked
    toolsets       groups of tools that compose; toolset_table has those we ship
    requirements   needs(): what a tool needs to work here; availability runs such checks
    result         ToolResult, tool_result, tool_error;  jsontext  how they are written
    replace        the fuzzy edit of a text
    line_changes   what differs between two lists of lines;  excerpts  what is shown of long ones
    errors         by who can act on them;  home, config  where settings live; config_edit

No input or output but the settings file, and nothing heavy is imported before it is used.
"""

from __future__ import annotations

from hermes.core.availability import needs, require
from hermes.core.context import ApprovalRequest, Cancellation, CancelledError, Task, ToolContext
from hermes.core.entry import ToolCall, ToolEntry, ToolOutcome
from hermes.core.errors import (
    ArgumentError,
    ConfigError,
    EditError,
    HermesError,
    RegistrationError,
    ToolError,
    UnavailableError,
)
from hermes.core.registry import ToolRegistry, registry
from hermes.core.result import ToolResult, tool_error, tool_result
from hermes.core.tool_definition import BaseTool, tool

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from hermes.core.arguments import coerce_tool_args
    from hermes.core.toolsets import create_custom_toolset, resolve_toolset
    from hermes.text.replace import replace_text

__all__ = [
    "ApprovalRequest",
    "ArgumentError",
    "BaseTool",
    "Cancellation",
    "CancelledError",
    "ConfigError",
    "EditError",
    "HermesError",
    "RegistrationError",
    "Task",
    "ToolCall",
    "ToolContext",
    "ToolEntry",
    "ToolError",
    "ToolOutcome",
    "ToolRegistry",
    "ToolResult",
    "UnavailableError",
    "coerce_tool_args",
    "create_custom_toolset",
    "needs",
    "registry",
    "replace_text",
    "require",
    "resolve_toolset",
    "tool",
    "tool_error",
    "tool_result",
]


# What start-up does not need, each with its module.
_LATER = {
    "coerce_tool_args": "arguments",
    "create_custom_toolset": "toolsets",
    "replace_text": "hermes.text.replace",
    "resolve_toolset": "toolsets",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"hermes.core.{_LATER[name]}"), name)
