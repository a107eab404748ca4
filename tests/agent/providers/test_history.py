"""What is sent again is what every server accepts, and always the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.providers.history import (
    encoded,
    nine_character_id,
    paired,
    valid_arguments,
    valid_id,
    valid_name,
)
from hermes.core.model_protocol import Message, ToolUse

USER = Message("user", "hi")
ASKED = Message("assistant", calls=(ToolUse("a", "read_file"), ToolUse("b", "terminal")))
RESULT_A = Message("tool", "one", call_id="a", name="read_file")
RESULT_B = Message("tool", "two", call_id="b", name="terminal")


@given(st.text(max_size=60))
def test_any_arguments_are_sent_as_an_object(raw: str) -> None:
    assert isinstance(json.loads(valid_arguments(raw)), dict)


def test_half_a_character_in_arguments_is_replaced() -> None:
    assert valid_arguments('{"content":"a\\ud800b"}') == '{"content":"a?b"}'
    assert valid_arguments('{"content":"\\ud83d\\ude00"}') == '{"content":"\\ud83d\\ude00"}'


@pytest.mark.parametrize("raw", ['{"a":1}', '{ "a" : [1, 2.0] }', "{}"])
def test_valid_arguments_stay_as_they_are_to_the_byte(raw: str) -> None:
    assert valid_arguments(raw) == raw


def test_arguments_with_one_reading_are_sent_in_that_reading() -> None:
    assert json.loads(valid_arguments("{'path': 'a', }")) == {"path": "a"}


@pytest.mark.parametrize("raw", ['{"a": ', "[1]", '"x"', "NaN", '{"a": NaN}', "nonsense"])
def test_other_arguments_are_quoted(raw: str) -> None:
    assert json.loads(valid_arguments(raw)) == {"unreadable_arguments": raw}


@given(st.text(max_size=100))
def test_any_name_and_id_become_ones_that_servers_accept(text: str) -> None:
    allowed = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
    assert set(valid_name(text)) <= allowed
    assert 1 <= len(valid_name(text)) <= 64
    assert set(valid_id(text)) <= allowed
    assert 1 <= len(valid_id(text)) <= 40
    assert len(nine_character_id(text)) == 9


def test_a_whole_conversation_is_left_alone() -> None:
    whole = [USER, ASKED, RESULT_A, RESULT_B, Message("assistant", "done")]
    assert all(a is b for a, b in zip(paired(whole), whole, strict=True))


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    sent = paired([USER, ASKED, RESULT_A, USER])

    assert [(m.role, m.call_id) for m in sent[2:4]] == [("tool", "a"), ("tool", "b")]
    assert "interrupted" in sent[3].text


def test_a_result_without_a_call_becomes_text() -> None:
    sent = paired([USER, RESULT_A])

    assert [m.role for m in sent] == ["user", "user"]
    assert "one" in sent[1].text


def test_a_second_result_of_one_call_becomes_text() -> None:
    assert [m.role for m in paired([ASKED, RESULT_A, RESULT_B, RESULT_A])][-1] == "user"


def test_what_was_left_out_stays_left_out_as_the_conversation_grows() -> None:
    before = paired([USER, ASKED])
    after = paired([USER, ASKED, USER])

    assert [encoded(m) for m in after[: len(before)]] == [encoded(m) for m in before]


def test_an_empty_answer_is_not_sent() -> None:
    assert paired([USER, Message("assistant", " ")]) == [USER]


def test_halves_of_characters_do_not_stop_a_request() -> None:
    assert encoded({"a": ["x\ud800y"]}) == b'{"a":["x?y"]}'
