"""What a person sees: in a narrow window, with and without colour, when asked something."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import unicodedata
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import HERMES, approve_plugins

from hermes.interfaces.cli.terminal import Terminal, _line
from hermes.interfaces.cli.terminal import columns as _columns
from hermes.interfaces.cli.terminal import cut as _cut

if TYPE_CHECKING:
    from tests.conftest import CommandLine


def in_window(
    hermes: CommandLine, *words: str, columns: int = 80, typed: bytes = b"", **env: str
) -> tuple[int, str]:
    """Run a command in a terminal of that width; its exit code and what the window got.

    What is typed is typed when the person is asked.
    """
    main, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    run = subprocess.Popen(
        [str(HERMES), *words],
        stdin=inner,
        stdout=inner,
        stderr=inner,
        env=hermes.environment(TERM="xterm", **env),
        cwd=hermes.folder,
        start_new_session=True,
        close_fds=True,
    )
    os.close(inner)
    seen = b""
    while True:
        try:
            piece = os.read(main, 65_536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
        if typed and b"[N]o" in seen:
            os.write(main, typed)
            typed = b""
    os.close(main)
    return run.wait(60), seen.decode().replace("\r\n", "\n")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*[mK]", "", text)


def width(line: str) -> int:
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in line
    )


COMMANDS = [
    ["tools"],
    ["tools", "list", "--all"],
    ["tools", "show", "sleep"],
    ["tools", "show", "system_info"],
    ["tools", "search", "wait"],
    ["toolsets"],
    ["toolsets", "show", "safe"],
    ["config"],
    ["doctor"],
    ["--help"],
    ["tools", "--help"],
    ["call", "--help"],
    ["trust", "--help"],
    ["config", "set", "--help"],
]


@pytest.mark.parametrize("by", ["window", "variable"])
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_line_is_wider_than_a_narrow_window(
    hermes: CommandLine, words: list[str], by: str
) -> None:
    if by == "window":
        _, seen = in_window(hermes, *words, columns=40)
    else:
        _, seen = in_window(hermes, *words, columns=200, COLUMNS="40")

    wide = [line for line in plain(seen).split("\n") if width(line) > 40]
    # A path can't be cut and stay one.
    assert [line for line in wide if "/" not in line] == []
    assert seen.strip()


@pytest.mark.parametrize("columns", ["", "0", "wide", "-5", "1", "99999999999999999999"])
def test_any_width_is_taken(hermes: CommandLine, columns: str) -> None:
    done = hermes("tools", env={"COLUMNS": columns})

    assert (done.returncode, done.stderr) == (0, "")
    assert "sleep" in done.stdout or columns == "1"


def test_a_window_gets_colour_unless_it_is_not_wanted(hermes: CommandLine) -> None:
    _, coloured = in_window(hermes, "tools", "show", "sleep")
    _, unwanted = in_window(hermes, "tools", "show", "sleep", NO_COLOR="1")
    piped = hermes("tools", "show", "sleep").stdout

    assert "\x1b[1m" in coloured
    assert "\x1b" not in unwanted
    assert "\x1b" not in piped


def test_a_dumb_terminal_gets_no_colour(hermes: CommandLine) -> None:
    main, inner = pty.openpty()
    done = subprocess.run(
        [str(HERMES), "tools", "show", "sleep"],
        stdout=inner,
        stdin=inner,
        env=hermes.environment(TERM="dumb"),
        cwd=hermes.folder,
        timeout=60,
        check=True,
    )
    seen = os.read(main, 65_536)
    os.close(inner)
    os.close(main)

    assert done.returncode == 0
    assert b"\x1b" not in seen


@pytest.mark.parametrize(
    ("typed", "code"),
    [(b"y\n", 0), (b"yes\n", 0), (b"n\n", 3), (b"\n", 3), (b"maybe\n", 3), (b"\x04", 3)],
)
def test_a_person_is_asked_and_only_a_yes_is_a_yes(
    hermes: CommandLine, typed: bytes, code: int
) -> None:
    words = ("call", "env_manager", "action=set", "name=ACME", "value=a\x1b[2Jb")

    ended, seen = in_window(hermes, *words, typed=typed)

    assert ended == code, seen
    assert "env_manager" in seen
    assert "[N]o" in seen
    assert "\x1b[2J" not in seen
    assert "\\u001b[2J" in seen


def test_progress_is_shown_in_a_window_and_wiped(hermes: CommandLine) -> None:
    _, seen = in_window(hermes, "call", "sleep", "seconds=0.2")
    _, quiet = in_window(hermes, "call", "sleep", "seconds=0.2", "--quiet")

    assert "s left" in seen
    assert "s left" not in quiet
    assert hermes("call", "sleep", "seconds=0.2").stderr == ""


def test_a_tool_can_t_play_with_the_window(hermes: CommandLine) -> None:
    (hermes.home / "plugins").mkdir(parents=True)
    (hermes.home / "plugins" / "evil.py").write_text(
        "from hermes.tools import tool\n"
        "@tool(effect='read', description='\\x1b]0;title\\x07 evil')\n"
        "def evil() -> str:\n    return 'a\\x1b[2Jb\\r\\nc'\n"
    )
    approve_plugins(hermes.home)

    _, called = in_window(hermes, "call", "evil", "-q")
    _, listed = in_window(hermes, "tools")

    assert "\x1b[2J" not in called
    assert "a\\x1b[2Jb" in called
    assert "\x1b]0" not in listed


@given(st.text(max_size=60), st.integers(0, 70))
@settings(max_examples=200)
def test_a_cut_text_fits(text: str, room: int) -> None:
    line = _line(text)

    cut = _cut(line, room)

    assert _columns(cut) <= max(room, 0)
    assert "\n" not in line
    assert cut == line or room == 0 or cut.endswith("…")


def test_a_very_long_text_is_cut_at_once() -> None:
    assert _cut("é" * 3_000_000, 10) == "é" * 9 + "…"


def test_a_short_last_column_stays_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    paper = StringIO()

    Terminal(paper).table([("a-name-of-some-length", "$0.32"), ("b", "$12.00")])

    assert paper.getvalue().splitlines() == [
        "a-name-of-some-length  $0.32",
        "b                      $12.00",
    ]


def test_in_a_narrow_window_the_last_column_goes_on_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    paper = StringIO()
    said = "every one of these words can be read in a window like this"

    Terminal(paper).table([("a-name-of-some-length", said), ("b", "word " * 100)])

    lines = paper.getvalue().splitlines()
    assert " ".join(line.strip() for line in lines[1:4]) == said
    assert len(lines) == 8
    assert lines[-1].endswith("…")
    assert all(len(line) <= 30 for line in lines)
