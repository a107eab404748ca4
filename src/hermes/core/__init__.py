"""Core: tools, calls to them, and their results; the vocabulary of all other packages.

    entry            ToolEntry, ToolCall, ToolResult, ToolOutcome; invocation of a handler
    registry         ToolRegistry: tools by name, versions, owners
    tool_definition  `@tool` and `BaseTool`
    schema           JSON Schema from signatures and docstrings
    arguments        arguments from a model: repair, coercion, defaults, validation
    context          ToolContext, Task, cancellation, approval requests, rulings
    protocols        Policy, services and other interfaces
    availability     needs(): requirements of a tool, checked and cached
    toolsets         groups of tools, and the table of those that we ship
    model_protocol   conversation messages, and the interface of a model provider
    wire_names       tool names that any model API accepts
    errors           HermesError and its subclasses, by who can act on them; "did you mean"
    config           settings;  yaml_edit  edits that keep comments
    paths            "is below", home directory, private files, atomic writes, file locks
    json_text        JSON encoder;  log  lazy loggers;  lazy  lazy package exports

The only input and output are the settings and files of the home directory.
"""

from __future__ import annotations

from hermes.core.availability import needs, require
from hermes.core.context import ApprovalRequest, Cancellation, CancelledError, Task, ToolContext
from hermes.core.entry import ToolCall, ToolEntry, ToolOutcome, ToolResult, tool_error, tool_result
from hermes.core.errors import (
    ArgumentError,
    ConfigError,
    EditError,
    HermesError,
    RegistrationError,
    ToolError,
    UnavailableError,
)
from hermes.core.lazy import names_from
from hermes.core.registry import ToolRegistry, registry
from hermes.core.tool_definition import BaseTool, tool

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from hermes.core.arguments import coerce_tool_args
    from hermes.core.toolsets import create_custom_toolset, resolve_toolset
    from hermes.text.replace.engine import replace_text

__all__ = [
    "ApprovalRequest", "ArgumentError", "BaseTool", "Cancellation", "CancelledError",
    "ConfigError", "EditError", "HermesError", "RegistrationError", "Task", "ToolCall",
    "ToolContext", "ToolEntry", "ToolError", "ToolOutcome", "ToolRegistry", "ToolResult",
    "UnavailableError", "coerce_tool_args", "create_custom_toolset", "needs", "registry",
    "replace_text", "require", "resolve_toolset", "tool", "tool_error", "tool_result",
]  # fmt: skip


__getattr__ = names_from(
    __name__,
    {
        "arguments": "coerce_tool_args",
        "hermes.text.replace.engine": "replace_text",
        "toolsets": "create_custom_toolset resolve_toolset",
    },
)
