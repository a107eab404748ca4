"""A command as it was asked for, and what can't be asked."""

from __future__ import annotations

import pytest

from hermes.core.errors import ToolError
from hermes.environments.command import MAX_TYPED, CommandRequest, stdin_bytes


@pytest.mark.parametrize("command", ["a\0b", "half \ud83d of a character"])
def test_what_no_program_can_be_given_is_refused(command: str) -> None:
    with pytest.raises(ToolError):
        CommandRequest(command).check()


@pytest.mark.parametrize("env", [{"": "x"}, {"a=b": "x"}, {"A": "\0"}, {"A\0": "x"}])
def test_what_can_not_be_a_variable_is_refused(env: dict[str, str]) -> None:
    with pytest.raises(ToolError, match="can't be a variable"):
        CommandRequest("true", env=env).check()


def test_a_shell_wants_names_that_a_program_need_not_have() -> None:
    order = CommandRequest("true", env={"a.b-c": "x"})

    order.check()
    with pytest.raises(ToolError, match="can't be a variable"):
        order.check_names()


def test_a_terminal_holds_no_more_than_so_much() -> None:
    assert CommandRequest("cat", stdin=b"x" * MAX_TYPED, pty=True).typed == b"x" * MAX_TYPED
    with pytest.raises(ToolError, match="no more than"):
        _ = CommandRequest("cat", stdin=b"x" * (MAX_TYPED + 1), pty=True).typed


def test_bytes_of_any_kind_can_be_read() -> None:
    assert stdin_bytes("ä\udcff") == "ä".encode() + b"\xff"
    assert stdin_bytes(b"\0") == b"\0"
    assert stdin_bytes(None) is None
