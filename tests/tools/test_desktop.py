"""The clipboard and notifications, with real programs standing in for a desktop."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from hermes.core.entry import ToolCall
from hermes.core.registry import ToolRegistry
from hermes.runtime.app import App

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import CommandLine

    from hermes.core.entry import ToolOutcome
    from hermes.runtime.pipeline import Runtime


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    app = App(ToolRegistry())
    app.approver = lambda request: True
    yield app.runtime
    app.close()


@pytest.fixture
def desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs that a desktop has; empty at first."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setenv("BOARD", str(tmp_path / "board"))
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    return folder


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def clipboard(runtime: Runtime, **arguments: str) -> ToolOutcome:
    return runtime.call_sync(ToolCall("clipboard", arguments))


@pytest.fixture
def no_desktop(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_desktop")
def test_without_a_clipboard_the_task_has_one_and_says_so(runtime: Runtime) -> None:
    written = clipboard(runtime, action="write", text="héllo\n")
    read = clipboard(runtime, action="read")
    other = runtime.call_sync(
        ToolCall("clipboard", {"action": "read"}), runtime.context("another task")
    )
    clipboard(runtime, action="clear")
    cleared = clipboard(runtime, action="read")

    assert written.value["written_chars"] == 6
    assert "no clipboard" in written.value["notes"][0]
    assert read.value["text"] == "héllo\n"
    assert "this task only" in read.value["notes"][0]
    assert other.value["text"] == cleared.value["text"] == ""


def test_writing_needs_a_text(runtime: Runtime) -> None:
    assert clipboard(runtime, action="write").error == "write needs text"


XCLIP = """
case "$*" in
    *-o*) cat "$BOARD" ;;
    *) cat > "$BOARD"; sleep 30 & echo $! > "$BOARD.pid" ;;
esac
"""


def test_a_clipboard_program_that_stays_behind_is_not_waited_for(
    runtime: Runtime, desktop: Path, tmp_path: Path
) -> None:
    program(desktop, "xclip", XCLIP)

    written = clipboard(runtime, action="write", text="two\r\nlines é")
    os.kill(int((tmp_path / "board.pid").read_text()), 9)
    read = clipboard(runtime, action="read")

    assert written.value == {"written_chars": 12}
    assert (tmp_path / "board").read_bytes() == "two\r\nlines é".encode()
    assert read.value == {"text": "two\r\nlines é"}


def test_a_clipboard_with_other_bytes_can_be_read(
    runtime: Runtime, desktop: Path, tmp_path: Path
) -> None:
    program(desktop, "xclip", XCLIP)
    (tmp_path / "board").write_bytes(b"caf\xe9")

    assert clipboard(runtime, action="read").value == {"text": "caf\ufffd"}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'no display' >&2; exit 1", "xclip failed: no display"),
        ("exit 3", "xclip failed: exit code 3"),
    ],
)
def test_a_clipboard_program_that_fails_is_quoted(
    runtime: Runtime, desktop: Path, script: str, said: str
) -> None:
    program(desktop, "xclip", script)

    assert clipboard(runtime, action="read").error == said


def test_a_clipboard_program_that_hangs_is_stopped(
    runtime: Runtime, desktop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hermes.tools import desktop as module

    monkeypatch.setattr(module, "_SECONDS", 0.3)
    program(desktop, "xclip", "exec sleep 60")

    assert "did not answer" in str(clipboard(runtime, action="read").error)


def test_reading_asks_nobody_and_writing_does(registry: ToolRegistry) -> None:
    app = App(registry)

    read = app.runtime.call_sync(ToolCall("clipboard", {"action": "read"}))
    write = app.runtime.call_sync(ToolCall("clipboard", {"action": "write", "text": "x"}))
    app.close()

    assert write.status == "refused"
    assert read.status == "ok"


# -- notification --------------------------------------------------------------------------------


def notify(runtime: Runtime, **arguments: object) -> ToolOutcome:
    return runtime.call_sync(ToolCall("notification", arguments))


def test_a_desktop_shows_the_notification(runtime: Runtime, desktop: Path, tmp_path: Path) -> None:
    program(desktop, "notify-send", 'printf "%s|" "$@" > "$BOARD"')

    outcome = notify(runtime, message="--done; `rm`", title="-t", urgency="critical")

    assert outcome.value == {"shown": "desktop"}
    shown = (tmp_path / "board").read_text()
    assert shown.endswith("--urgency=critical|--|-t|--done; `rm`|")


def test_without_desktop_and_terminal_it_says_so(hermes: CommandLine) -> None:
    done = hermes("call", "notification", "message=hello", "--yes")

    assert done.returncode == 1
    assert "neither a desktop nor a terminal" in done.stdout
    assert done.stderr.count("\n") == 1


def test_a_terminal_gets_it_without_anything_that_moves_the_cursor(hermes: CommandLine) -> None:
    words = ["call", "notification", "message=hi\x1b[2J\nthere", "--yes", "-q"]
    program = (
        "import os, pty, sys\n"
        "os.environ['TERM'] = 'xterm'\n"
        "sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, sys.executable, "-m", "hermes", *words],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env=hermes.environment(),
        cwd=hermes.folder,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done
    assert b"\x1b]9;Hermes: hi[2J there\x07\x07" in done.stdout


def test_services_need_their_package_or_a_proper_url(runtime: Runtime) -> None:
    outcome = notify(runtime, message="x", urls=["nonsense://token-abcdef"])

    assert outcome.status == "error"
    assert "token-abcdef" not in outcome.content
    assert "apprise" in outcome.content or "number 1" in outcome.content
