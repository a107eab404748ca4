"""Whatever a tool gives, and however odd a tool is, can be sent in both eras."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import TextContent, methods

from hermes.core.entry import ToolEntry, ToolOutcome
from hermes.core.json_text import to_json
from hermes.mcp.server.content import described, result_of, valid_unicode

VERSIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
texts = st.text(st.characters(exclude_categories=()))
numbers = st.none() | st.booleans() | st.integers() | st.floats()
blocks = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "audio", "resource", "resource_link"])},
    optional={
        "data": texts,
        "text": texts,
        "mimeType": texts | numbers,
        "uri": texts,
        "name": texts,
        "resource": st.dictionaries(texts, texts, max_size=3),
    },
)
values = st.recursive(
    numbers | texts | blocks,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=15,
)


def _sent(method: str, result: Any) -> None:
    dumped = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    for version in VERSIONS:
        wire = methods.serialize_server_result(method, version, dumped)
        json.dumps(wire, ensure_ascii=False).encode()


@given(values)
def test_any_result_can_be_sent(value: Any) -> None:
    result = result_of(ToolOutcome("1", "some", to_json(value)))

    _sent("tools/call", result)
    assert result.content
    if isinstance(value, str):
        assert result.content == [TextContent(text=valid_unicode(value))]


@pytest.mark.parametrize("depth", [50, 500, 50_000])
@pytest.mark.parametrize("pair", ["[]", '{"a":'])
def test_a_result_of_any_depth_can_be_sent(depth: int, pair: str) -> None:
    opened, closed = ("[", "]") if pair == "[]" else ('{"a":', "}")
    content = opened * depth + "1" + closed * depth

    result = result_of(ToolOutcome("1", "some", content))

    _sent("tools/call", result)
    assert result.content == [TextContent(text=content)]


def test_brackets_in_a_text_cost_nothing_but_the_data() -> None:
    content = to_json({"text": "[" * 500})

    result = result_of(ToolOutcome("1", "some", content))

    assert result.content == [TextContent(text=content)]


def test_half_a_character_is_marked_and_the_rest_stays() -> None:
    assert valid_unicode("a\ud800b") == "a�b"
    assert valid_unicode("a\ud83d\ude00b") == "a😀b"
    assert valid_unicode("ü") == "ü"


schemas = st.fixed_dictionaries(
    {"type": st.just("object")},
    optional={
        "properties": st.dictionaries(texts, values, max_size=3),
        "required": values,
        "$schema": values,
        "title": values,
        "additionalProperties": values,
        "$defs": values,
    },
)


@given(texts, texts, schemas)
def test_any_tool_is_described_rightly_or_not_at_all(
    emoji: str, description: str, schema: dict[str, Any]
) -> None:
    entry = ToolEntry("odd_one", "odd", {"properties": {}}, None, emoji=emoji)

    tool = described(entry, {"name": "odd_one", "description": description, "parameters": schema})

    if tool is not None:
        from mcp_types import ListToolsResult

        _sent("tools/list", ListToolsResult(tools=[tool]))
