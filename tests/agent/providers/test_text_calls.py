"""Calls that a model writes into its text, in the spelling of each family, and what is none."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.corpus import each

from hermes.agent.providers.stream_reader import TextSplitter
from hermes.agent.providers.text_calls import find_calls, looks_like_call

NAMES = frozenset({"read_file", "terminal", "write_file"})
CALL = '{"name": "read_file", "arguments": {"path": "a"}}'
READ = ("read_file", {"path": "a"})

SPELLED = {
    "tags": f"<tool_call>\n{CALL}\n</tool_call>",
    "tags never closed": f"<tool_call>\n{CALL}",
    "tags around a list": f"<tool_calls>[{CALL}]</tool_calls>",
    "single quotes": "<tool_call>{'name': 'read_file', 'arguments': {'path': 'a'}}</tool_call>",
    "arguments as text": '<tool_call>{"name":"read_file","arguments":"{\\"path\\": \\"a\\"}"}</tool_call>',
    "xml": "<tool_call>\n<function=read_file>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>",
    "xml, outer tag missing": "<function=read_file>\n<parameter=path>a</parameter>\n</function>",
    "xml with attributes": '<tool_call><function name="read_file"><parameter name="path">a</parameter></function></tool_call>',
    "function tag with json": '<function=read_file>{"path": "a"}</function>',
    "invoke": '<minimax:tool_call>\n<invoke name="read_file">\n<parameter name="path">a</parameter>\n</invoke>\n</minimax:tool_call>',
    "dsml": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="read_file">\n<｜DSML｜parameter name="path" string="true">a</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
    "key and value tags": "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
    "tokens with a fence": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n{"path": "a"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "tokens": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path": "a"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "numbered tokens": '<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{"path": "a"}<|tool_call_end|><|tool_calls_section_end|>',
    "bracket and list": f"[TOOL_CALLS] [{CALL}]",
    "bracket and name": '[TOOL_CALLS]read_file[ARGS]{"path": "a"}',
    "bracket, id and name": '[TOOL_CALLS]read_file[CALL_ID]abc123def[ARGS]{"path": "a"}',
    "python tag": '<|python_tag|>{"name": "read_file", "parameters": {"path": "a"}}<|eom_id|>',
    "bars": f"<|tool_call|>[{CALL}]<|/tool_call|>",
    "functools": f"functools[{CALL}]",
    "channel": '<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{"path":"a"}<|call|>',
    "bare": f"\n{CALL}\n",
    "bare list": f"[{CALL}]",
    "bare, as an api has it": '{"type":"function","function":{"name":"read_file","arguments":"{\\"path\\":\\"a\\"}"}}',
    "bare under a key": f'{{"tool_calls":[{CALL}]}}',
    "bare, other words": '{"tool":"read_file","args":{"path":"a"}}',
    "python list": '[read_file(path="a")]',
}


@each("text", SPELLED.values(), ids=SPELLED.keys())
def test_a_spelled_call_is_found(text: str) -> None:
    found = find_calls(text, NAMES)

    assert [(name, json.loads(raw)) for name, raw in found.calls] == [READ]
    assert found.rest == ""


@each("text", SPELLED.values(), ids=SPELLED.keys())
def test_text_before_a_call_with_marks_is_kept(text: str) -> None:
    found = find_calls(f"Let me look.\n\n{text}", NAMES)

    if find_calls(text, ()).calls:
        assert found.rest == "Let me look."
    else:
        # Without marks only a whole text is a call.
        assert found.calls == []
        assert found.rest == f"Let me look.\n\n{text}"


@each(
    "text",
    [
        f"This is how:\n```json\n{CALL}\n```\nAnd that is it.",
        f"```\n<tool_call>\n{CALL}\n</tool_call>\n```",
        f"```json\n{CALL}\n```",
        f"~~~\n<tool_call>{CALL}</tool_call>\n~~~",
        f"See:\n```xml\n<tool_call>{CALL}</tool_call>",
        f"````md\n```\n<tool_call>{CALL}</tool_call>\n```\n````",
        f"1. Do\n   ```\n   <tool_call>{CALL}</tool_call>\n   ```",
        f"Write `<tool_call>{CALL}</tool_call>` for it.",
        f"> <tool_call>{CALL}</tool_call>",
        f"I would send {CALL} to it.",
        '{"name": "Alice", "arguments": {"x": 1}}',
        '{"name": "read_file", "size": 3}',
        '{"name": "read_file", "arguments": {}, "description": "reads"}',
        "The tag <tool_call> opens a call and </tool_call> ends it.",
        "The tag <tool_call>x</tool_call> is one.",
        "Prompts have [TOOL_CALLS] in them.",
        '<function name="x"> is odd',
        "[1, 2, 3]",
        "",
    ],
)
def test_an_answer_about_calls_is_no_call(text: str) -> None:
    found = find_calls(text, NAMES)

    assert found.calls == []
    assert found.rest == text


def test_several_calls_come_in_order() -> None:
    text = (
        "<tool_call>read_file<arg_key>path</arg_key><arg_value>a</arg_value></tool_call>"
        "<tool_call>terminal<arg_key>command</arg_key><arg_value>ls</arg_value></tool_call>"
    )
    assert [name for name, _ in find_calls(text, NAMES).calls] == ["read_file", "terminal"]


def test_a_value_may_hold_what_looks_like_the_end() -> None:
    arguments = {"path": "a", "content": "x</tool_call>\n```py\ny\n```"}
    call = json.dumps({"name": "write_file", "arguments": arguments})

    found = find_calls(f"<tool_call>{call}</tool_call> bye", NAMES)

    assert json.loads(found.calls[0][1]) == arguments
    assert found.rest == "bye"


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name":"write_file","arguments":{"path": "a","content":"abc',
        "<tool_call>\n<function=write_file>\n<parameter=path>a</parameter>\n<parameter=content>\nab",
        '<tool_call>{"name":"write_file","arguments":{"path": "a",,}}</tool_call>',
        '<|tool_call_begin|>functions.write_file:0<|tool_call_argument_begin|>{"path": <|tool_call_end|>',
    ],
)
def test_a_broken_call_keeps_broken_arguments(text: str) -> None:
    calls = find_calls(text, NAMES).calls

    assert [name for name, _ in calls] == ["write_file"]
    with pytest.raises(ValueError):
        json.loads(calls[0][1])


def test_a_name_that_nobody_offered_is_answered_rather_than_shown() -> None:
    assert find_calls('<tool_call>{"name":"nope","arguments":{}}</tool_call>', NAMES).calls


@pytest.mark.parametrize(
    ("text", "seems"),
    [
        (f"I will read it.\n{CALL}", True),
        (f"```json\n{CALL}\n```", True),
        (f"Like this:\n```json\n{CALL}\n```", False),
        ("The answer is 4.", False),
        ('{"answer": 4}', False),
    ],
)
def test_what_only_seems_a_call_can_be_asked_about(text: str, seems: bool) -> None:
    assert looks_like_call(text, NAMES) is seems


@given(st.text(alphabet='<>|｜/=`[]{}",: \n\\atol_cfunire', max_size=200))
def test_any_text_is_read_without_harm(text: str) -> None:
    found = find_calls(text, NAMES)

    assert found.calls or found.rest == text


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>" * 5000,
        "<tool_call>a" * 5000,
        "<function=a><parameter=b>" * 3000,
        '<tool_call>{"name":"x","arguments":' * 1000,
        "[TOOL_CALLS]" * 5000,
        "{" * 50000,
        "a`b" * 5000,
    ],
)
def test_hostile_text_does_not_take_for_ever(text: str) -> None:
    find_calls(text, NAMES)


@each(
    "text",
    [
        *SPELLED.values(),
        f"Before.\n{SPELLED['tags']}\nAfter.",
        f"```\n{SPELLED['tags']}\n```\nis how.",
        "<think>\nHm, a < b.\n</think>\n\nHello <b>you</b>",
        f"<think>x</think>{SPELLED['tags']}",
        "[1] is a footnote, {2} is not, functools too, f",
    ],
)
def test_what_is_shown_does_not_depend_on_how_it_was_cut(text: str) -> None:
    results = set()
    for seed in range(20):
        flow = TextSplitter(NAMES, tags=True, calls=True)
        sizes, shown, at = random.Random(seed), [], 0
        while at < len(text):
            size = sizes.choice([1, 2, 3, 7, 30])
            shown += flow.feed(text[at : at + size])
            at += size
        said, calls, thought, held = flow.end(structured=False)
        shown += held
        seen = "".join(part for kind, part in shown if kind == "text")
        assert seen.strip() == said.strip()
        assert "".join(part for kind, part in shown if kind == "reasoning") == thought
        results.add((said, tuple(calls), thought))

    assert len(results) == 1


def test_reasoning_whose_opening_tag_is_missing_is_still_told_apart() -> None:
    flow = TextSplitter(NAMES, tags=True, calls=True)
    flow.feed("Let me think.\n</think>\n\nFour.")

    said, _, thought, _ = flow.end(structured=False)

    assert (said, thought) == ("Four.", "Let me think.\n")
