"""Hermes: tools for language models, and the agent that works through them.

From the inside out; each package imports only from those listed before it:

    core          tools, calls and results: registry, schema, argument coercion, settings, errors
    text          pure text: encodings, diffs, globs, fuzzy replacement, patches
    safety        permission to run: shell analysis, paths, URLs, approvals, taint, redaction
    runtime       execution of a call: pipeline, hooks, threads, discovery, plugins, audit
    environments  places where commands run: this host, sandbox, container, ssh, cloud; their disks
    stores        persistent state: checkpoints for undo, sessions, memory
    files         file operations: read, edit, search, compare, watch, archives
    code          scripts that call tools, interpreter sessions, linters and tests
    tools         tools that the model can call; one file per family
    embedded      the small language model that Hermes brings along
    mcp           Model Context Protocol: client for other servers, server for our tools
    agent         agent loop: prompt, model call, tool calls, compaction, delegation
    interfaces    command line and chat
    testing       for tests, ours and yours: a scripted model server

What a program needs to embed Hermes is importable from here; docs/api.md is the reference.
New here? Read core/registry.py, then runtime/pipeline.py, then tools/files.py, then agent/loop.py.
"""

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from hermes.agent.agent import Agent
    from hermes.core.arguments import coerce_tool_args
    from hermes.core.availability import needs
    from hermes.core.context import ApprovalRequest, Cancellation, CancelledError, Task, ToolContext
    from hermes.core.entry import (
        ToolCall,
        ToolEntry,
        ToolOutcome,
        ToolResult,
        tool_error,
        tool_result,
    )
    from hermes.core.errors import (
        ArgumentError,
        ConfigError,
        HermesError,
        RegistrationError,
        ToolError,
        UnavailableError,
    )
    from hermes.core.registry import ToolRegistry, registry
    from hermes.core.tool_definition import BaseTool, tool
    from hermes.core.toolsets import Toolset, create_custom_toolset, resolve_toolset
    from hermes.runtime.app import App, discover_builtin_tools, handle_function_call
    from hermes.runtime.definitions import get_tool_definitions
    from hermes.runtime.hooks import Hooks, Rewrite, Veto
    from hermes.runtime.pipeline import Runtime
    from hermes.safety.policy import EffectPolicy, Policy, Ruling

__version__ = "0.1.0"

__all__ = [
    "Agent", "App", "ApprovalRequest", "ArgumentError", "BaseTool", "Cancellation",
    "CancelledError", "ConfigError", "EffectPolicy", "HermesError", "Hooks", "Policy",
    "RegistrationError", "Rewrite", "Ruling", "Runtime", "Task", "ToolCall", "ToolContext",
    "ToolEntry", "ToolError", "ToolOutcome", "ToolRegistry", "ToolResult", "Toolset",
    "UnavailableError", "Veto", "__version__", "coerce_tool_args", "create_custom_toolset",
    "discover_builtin_tools", "get_tool_definitions", "handle_function_call", "needs",
    "registry", "resolve_toolset", "tool", "tool_error", "tool_result",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Importing this package imports nothing else. `hermes.tools` gives registries a default
    # runtime; authors of tools may use it at once.
    import hermes.tools  # noqa: F401
    from hermes.core.lazy import names_from

    load = names_from(
        __name__,
        {
            "agent.agent": "Agent",
            "core.arguments": "coerce_tool_args",
            "core.availability": "needs",
            "core.context": "ApprovalRequest Cancellation CancelledError Task ToolContext",
            "core.entry": "ToolCall ToolEntry ToolOutcome ToolResult tool_error tool_result",
            "core.errors": "ArgumentError ConfigError HermesError RegistrationError ToolError "
            "UnavailableError",
            "core.registry": "ToolRegistry registry",
            "core.tool_definition": "BaseTool tool",
            "core.toolsets": "Toolset create_custom_toolset resolve_toolset",
            "runtime.app": "App discover_builtin_tools handle_function_call",
            "runtime.definitions": "get_tool_definitions",
            "runtime.hooks": "Hooks Rewrite Veto",
            "runtime.pipeline": "Runtime",
            "safety.policy": "EffectPolicy Policy Ruling",
        },
    )
    return load(name)
