"""A window that changes its size while something goes on, in terminals that differ."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.conftest import HERMES
from tests.interfaces.chat.conftest import Begin

from hermes.interfaces.chat.renderer import rewraps
from hermes.interfaces.chat.view import SPINNER
from hermes.testing import Call, ScriptedModel, Turn

WAIT = (
    "echo a line that is long enough to be broken in a narrow window; "
    "until [ -e go ]; do sleep 0.1; done"
)


class Tmux:
    """A window of tmux, which breaks its lines anew when it becomes narrower."""

    def __init__(self, socket: str, env: dict[str, str], folder: Path) -> None:
        self._socket = socket
        self._env = env
        # Below a shell: what tmux started itself it would wake as soon as it is stopped.
        line = f"{shlex.quote(str(HERMES))}; true"
        self._run("new-session", "-d", "-x", "80", "-y", "24", "-c", str(folder), "sh", "-c", line)

    def enter(self, text: str) -> None:
        """Type a line and press Enter."""
        self._run("send-keys", "-l", text)
        self._run("send-keys", "Enter")

    def resize(self, columns: int, rows: int) -> None:
        """Make the window larger or smaller, at a moment when nothing is being drawn.

        What is written before the program can know of the new size, and read by tmux after it has
        broken the lines, is drawn in the wrong row: no program can help that.
        """
        shell = psutil.Process(int(self._run("display-message", "-p", "#{pane_pid}")))
        (chat,) = shell.children()
        chat.suspend()
        before = ""
        while before != (before := self.text):
            time.sleep(0.1)
        self._run("resize-window", "-x", str(columns), "-y", str(rows))
        chat.resume()

    @property
    def text(self) -> str:
        """Everything that was and is on the screen."""
        return self._run("capture-pane", "-p", "-S", "-500")

    def until(self, found: Callable[[str], bool]) -> str:
        """Wait for a state of the screen; the screen then."""
        end = time.monotonic() + 20
        while not found(text := self.text):
            assert time.monotonic() < end, f"the screen is:\n{text}"
            time.sleep(0.1)
        return text

    def end(self) -> None:
        """End it and what runs in it."""
        self._run("kill-server")

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", "-L", self._socket, *words],
            env=self._env, capture_output=True, text=True, timeout=30, check=True,
        )  # fmt: skip
        return done.stdout


@pytest.fixture
def tmux(hermes: Any, model: ScriptedModel) -> Iterator[Tmux]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    env = hermes.environment(
        OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-x", HERMES_MODEL="gpt-4o", TMUX=None,
        TERM="xterm-256color",
    )  # fmt: skip
    window = Tmux(f"hermes-{uuid.uuid4().hex[:12]}", env, hermes.folder)
    yield window
    window.end()


def spinning(text: str) -> list[str]:
    """The lines about what goes on."""
    return [line for line in text.splitlines() if line[:1] in SPINNER and line]


def drawn(text: str) -> bool:
    """Whether what goes on is drawn as it should be: in one line, right above the input."""
    lines = text.rstrip().splitlines()
    return spinning(text) == lines[-2:-1] and lines[-1] == "❯" and lines[-2].endswith(" s")


def test_no_line_is_left_behind_and_none_is_lost(
    model: ScriptedModel, tmux: Tmux, hermes: Any
) -> None:
    words = "Every word of this answer has to be there when the window has changed its size."
    model.add(Turn(words, calls=[Call("terminal", {"command": WAIT})]), "All done.")

    tmux.until(lambda text: "❯" in text)
    tmux.enter("go on")
    tmux.until(lambda text: "a line that is long" in "".join(spinning(text)))
    for columns, rows in ((40, 24), (100, 20), (33, 14), (70, 30)):
        tmux.resize(columns, rows)
        text = tmux.until(drawn)
        assert "".join(words.split()) in "".join(text.split())
    (hermes.folder / "go").touch()
    text = tmux.until(lambda text: "All done." in text)

    assert spinning(text) == []
    assert text.count("❯ go on") == 1


def test_where_lines_stay_as_they_are_nothing_printed_is_taken_away(
    model: ScriptedModel, begin: Begin, hermes: Any
) -> None:
    model.add(Turn("A short answer.", calls=[Call("terminal", {"command": WAIT})]), "All done.")
    chat = begin()

    chat.enter("go on")
    chat.until(lambda text: "a line that is long" in "".join(spinning(text)))
    for columns in (60, 100, 45):
        chat.resize(columns, 30)
        chat.until(drawn)
    (hermes.folder / "go").touch()
    text = chat.until("All done.")

    assert spinning(text) == []
    assert text.count("❯ go on") == 1
    assert text.count("A short answer.") == 1


@pytest.mark.parametrize(
    ("env", "breaks"),
    [
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm-256color", "TMUX": "/tmp/x,1,0"}, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7200"}, True),
        ({"TERM": "xterm-256color", "SSH_CONNECTION": "a 1 b 2"}, True),
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "xterm", "XTERM_VERSION": "XTerm(390)", "VTE_VERSION": "7200"}, False),
        ({"TERM": "rxvt-unicode", "SSH_CONNECTION": "a 1 b 2"}, False),
        ({"TERM": "linux"}, False),
        ({}, False),
    ],
)
def test_what_a_terminal_does_is_known_by_its_signs(env: dict[str, str], breaks: bool) -> None:
    assert rewraps(env) is breaks
