"""The token of HTTP clients: found, made, and never where others can read it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes.core.errors import ConfigError, HermesError
from hermes.mcp.server.http_guard import VARIABLE, find_token, same, usual_file
from hermes.mcp.server.http_server import Address, bound

GOOD = "x" * 16


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def _private(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_one_is_made_where_there_is_none_and_used_from_then_on() -> None:
    made = find_token()
    again = find_token()

    assert made.made
    assert not again.made
    assert again.secret == made.secret
    assert os.stat(usual_file()).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(usual_file())).st_mode & 0o077 == 0


def test_a_named_file_comes_first_then_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "from-the-environment")

    assert find_token().secret == "from-the-environment"
    assert find_token(_private(tmp_path / "t", f"  {GOOD}\n")).secret == GOOD
    assert not os.path.exists(usual_file())


@pytest.mark.parametrize(
    "text", ["", "short", "x" * 15, "with a space in the middle", "ü" * 20, "x" * 5000]
)
def test_a_token_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="plain characters"):
        find_token(_private(tmp_path / "t", text))


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o666])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(ConfigError, match="others can read"):
        find_token(_private(tmp_path / "t", GOOD, mode))


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("missing", "pipe", "."):
        with pytest.raises(ConfigError):
            find_token(str(tmp_path / name))


def test_only_the_same_is_the_same() -> None:
    assert same(GOOD, GOOD.encode())
    for other in (b"", b"x" * 15, b"x" * 17, b"X" * 16, b"\xff" * 16):
        assert not same(GOOD, other)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:80", "127.0.0.1", 80),
        ("[::1]:8080", "::1", 8080),
        (":9000", "127.0.0.1", 9000),
        ("9000", "127.0.0.1", 9000),
        ("localhost:0", "localhost", 0),
        ("0.0.0.0:1", "0.0.0.0", 1),
    ],
)
def test_addresses_are_read(text: str, host: str, port: int) -> None:
    assert Address.read(text) == (host, port)


@pytest.mark.parametrize("text", ["", "host", "host:", "host:x", "host:70000", "host:-1", "host:٣"])
def test_what_is_no_address_is_said_to_be_none(text: str) -> None:
    with pytest.raises(HermesError, match="no HOST:PORT"):
        Address.read(text)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_other_machines_are_served_only_where_that_was_asked_for(host: str) -> None:
    with pytest.raises(HermesError, match="other machines"):
        bound(Address(host, 0), remote=False)

    for listener in bound(Address(host, 0), remote=True):
        listener.close()


def test_a_port_in_use_is_one_line() -> None:
    first = bound(Address("127.0.0.1", 0), remote=False)
    port = first[0].getsockname()[1]
    with pytest.raises(HermesError, match="can't be listened on"):
        bound(Address("127.0.0.1", port), remote=False)
    with pytest.raises(HermesError, match="is no host"):
        bound(Address("no.such.host.invalid", 1), remote=False)
    for listener in first:
        listener.close()
