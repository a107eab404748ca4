"""The grammars, read back by a small reader of the same notation."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from hermes.embedded.checks import actions, choice

_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')


def literals(grammar: str) -> list[str]:
    """The quoted pieces of a grammar's first rule, as the engine reads them."""
    root = grammar.split("\nstring ::=")[0]
    return [json.loads(f'"{match[1]}"') for match in _LITERAL.finditer(root)]


@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=5))
def test_words_are_quoted_whatever_is_in_them(words: list[str]) -> None:
    clean = [re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", "", word) or "x" for word in words]

    assert literals(choice(clean)) == clean


@given(st.lists(st.text(st.characters(exclude_categories=["C"]), min_size=1), max_size=4))
def test_paths_are_written_as_json_would(paths: list[str]) -> None:
    grammar = actions({"read_file": {"path": paths}})

    assert literals(grammar)[0] == '{"tool": "read_file", "args": {"path": '
    for path in paths:
        assert json.dumps(path, ensure_ascii=False) in literals(grammar)


def test_a_tool_without_arguments_is_one_literal() -> None:
    assert literals(actions({"look": {}}, reply=False)) == ['{"tool": "look", "args": {}}']


def test_what_is_not_allowed_is_not_there() -> None:
    both = {"look": {"path": "string", "times": "integer"}}

    assert "reply" not in actions(both, reply=False)
    assert "look" not in actions(both, call=False)
    assert "string" in actions(both)
    assert "number" in actions(both)
