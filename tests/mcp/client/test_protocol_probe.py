"""Which protocol a server speaks: found out quickly, and rightly."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.mcp.client.conftest import Desk, tool

from hermes.mcp.client import sdk_compat

SDK = Path(__file__).parent.parent / "servers" / "sdk.py"


@pytest.mark.parametrize("ignored", [["server/discover"], ["server/discover", "ping"]])
def test_a_server_that_says_nothing_to_the_newer_question_is_soon_taken_for_an_old_one(
    desk: Desk, ignored: list[str]
) -> None:
    # Before the SDK alone would have given up on the question.
    servers = desk.open(box={**desk.peer(tool("echo"), ignores=ignored), "connect_timeout": 8})

    assert desk.call("mcp-box:echo", a=1) == '{"tool": "echo", "arguments": {"a": 1}}'
    assert servers.states["box"].listing is not None
    assert servers.states["box"].listing.legacy


def test_a_server_that_is_slow_to_start_is_still_known_for_what_it_is(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It is greeted in both ways before it has read a word.
    monkeypatch.setattr(sdk_compat, "_PING_AFTER_SECONDS", 0.05)
    monkeypatch.setattr(sdk_compat, "_PROBE_SECONDS", 0.2)
    servers = desk.open(sdk={"command": sys.executable, "args": [str(SDK), "stdio"]})

    listing = servers.states["sdk"].listing
    assert listing is not None
    assert not listing.legacy
    assert [entry["name"] for entry in listing.tools] == ["ask", "think"]
