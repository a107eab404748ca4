"""Servers that mean harm: each is survived, and none takes more than it may."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.client.conftest import Desk, eventually

from hermes.mcp.client.server_log import RateLimit
from hermes.mcp.client.servers import Servers

HOSTILE = Path(__file__).parent.parent / "servers" / "hostile.py"


def opened(desk: Desk, habit: str, **more: Any) -> Servers:
    return desk.open(
        box={"command": sys.executable, "args": [str(HOSTILE), habit], "timeout": 30, **more}
    )


@pytest.mark.parametrize(
    "habit",
    [
        "deep noise",
        "answers twice",
        "odd numbers",
        "talks without end",
        "reports without end",
        "endless progress",
        "asks without end",
        "pages without end",
        "changes without end",
    ],
)
def test_a_call_is_answered_whatever_else_a_server_does(desk: Desk, habit: str) -> None:
    servers = opened(desk, habit)

    assert desk.call("mcp-box:echo") == "fine"
    assert desk.call("mcp-box:echo") == "fine"
    assert servers.states["box"].state == "connected"


@pytest.mark.parametrize(
    ("habit", "why"),
    [
        ("deep answer", "can't be read"),
        ("half an answer", "can't be read"),
        ("a number without end", "too long"),
        ("no answer in the answer", "neither a result nor"),
    ],
)
def test_what_is_no_answer_is_an_error_at_once(desk: Desk, habit: str, why: str) -> None:
    opened(desk, habit)

    outcome = desk.outcome("mcp-box:echo")

    assert outcome.status == "error"
    assert why in str(outcome.error)


def test_a_long_array_of_nothing_is_noted_once(desk: Desk) -> None:
    servers = opened(desk, "a long array")
    link = servers.states["box"].connection
    assert link is not None

    assert desk.call("mcp-box:echo") == "fine"
    assert len(link.log.lines) == 1


def test_progress_that_is_no_number_is_not_told(desk: Desk) -> None:
    opened(desk, "endless progress")
    assert desk.app is not None
    seen: list[str] = []
    desk.app.runtime.events.subscribe(
        lambda event: seen.append(event.data["message"]) if event.kind == "progress" else None
    )

    assert desk.call("mcp-box:echo") == "fine"
    assert seen == []


def test_an_everyday_error_of_a_server_is_no_lost_connection(desk: Desk) -> None:
    servers = opened(desk, "an everyday error")
    link = servers.states["box"].connection
    assert link is not None

    outcomes = [desk.outcome("mcp-box:echo") for _ in range(2)]

    assert all("box refused echo: no such record" in str(one.error) for one in outcomes)
    assert (link.state, link.connects) == ("connected", 1)


def test_half_a_character_costs_itself_and_nothing_else(desk: Desk) -> None:
    servers = opened(desk, "half a character")

    assert desk.call("mcp-box:echo") == "a\ufffdb"
    assert len(servers.entries("box")) == 3


@pytest.mark.parametrize(
    ("habit", "said"),
    [
        ("other bytes", "f\ufffdne"),
        ("a mark in front", "fine"),
        ("several at once", "fine"),
        ("no number", "NaN\nfine"),
    ],
)
def test_an_answer_is_read_however_it_is_written(desk: Desk, habit: str, said: str) -> None:
    opened(desk, habit)

    assert desk.call("mcp-box:echo") == said


def test_every_small_page_is_asked_for(desk: Desk) -> None:
    servers = opened(desk, "small pages")

    names = {entry.name for entry in servers.entries("box")}
    assert len(names) == 1_500


def test_names_that_become_the_same_cost_one_tool_and_not_both(desk: Desk) -> None:
    servers = opened(desk, "names alike")
    offering = servers.states["box"].tools

    assert offering is not None
    assert "another tool of the server is called" in str(list(offering.quarantined.values()))
    assert "a b" in offering.entries
    assert desk.call("mcp-box:echo") == "fine"


def test_a_server_is_understood_whatever_it_says_of_what_it_can(desk: Desk) -> None:
    opened(desk, "odd abilities")

    assert desk.call("mcp-box:echo") == "fine"
    found = desk.call("mcp-box:read_resource")["resources"]
    assert found == [{"uri": "odd::", "name": "odd::"}]


def test_a_protocol_that_nobody_speaks_is_named(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.mcp.client.connection.PAUSE_SECONDS", 0.01)
    servers = opened(desk, "odd version")

    eventually(lambda: servers.states["box"].state == "failed")
    assert "1999-12-31" in servers.states["box"].reason


def test_a_long_list_says_that_it_is_longer(desk: Desk) -> None:
    opened(desk, "long list")

    found = desk.call("mcp-box:read_resource")

    assert len(found["resources"]) == 200
    assert "only the first 200 resources" in found["notes"][0]


def test_a_list_of_empty_pages_comes_to_an_end(desk: Desk) -> None:
    opened(desk, "empty pages")

    assert desk.call("mcp-box:read_resource") == {"resources": []}


def test_what_is_never_read_ends_at_the_limit_of_a_call(desk: Desk) -> None:
    opened(desk, "never reads", timeout=0.5)

    outcome = desk.outcome("mcp-box:read_resource", uri="r:1")

    assert outcome.status == "timeout"
    assert "the server box was told to stop the resource r:1" in str(outcome.error)
    assert desk.call("mcp-box:echo") == "fine"


def test_a_server_that_does_not_say_what_changed_can_still_be_let_go(desk: Desk) -> None:
    servers = opened(desk, "silent when asked again")
    link = servers.states["box"].connection
    assert link is not None
    eventually(lambda: "not said" in link.log.last())

    assert desk.call("mcp-box:echo") == "fine"
    servers.reconnect("box")

    eventually(lambda: link.connects == 2)


def test_of_too_many_tools_those_that_are_wanted_come_first(desk: Desk) -> None:
    servers = opened(desk, "many")
    offering = servers.states["box"].tools
    assert offering is not None
    first = len(offering.entries)
    (beyond,) = offering.quarantined
    desk.close()

    servers = opened(desk, "many", include=["t2999", "t5"])

    assert first == 2_000
    assert beyond == "(1000 more)"
    wanted = {"mcp-box:t2999", "mcp-box:t5"}
    eventually(lambda: {entry.name for entry in servers.entries("box")} == wanted)


def test_one_fat_definition_is_left_out_and_not_kept(desk: Desk) -> None:
    servers = opened(desk, "fat")
    offering = servers.states["box"].tools

    assert offering is not None
    assert list(offering.entries) == ["echo"]
    assert "5000" in offering.quarantined["fat"]
    assert sum(file.stat().st_size for file in desk.home.rglob("*.json")) < 100_000


def test_a_server_that_reports_without_end_is_heard_now_and_then_and_in_plain_words(
    desk: Desk,
) -> None:
    opened(desk, "reports without end")
    assert desk.app is not None
    seen: list[str] = []
    desk.app.runtime.events.subscribe(
        lambda event: seen.append(event.data["message"]) if event.kind == "progress" else None
    )

    assert desk.call("mcp-box:echo") == "fine"
    assert 0 < len(seen) < 1_500
    assert all(len(said) <= 300 and said.isprintable() for said in seen)


def test_a_server_that_asks_without_end_asks_a_few_times(desk: Desk) -> None:
    opened(desk, "asks without end")

    assert desk.call("mcp-box:echo") == "fine"
    assert len(desk.asked) < 40


def test_a_server_whose_tools_never_stop_changing_is_asked_ever_more_rarely(desk: Desk) -> None:
    servers = opened(desk, "changes without end")
    link = servers.states["box"].connection
    assert link is not None

    eventually(lambda: "listed 4" in link.log.last(10))
    time.sleep(1)

    assert "listed 8" not in link.log.last(10)
    # It is still ended at once.
    servers.reconnect("box")
    eventually(lambda: link.connects == 2)


def test_a_pace_lets_some_through_at_once_and_others_later() -> None:
    pace = RateLimit(3, 1000.0)

    first = [pace.allows() for _ in range(3)]
    slow = RateLimit(2, 0.001)

    assert first == [True] * 3
    assert [slow.allows() for _ in range(4)] == [True, True, False, False]
    eventually(pace.allows)
