"""Names of servers' tools, here and on the wire."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from hermes.core.registry import _check_name
from hermes.core.wire_names import is_server_name, tool_name, wire_name

SERVERS = st.from_regex(r"\A[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,38}[A-Za-z0-9])?\Z")


@given(SERVERS, st.text(min_size=1, max_size=300))
def test_every_name_fits_the_registry_and_every_model_api(server: str, tool: str) -> None:
    assert is_server_name(server)
    name = tool_name(server, tool)
    wired = wire_name(name)

    _check_name(name)
    _check_name(wired)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", wired)
    assert wire_name(wired) == wired


@given(SERVERS, st.lists(st.text(min_size=1, max_size=140), unique=True, max_size=8))
def test_different_tools_have_different_names(server: str, tools: list[str]) -> None:
    assert len({tool_name(server, tool) for tool in tools}) == len(tools)


def test_plain_names_stay_readable() -> None:
    assert tool_name("git", "git_status") == "mcp-git:git_status"
    assert wire_name("mcp-git:git_status") == "mcp-git__git_status"
    assert wire_name("read_file") == "read_file"
    assert len(wire_name("mcp-box:" + "x" * 90)) == 64
