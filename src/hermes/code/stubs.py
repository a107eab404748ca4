"""`hermes_tools`: the module that a script imports, with one function per allowed tool.

Made from the tools' JSON Schemas: names as Python identifiers, required parameters first. Light to
import: the description of `execute_code` is made from it at start-up.
"""

from __future__ import annotations

import keyword
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from hermes.core.entry import ToolEntry
    from hermes.core.registry import ToolRegistry

DEFAULT_TOOLS = (
    "web_search", "web_extract", "read_file", "write_file", "search_files", "patch", "terminal",
)  # fmt: skip
# A script that starts scripts would escape its own limits.
_NEVER = frozenset({"execute_code"})
# Names that the client itself uses.
_TAKEN = frozenset({"ToolError", "aio", "artifact", "call", "progress", "json", "os", "sys"})
_KINDS = {
    "string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list",
    "object": "dict", "null": "None",
}  # fmt: skip


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """Function names with the tools they call; unique, and valid in Python and JavaScript."""
    functions: dict[str, str] = {}
    for name in names:
        identifier = re.sub(r"\W", "_", name, flags=re.ASCII)
        if not identifier or identifier[0].isdigit() or identifier[0] == "_":
            identifier = f"tool_{identifier}"
        while keyword.iskeyword(identifier) or identifier in functions or identifier in _TAKEN:
            identifier += "_"
        functions[identifier] = name
    return functions


def allowed_tools(
    registry: ToolRegistry, wanted: tuple[str, ...], reachable: frozenset[str] | None
) -> dict[str, ToolEntry]:
    """Function names of a script with their tools: the defaults, `wanted`, MCP tools that read."""
    entries = {entry.name: entry for entry in registry.entries()}
    names = [
        *(name for name in DEFAULT_TOOLS if name in entries),
        *(name for name in wanted if name in entries),
        *(e.name for e in entries.values() if e.origin == "mcp" and e.effect == "read"),
    ]
    missing = registry.availability.missing([entries[name] for name in dict.fromkeys(names)])
    usable = [
        name
        for name in dict.fromkeys(names)
        if name not in missing and name not in _NEVER and (reachable is None or name in reachable)
    ]
    return {function: entries[name] for function, name in identifiers(usable).items()}


def python_stub(entries: Mapping[str, ToolEntry]) -> str:
    """Typed, documented Python functions; `entries` has the tool of each function name."""
    return "\n\n".join(_function(name, entry) for name, entry in entries.items())


def javascript_stub(entries: Mapping[str, ToolEntry]) -> dict[str, tuple[str, list[str]]]:
    """Function names with tool and parameter names, in order."""
    return {name: (entry.name, list(_parameters(entry))) for name, entry in entries.items()}


def signature(name: str, entry: ToolEntry) -> str:
    """A function as one short line, for the model: `read_file(path, offset=1)`."""
    words = []
    for parameter, field in _parameters(entry).items():
        default = field.get("default", ...) if isinstance(field, dict) else ...
        if parameter in _required(entry):
            words.append(parameter)
        elif default is ... or default is None:
            words.append(f"{parameter}?")
        else:
            words.append(f"{parameter}={default!r}")
    return f"{name}({', '.join(words)})"


def _function(name: str, entry: ToolEntry) -> str:
    parameters = _parameters(entry)
    description = entry.description.strip().replace("\\", "\\\\").replace('"""', "'''")
    document = f'    """{description}"""'
    if not all(word.isidentifier() and not keyword.iskeyword(word) for word in parameters):
        head, given = f"def {name}(**arguments) -> object:", "arguments"
    else:
        words = [
            f"{parameter}: {_kind(field)}{'' if parameter in _required(entry) else ' = ...'}"
            for parameter, field in parameters.items()
        ]
        head = f"def {name}({', '.join(words)}) -> object:"
        given = "{" + ", ".join(f"{word!r}: {word}" for word in parameters) + "}"
    return f"{head}\n{document}\n    return call({entry.name!r}, {given})"


def _parameters(entry: ToolEntry) -> dict[str, Any]:
    """The parameters, required ones first; hidden ones are left out."""
    properties = entry.schema["parameters"].get("properties", {})
    required = _required(entry)
    return dict(sorted(properties.items(), key=lambda item: item[0] not in required))


def _required(entry: ToolEntry) -> list[str]:
    names: list[str] = entry.parameters.get("required", [])
    return names


def _kind(field: Any) -> str:
    kinds = field.get("type") if isinstance(field, dict) else None
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not kinds:
        return "object"
    return " | ".join(_KINDS.get(kind, "object") for kind in kinds)
