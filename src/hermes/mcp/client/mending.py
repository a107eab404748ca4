"""Answers made such that the SDK takes them, with everything in them that was in them.

One odd item costs itself: a block of a result, an entry of a list, a word about what a server can.
"""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
from pydantic import ValidationError

# The lists besides that of tools: where their items are, and what none of them can be without.
LISTS = {
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
    "prompts/list": ("prompts", "name"),
}
_ABILITIES = ("tools", "resources", "prompts", "logging", "completions")
# What a block of each type can't be without.
_BLOCKS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource": (),
    "resource_link": ("uri", "name"),
}


def mend_result(result: dict[str, Any]) -> None:
    """Make a tool's answer one that the SDK takes, with everything in it that was in it."""
    if result.get("resultType") not in (None, "complete"):
        return
    content = result.get("content")
    if not isinstance(content, list):
        content = [] if content is None else [content]
    result["content"] = [_block(block) for block in content]
    if "structuredContent" in result and not isinstance(result["structuredContent"], dict):
        value = result.pop("structuredContent")
        if value is not None:
            result["structuredContent"] = {"result": value}
    if not isinstance(result.get("isError", False), bool):
        result["isError"] = bool(result["isError"])
    if "_meta" in result and not isinstance(result["_meta"], dict):
        del result["_meta"]


def _block(block: Any) -> dict[str, Any]:
    kind = block.get("type") if isinstance(block, dict) else None
    needed = _BLOCKS.get(kind) if isinstance(kind, str) else None
    if needed is not None and all(isinstance(block.get(name), str) for name in needed):
        if kind == "resource" and not _is_resource(block.get("resource")):
            return _as_text(block)
        # Remarks on a block that are odd are not worth losing it.
        return {name: block[name] for name in ("type", *needed, "resource") if name in block}
    return _as_text(block)


def _is_resource(resource: Any) -> bool:
    return (
        isinstance(resource, dict)
        and isinstance(resource.get("uri"), str)
        and any(isinstance(resource.get(name), str) for name in ("text", "blob"))
    )


def _as_text(block: Any) -> dict[str, Any]:
    text = block if isinstance(block, str) else json.dumps(block, ensure_ascii=False, default=str)
    return {"type": "text", "text": text}


def mend_cursor(result: dict[str, Any]) -> None:
    if not isinstance(result.get("nextCursor"), str):
        result.pop("nextCursor", None)


def mend_list(result: dict[str, Any], where: str, needed: str) -> None:
    """Keep the items that can be used, with what is ever shown of one."""
    listed = result.get(where)
    kept = []
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, dict) and isinstance(item.get(needed), str):
            names = ("name", "title", "description", "mimeType", needed)
            plain = {name: item[name] for name in names if isinstance(item.get(name), str)}
            given = item.get("arguments")
            arguments = [
                {"name": one["name"]}
                for one in (given if isinstance(given, list) else ())
                if isinstance(one, dict) and isinstance(one.get("name"), str)
            ]
            kept.append({"name": plain[needed], **plain, "arguments": arguments})
    result[where] = kept
    mend_cursor(result)


def mend_abilities(result: dict[str, Any]) -> None:
    """Read what a server says it can do as far as that can be read."""
    said = result.get("capabilities")
    try:
        types.ServerCapabilities.model_validate(said, by_name=False)
    except ValidationError:
        said = said if isinstance(said, dict) else {}
        result["capabilities"] = {
            name: {flag: on for flag, on in said[name].items() if isinstance(on, bool)}
            if isinstance(said[name], dict)
            else {}
            for name in _ABILITIES
            if said.get(name) is True or isinstance(said.get(name), dict)
        }


def mend_greeting(result: dict[str, Any]) -> None:
    mend_abilities(result)
    info = result.get("serverInfo")
    info = info if isinstance(info, dict) else {}
    result["serverInfo"] = {
        name: info[name] if isinstance(info.get(name), str) else "unknown"
        for name in ("name", "version")
    }
    if not isinstance(result.get("instructions", ""), str):
        del result["instructions"]
