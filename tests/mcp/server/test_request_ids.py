"""The numbers of requests: each is answered once, and those that can't be are told."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.mcp.server.http_server import InvalidRequestIdError, RequestIds


def body(**fields: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode()


def test_a_number_is_used_once_at_a_time_and_by_each_session_for_itself() -> None:
    numbers = RequestIds()
    asked = body(id=7, method="ping")

    with numbers.waiting("a", asked):
        with numbers.waiting("b", asked), numbers.waiting("a", body(id="7", method="ping")):
            pass
        with pytest.raises(InvalidRequestIdError) as caught, numbers.waiting("a", asked):
            pass
    with numbers.waiting("a", asked):
        pass

    assert json.loads(caught.value.body)["id"] == 7


def test_answers_and_notifications_use_no_number() -> None:
    numbers = RequestIds()

    for said in (body(id=1, result={}), body(method="notifications/x")):
        with numbers.waiting("a", said), numbers.waiting("a", said):
            pass


@pytest.mark.parametrize("number", ["null", "1.5", "1e999", "[1]", "{}", "true"])
def test_what_is_no_number_is_told(number: str) -> None:
    said = f'{{"jsonrpc":"2.0","id":{number},"method":"ping"}}'.encode()

    with pytest.raises(InvalidRequestIdError), RequestIds().waiting("a", said):
        pass


@given(st.binary(max_size=60) | st.just(b"[" * 100_000) | st.just(b'{"id":' * 5_000))
def test_what_is_no_message_is_left_to_others(said: bytes) -> None:
    with RequestIds().waiting("a", said):
        pass
