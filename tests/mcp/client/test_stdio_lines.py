"""Lines of a server: what is in them, and whom a broken one is for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.mcp.client.stdio_client import MAX_BATCH, parse_line

_messages = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3)


@given(st.lists(_messages, min_size=2, max_size=5), st.sampled_from(["", " ", "\t \r"]))
def test_messages_right_behind_each_other_are_all_read(
    messages: list[dict[str, Any]], between: str
) -> None:
    line = between.join(json.dumps(one) for one in messages) + between

    assert parse_line(line.encode()) == messages


def test_of_too_many_in_a_line_the_first_are_looked_at() -> None:
    assert len(parse_line(b"{}" * 100_000)) == MAX_BATCH + 1


@pytest.mark.parametrize(
    ("line", "ident"),
    [
        (b'{"result":{"rows":[{"id":7,"v":oops}]},"id":"hermes-3"}', "hermes-3"),
        (b'{"jsonrpc":"2.0","id":"hermes-3","result":{"rows":[{"id":7},{"id":8}', "hermes-3"),
        (b'{"jsonrpc":"2.0","id":4,"result":{"rows":[', 4),
    ],
)
def test_an_answer_that_breaks_off_is_an_error_of_its_own_call(
    line: bytes, ident: str | int
) -> None:
    said = parse_line(line)

    assert said["id"] == ident
    assert "can't be read" in said["error"]["message"]


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","result":{"rows":[{"id":7,"v":oops}]},"id":4}',
        b'{"id":"hermes-3","result":{"id":"hermes-4",',
        b'{"jsonrpc":"2.0","id":1,"method":"ping",',
        b'{"result":',
        b"",
    ],
)
def test_a_broken_line_that_may_be_for_several_is_for_nobody(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_line(line)
