"""Reader of YAML tool files: all tools of a file, or all its problems."""

from __future__ import annotations

import re

from hermes.runtime.yaml_tools.document import MOST_BYTES, DefinitionError, Document, Problem
from hermes.runtime.yaml_tools.fields import (
    COMMAND_KEYS,
    HTTP_KEYS,
    read_command,
    read_http,
    read_parameters,
)
from hermes.runtime.yaml_tools.spec import Definition, HttpSpec

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from yaml import Node

    from hermes.core.entry import Effect
    from hermes.runtime.yaml_tools.spec import CommandSpec

TYPES = ("http_wrapper", "command")
DEFAULT_TOOLSET = "yaml"
LONGEST_SECONDS = 3600.0
_COMMON_KEYS = (
    "name",
    "description",
    "type",
    "parameters",
    "tags",
    "timeout_seconds",
    "toolset",
    "effect",
)
_KEYS = {"http_wrapper": HTTP_KEYS, "command": COMMAND_KEYS}
# What a tool may say of its effect: what it has anyway, or something that is watched more closely.
_EFFECTS: dict[str, tuple[Effect, ...]] = {
    "http_wrapper": ("network", "message"),
    "command": ("execute", "message"),
}
_SECONDS = {"http_wrapper": 30.0, "command": 60.0}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


def read_tools(text: str, path: str) -> list[Definition]:
    """The tools of a file: a list under `tools:`, or one tool by itself.

    Raises `DefinitionError` with every problem and its line; a file is good as a whole or not.
    """
    if len(text) > MOST_BYTES:
        raise DefinitionError(path, [Problem(0, f"the file is larger than {MOST_BYTES} bytes")])
    document = Document(text, path)
    document.check()
    assert document.root is not None
    definitions: list[Definition] = []
    for node in _tool_nodes(document, document.root):
        tool = _read_tool(document, node)
        if tool is None:
            continue
        twin = next((other for other in definitions if other.name == tool.name), None)
        if twin is not None:
            document.problem(tool.line, f"tool `{tool.name}` is already in line {twin.line}")
        definitions.append(tool)
    document.check()
    return definitions


def _tool_nodes(document: Document, root: Node) -> list[Node]:
    import yaml

    if document.peek(root, "tools") is None and document.peek(root, "name") is not None:
        return [root]
    fields = document.fields(root, "the file", ("tools",))
    if "tools" in fields:
        nodes = document.items(fields["tools"], "`tools`")
        if nodes or document.problems:
            return nodes
    if isinstance(root, yaml.MappingNode):
        document.problem(root, "the file has no tools; list them under `tools:`")
    return []


def _read_tool(document: Document, node: Node) -> Definition | None:
    """One tool, or None; its problems are added to the document."""
    before = len(document.problems)
    named, typed = document.peek(node, "name"), document.peek(node, "type")
    name = document.text(named, "the name of a tool") if named is not None else None
    label = f"tool `{name:.70}`" if name else "a tool"
    kind = document.choice(typed, f"the type of {label}", TYPES) if typed is not None else None
    keys = _KEYS[kind] if kind else (*HTTP_KEYS, *COMMAND_KEYS)
    fields = document.fields(node, label, (*_COMMON_KEYS, *keys))
    if named is None and fields:
        document.problem(node, "a tool has no name")
    elif name is not None and not _NAME.fullmatch(name):
        document.problem(
            node, f"{label} has a name that can't be: letters, digits, `_` and `-`, up to 64"
        )
    if typed is None and fields:
        document.problem(node, f"{label} has no type; use one of {', '.join(TYPES)}")
    if kind is None:
        return None
    parameters = read_parameters(document, fields.get("parameters"), kind)
    spec: HttpSpec | CommandSpec | None
    if kind == "http_wrapper":
        spec = read_http(document, node, fields, label, parameters)
    else:
        spec = read_command(document, node, fields, label, parameters)
    description = ""
    if "description" in fields:
        description = document.text(fields["description"], f"the description of {label}") or ""
    seconds = _SECONDS[kind]
    if "timeout_seconds" in fields:
        what = f"timeout_seconds of {label}"
        seconds = document.seconds(fields["timeout_seconds"], what, LONGEST_SECONDS) or seconds
    tags = document.texts(fields["tags"], f"the tags of {label}") if "tags" in fields else ()
    toolset = DEFAULT_TOOLSET
    if "toolset" in fields:
        toolset = document.text(fields["toolset"], f"the toolset of {label}") or toolset
        if not _NAME.fullmatch(toolset):
            document.problem(fields["toolset"], f"the toolset of {label} has a name that can't be")
    effect = _effect(document, fields.get("effect"), kind, label)
    # Only of what is good so far: a second look would note everything a second time.
    source = document.value(node) if len(document.problems) == before else None
    if len(document.problems) > before or name is None or spec is None:
        return None
    return Definition(
        name,
        kind,
        spec,
        description=description.strip() or _described(spec),
        parameters=parameters,
        effect=effect,
        toolset=toolset,
        timeout_seconds=seconds,
        tags=tags,
        source=source,
        line=node.start_mark.line + 1,
    )


def _effect(document: Document, node: Node | None, kind: str, label: str) -> Effect:
    allowed = _EFFECTS[kind]
    word = None if node is None else document.text(node, f"the effect of {label}")
    for effect in allowed:
        if word == effect:
            return effect
    if node is not None and word is not None:
        document.problem(
            node,
            f"the effect of {label} can't be `{word:.40}`: a {kind} tool has the effect"
            f" `{allowed[0]}`, and a file can't lower it",
        )
    return allowed[0]


def _described(spec: HttpSpec | CommandSpec) -> str:
    if isinstance(spec, HttpSpec):
        path = "/".join(segment.text for segment in spec.segments)
        return f"{spec.method} {spec.origin}/{path}"
    words = [spec.program, *(argument.text for group in spec.groups for argument in group)]
    return f"Run `{' '.join(words)}`."
