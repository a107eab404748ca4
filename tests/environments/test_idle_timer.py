"""What nobody uses is ended, what somebody uses is not, and the next command says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.environments.servers import SshHost

from hermes.environments.docker import DockerEnvironment, DockerSettings
from hermes.environments.environment import IdleTimer, SharedSettings
from hermes.environments.sandbox.sandbox_environment import SandboxEnvironment
from hermes.environments.ssh import SshEnvironment


def eventually(holds: Callable[[], bool], seconds: float = 15.0) -> bool:
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.02)
    return holds()


class Watched:
    """An `IdleTimer` with something to end."""

    def __init__(self, seconds: float) -> None:
        self.ended = threading.Event()
        self.beside = False
        self.idle = IdleTimer(seconds, busy=lambda: self.beside, release=self.ended.set)


def test_what_is_left_alone_is_ended_once() -> None:
    it = Watched(0.05)

    with it.idle:
        pass

    assert it.ended.wait(10)
    assert (it.idle.take_released(), it.idle.take_released()) == (True, False)


def test_what_is_in_use_is_not_ended() -> None:
    it = Watched(0.02)

    with it.idle:
        ended = it.ended.wait(0.3)

    assert not ended
    assert it.ended.wait(10)


def test_what_goes_on_beside_keeps_it_alive() -> None:
    it = Watched(0.02)
    it.beside = True

    with it.idle:
        pass
    ended = it.ended.wait(0.3)
    it.beside = False

    assert not ended
    assert it.ended.wait(10)


def test_nothing_is_ended_where_that_is_not_wanted_or_over() -> None:
    never, closed = Watched(0.0), Watched(0.05)

    with never.idle, closed.idle:
        closed.idle.close()

    assert not never.ended.wait(0.2)
    assert not closed.ended.is_set()


def test_an_idle_sandbox_is_ended_and_the_next_command_says_so(tmp_path: Path) -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    place = SandboxEnvironment(str(tmp_path), shared=SharedSettings(idle_seconds=0.3))
    try:
        place.execute("cd /tmp; export A=1; touch here; mkdir -p b", timeout=20)
        first = place._guardian.first

        assert eventually(lambda: not os.path.exists(f"/proc/{first}"))
        result = place.execute("pwd; echo $A; ls here", timeout=20)
    finally:
        place.cleanup()

    assert result.stdout == "/tmp\n1\n"
    assert "No such file" in result.stderr
    assert any("without use" in note for note in result.notes)


def test_an_idle_container_is_ended_unless_something_runs_in_it(
    engine: str, tmp_path: Path
) -> None:
    def containers() -> list[str]:
        words = ["docker", "-H", engine, "ps", "-q", "--filter", "label=hermes.task=idler"]
        return subprocess.check_output(words, text=True).split()

    settings = DockerSettings("hermes-testbox", host=engine)
    shared = SharedSettings(task="idler", idle_seconds=0.5)
    place = DockerEnvironment(str(tmp_path), settings, shared=shared)
    try:
        server = place.start("sleep 1000")
        time.sleep(1.2)
        kept = containers()
        server.kill("the test")
        server.wait(10)

        assert eventually(lambda: not containers())
        result = place.execute("echo again", timeout=60)
    finally:
        place.cleanup()

    assert len(kept) == 1
    assert result.stdout == "again\n"
    assert any("without use" in note for note in result.notes)


def test_an_idle_connection_is_made_again_without_a_word(ssh_host: SshHost) -> None:
    place = SshEnvironment(ssh_host.settings(), shared=SharedSettings(idle_seconds=0.3))
    try:
        place.execute("cd /usr", timeout=20)

        assert eventually(lambda: place._connection._guard is None)
        result = place.execute("pwd", timeout=20)
    finally:
        place.cleanup()

    assert (result.stdout, result.notes) == ("/usr\n", [])
