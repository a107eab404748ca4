"""The `parameters:` of a tool, read from the file."""

from __future__ import annotations

import re

from hermes.runtime.yaml_tools.definition import TYPES, Parameter

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from typing import Any

    from yaml import Node

    from hermes.runtime.yaml_tools.document import Document

PLACES = ("query", "path", "body", "header")
_KEYS = ("name", "type", "required", "description", "enum", "default", "items")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


def read_parameters(document: Document, node: Node | None, tool_type: str) -> list[Parameter]:
    """The parameters of one tool: a list, or keys with values where the key is the name."""
    import yaml

    if node is None:
        return []
    known = (*_KEYS, "in") if tool_type == "http_wrapper" else (*_KEYS, "allow_dash")
    found: list[Parameter] = []
    if isinstance(node, yaml.MappingNode):
        by_name = document.fields(node, "parameters", None)
        rows = [
            (name, inner, document.fields(inner, f"parameter `{name}`", known))
            for name, inner in by_name.items()
        ]
    else:
        rows = []
        for item in document.items(node, "parameters"):
            fields = document.fields(item, "a parameter", known)
            named = fields.get("name")
            name = document.text(named, "the name of a parameter") if named is not None else None
            if name is not None:
                rows.append((name, item, fields))
            elif named is None and fields:
                document.problem(item, "a parameter has no name")
    for name, item, fields in rows:
        if not _NAME.fullmatch(name):
            document.problem(
                item, f"`{name:.70}` can't be a parameter's name: letters, digits, `_` and `-`"
            )
        elif any(other.name == name for other in found):
            document.problem(item, f"parameter `{name}` comes twice")
        else:
            found.append(_read(document, name, item, fields))
    return found


def _read(document: Document, name: str, item: Node, fields: dict[str, Node]) -> Parameter:
    what = f"of parameter `{name}`"
    kind = "string"
    if "type" in fields:
        kind = document.choice(fields["type"], f"the type {what}", TYPES) or ""
    schema: dict[str, Any] = {"type": kind}
    if "description" in fields:
        schema["description"] = document.text(fields["description"], f"the description {what}")
    if "items" in fields:
        inner = document.choice(fields["items"], f"the items {what}", TYPES)
        if kind not in ("array", ""):
            document.problem(fields["items"], f"parameter `{name}` is no array and has no items")
        schema["items"] = {"type": inner}
    elif kind == "array":
        schema["items"] = {"type": "string"}
    if "enum" in fields:
        values = [document.value(one) for one in document.items(fields["enum"], f"the enum {what}")]
        for node, value in zip(getattr(fields["enum"], "value", ()), values, strict=False):
            _check_type(document, node, value, kind, f"a value of the enum {what}")
        schema["enum"] = values
        if not values:
            document.problem(fields["enum"], f"the enum {what} is empty")
    if "default" in fields:
        default = document.value(fields["default"])
        _check_type(document, fields["default"], default, kind, f"the default {what}")
        if schema.get("enum") and default not in schema["enum"]:
            document.problem(fields["default"], f"the default {what} is not in its enum")
        schema["default"] = default
    place: Any = document.choice(fields["in"], f"`in` {what}", PLACES) if "in" in fields else None
    return Parameter(
        name,
        kind,
        required="required" in fields and document.flag(fields["required"], f"`required` {what}"),
        place=place,
        allow_dash="allow_dash" in fields
        and document.flag(fields["allow_dash"], f"`allow_dash` {what}"),
        schema=schema,
        line=item.start_mark.line + 1,
    )


def _check_type(document: Document, node: Node, value: Any, kind: str, what: str) -> None:
    fits = {
        "string": isinstance(value, str),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, (int, float)) and not isinstance(value, bool),
        "boolean": isinstance(value, bool),
        "array": isinstance(value, list),
        "object": isinstance(value, dict),
    }
    if not fits.get(kind, True):
        quotable = kind == "string" and not isinstance(value, (list, dict))
        advice = "; put it in quotes" if quotable else ""
        document.problem(node, f"{what} is not of the type {kind}{advice}")
