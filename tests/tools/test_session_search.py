"""Past conversations, searched and read."""

from __future__ import annotations

import pytest
from tests.tools.bench import Bench

from hermes.core.model_protocol import Message, ToolUse
from hermes.stores.sessions import Sessions


@pytest.fixture
def told(bench: Bench) -> str:
    """A kept conversation of some length."""
    with Sessions() as store:
        session = store.begin(workspace="/w", model="m", front_door="test", title="the old days")
        for number in range(20):
            session.append(Message("user", f"question {number} about the harbour"))
            calls = (ToolUse("1", "read_file", '{"path": "ships.txt"}'),)
            session.append(Message("assistant", f"answer {number}", calls=calls))
        session.append(Message("user", "wo ist der Leuchtturm? 灯台はどこですか"))
        return session.id


def test_a_hit_leads_to_what_was_said_around_it(bench: Bench, told: str) -> None:
    hit = bench("session_search", query="leuchtturm")["hits"][0]
    around = bench("session_search", session=hit["session"], seq=hit["seq"], limit=4)

    assert hit["session"] == told
    assert hit["title"] == "the old days"
    texts = [message["text"] for message in around["messages"]]
    assert texts[:2] == ["question 19 about the harbour", "answer 19"]
    assert "ships.txt" in around["messages"][1]["calls"][0]


def test_hits_are_limited_and_more_are_announced(bench: Bench, told: str) -> None:
    found = bench("session_search", query="harbour", limit=3)

    assert len(found["hits"]) == 3
    assert "older" in found["note"]
    assert bench("session_search", query="灯台")["hits"][0]["session"] == told


def test_recent_sessions_are_listed_and_read_from_their_end(bench: Bench, told: str) -> None:
    listed = bench("session_search")["sessions"]
    read = bench("session_search", session=told, limit=2)

    assert [one["session"] for one in listed] == [told]
    assert [message["text"][:9] for message in read["messages"]] == ["answer 19", "wo ist de"]


def test_nothing_is_said_plainly(bench: Bench) -> None:
    assert bench("session_search")["sessions"] == []
    assert bench("session_search", query="anything")["note"].startswith("nothing found")


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": '"open phrase'},
        {"seq": 3},
        {"session": "no-such-session"},
        {"query": "x", "session": "no-such-session"},
        {"limit": 0},
    ],
)
def test_a_wrong_question_is_explained(
    bench: Bench, told: str, arguments: dict[str, object]
) -> None:
    assert bench("session_search", **arguments)["error"]
