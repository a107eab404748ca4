"""The small parts: events out of bytes, waits out of headers, prices out of names."""

from __future__ import annotations

import json
from email.utils import formatdate
from time import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.corpus import each

from hermes.agent.providers.connection import is_loopback, retry_after, shown_url
from hermes.agent.providers.http_model import DONE, EventError, EventReader
from hermes.agent.providers.model_profiles import Prices, prices_of, profile_of
from hermes.core.model_protocol import Usage

VALUES = st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=8), max_size=3), max_size=5)


@given(VALUES, st.integers(1, 9), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_events_do_not_depend_on_how_the_bytes_were_cut(
    values: list[Any], size: int, end: str, comments: bool
) -> None:
    lines = [f"data: {json.dumps(value)}{end}{end}" for value in values]
    text = "".join([": hello\n\n" + line if comments else line for line in lines])
    data = f"{text}data: [DONE]".encode()
    reader = EventReader()

    found = [e for at in range(0, len(data), size) for e in reader.feed(data[at : at + size])]

    assert [*found, *reader.end()] == [*values, DONE]


def test_events_over_several_lines_and_without_blank_lines_are_read() -> None:
    reader = EventReader()

    assert reader.feed(b'data: {"a":\ndata: 1}\n\n') == [{"a": 1}]
    assert reader.feed(b'data:{"a": 1}\ndata:{"b": 2}\n\n') == [{"a": 1}, {"b": 2}]
    assert reader.feed(b'{"error": "x"}\n') == [{"error": "x"}]


@pytest.mark.parametrize("line", [b"data: nonsense\n\n", b"data: [1]\n\n", b"data: \xff\n\n"])
def test_other_events_are_errors(line: bytes) -> None:
    with pytest.raises(EventError):
        EventReader().feed(line)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_how_long_to_wait_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_a_date_to_come_back_at_is_read() -> None:
    assert 20 < (retry_after({"retry-after": formatdate(time() + 30)}) or 0) <= 31


@each(
    ("model", "window", "text_calls"),
    [
        ("gpt-4o-mini", 128_000, False),
        ("openai/gpt-5.1", 400_000, False),
        ("anthropic/claude-sonnet-4.5", 200_000, False),
        ("claude-opus-4-1-20250805", 200_000, False),
        ("o3-mini", 200_000, False),
        ("deepseek/deepseek-chat-v3.1:free", 128_000, True),
        ("qwen2.5-coder:7b", 32_768, True),
        ("Qwen/Qwen3-32B", 131_072, True),
        ("zai-org/GLM-4.6", 200_000, True),
        ("unsloth-qwen3-8b-gguf", 131_072, True),
        ("NousResearch/Hermes-4-405B", 131_072, True),
        ("somebody/something", 0, True),
    ],
)
def test_families_are_known_by_their_names(model: str, window: int, text_calls: bool) -> None:
    profile = profile_of(model)
    assert (profile.window, profile.text_calls) == (window, text_calls)


def test_what_comes_from_a_cache_costs_less() -> None:
    prices = Prices(3, 15, 0.3, 3.75)
    usage = Usage(input=1_000_000, output=100_000, cached=800_000, written=100_000)

    assert prices.cost(usage) == pytest.approx(0.3 + 0.24 + 0.375 + 1.5)


def test_prices_of_ones_own_come_first() -> None:
    own = ["my-* 1 2 0.1", "gpt-5.1=5 6"]

    assert prices_of("my-model", own) == Prices(1, 2, 0.1)
    assert prices_of("gpt-5.1", own) == Prices(5, 6)
    assert prices_of("claude-sonnet-4-5", own) == Prices(3, 15, 0.3, 3.75)
    assert prices_of("nobody-knows", ["", "broken x"]) is None


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:1/v1", True),
        ("http://localhost/v1", True),
        ("http://[::1]:8/v1", True),
        ("https://api.openai.com/v1", False),
        ("http://127.example.com", False),
        ("nonsense", False),
    ],
)
def test_this_machine_is_told_apart(url: str, local: bool) -> None:
    assert is_loopback(url) is local


def test_a_password_in_an_address_is_not_shown() -> None:
    assert shown_url("http://me:secret@host:8/v1?key=secret") == "http://host:8/v1"
