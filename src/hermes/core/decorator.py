"""`@tool`: a function or a class becomes a tool by being defined."""

from __future__ import annotations

from hermes.core.calling import keyword_invoke
from hermes.core.entry import ToolEntry
from hermes.core.ownership import current_owner
from hermes.core.registry import registry as shared

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar, overload

    from hermes.core.registry import ToolRegistry

    Target = TypeVar("Target", bound=Callable[..., Any])
else:

    def overload(_):
        """Only a type checker reads overloads."""


@overload
def tool(name: Target, /) -> Target: ...
@overload
def tool(  # noqa: F811
    name: str | None = None,
    *,
    toolset: str = "custom",
    description: str | None = None,
    registry: ToolRegistry | None = None,
    **fields: Any,
) -> Callable[[Target], Target]: ...
def tool(  # noqa: F811
    name: Any = None,
    *,
    toolset: str = "custom",
    description: str | None = None,
    registry: ToolRegistry | None = None,
    **fields: Any,
) -> Any:
    """Register a function, sync or async, or a `BaseTool` class; it stays what it was.

    The schema comes from the type hints, the text for the model from the docstring. `fields` are
    those of `ToolEntry`: tags, timeout_seconds, effect, permissions, aliases, check_fn, …
    """
    if callable(name):
        return _register(name, None, toolset, description, registry, fields)

    def decorate(target: Target) -> Target:
        return _register(target, name, toolset, description, registry, fields)

    return decorate


def _register(
    target: Target,
    name: str | None,
    toolset: str,
    description: str | None,
    registry: ToolRegistry | None,
    fields: dict[str, Any],
) -> Target:
    tools = shared if registry is None else registry
    # One decorator may be put on several targets: each has fields of its own.
    fields = dict(fields)
    if "origin" not in fields:
        fields["origin"], fields["owner"] = current_owner(target.__module__)
    if isinstance(target, type):
        from hermes.core.base_tool import entry_for

        tools.add(entry_for(target, name, toolset, description, fields))
        return target
    tools.add(entry_from(target, name, toolset, description, fields))
    return target


def entry_from(
    function: Callable[..., Any],
    name: str | None,
    toolset: str,
    description: str | None,
    fields: dict[str, Any],
) -> ToolEntry:
    """The entry of a plain function."""
    from hermes.core.schema import function_schema

    read = function_schema(function)
    return ToolEntry(
        name or function.__name__,
        toolset,
        read.parameters,
        function,
        invoke=keyword_invoke(function, read.context_parameter, read.convert),
        is_async=read.is_async,
        takes_context=read.context_parameter is not None,
        description=description or read.summary,
        module=function.__module__,
        **fields,
    )
