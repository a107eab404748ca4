"""What is said to be kept apart is tried, on the real thing."""

from __future__ import annotations

import shutil
import threading
from typing import Any

import pytest
from tests.environments.servers import SshHost

from hermes.core.errors import ToolError
from hermes.environments.backends import BACKENDS, Backend, ready
from hermes.environments.environment import Environment, SharedSettings
from hermes.environments.isolation_test import probe_backend, probe_backends


def settings(**values: object) -> Any:
    given = {f"terminal.{name.replace('__', '.')}": value for name, value in values.items()}
    return lambda name, default: given.get(name, default)


def test_the_machine_itself_keeps_nothing_apart() -> None:
    report = probe_backend(BACKENDS["local"], settings(confine__mode="off"))

    assert report["works"]
    assert report["problems"] == []
    assert report["files"].startswith("open")
    assert report["network"].startswith("open")
    assert report["memory"] == "not limited"


def test_the_walls_of_the_sandbox_hold() -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")

    report = probe_backend(BACKENDS["sandbox"], settings())

    assert report["works"], report
    assert report["problems"] == []
    assert (report["files"], report["network"]) == ("kept apart", "none")
    assert report["processes"].startswith("kept apart")
    assert report["memory"] == "limited"


def test_a_wall_that_was_opened_is_seen() -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")

    report = probe_backend(BACKENDS["sandbox"], settings(sandbox__network=True))

    assert report["works"], report
    assert report["network"].startswith("open")
    assert report["problems"] == []


def test_the_walls_of_a_container_hold(engine: str) -> None:
    report = probe_backend(
        BACKENDS["docker"], settings(docker__image="hermes-testbox", docker__host=engine)
    )

    assert report["works"], report
    assert report["problems"] == []
    assert (report["files"], report["network"]) == ("kept apart", "none")
    assert report["processes"] == "kept apart, limited"
    assert report["memory"] == "limited"


def test_a_host_is_taken_as_it_is(ssh_host: SshHost) -> None:
    host = ssh_host.settings()
    given = {
        "ssh__host": host.host, "ssh__user": host.user, "ssh__port": host.port,
        "ssh__identity_file": host.identity_file, "ssh__known_hosts_file": host.known_hosts_file,
        "ssh__config_file": host.config_file,
    }  # fmt: skip

    report = probe_backend(BACKENDS["ssh"], settings(**given))

    assert report["works"], report
    assert report["files"].startswith("open")


def test_what_does_not_start_says_why() -> None:
    report = probe_backend(BACKENDS["docker"], settings(docker__host="unix:///nowhere.sock"))

    assert not report["works"]
    assert report["problem"]


def test_one_that_takes_too_long_does_not_keep_the_others() -> None:
    over = threading.Event()

    def slow(workspace: str, setting: object, shared: SharedSettings) -> Environment:
        over.wait(20)
        raise ToolError("too late")

    stuck = Backend("stuck", "", lambda: "", slow)

    first, second = probe_backends([stuck, BACKENDS["local"]], settings(), seconds=6)
    over.set()

    assert first["problem"] == "it gave no answer within 6 s"
    assert second["works"]


def test_what_can_not_be_guessed_or_costs_money_is_not_tried() -> None:
    free = Backend("modal", "", lambda: "", BACKENDS["modal"].make)

    assert "terminal.ssh.host" in ready(BACKENDS["ssh"], settings(), chosen=True)
    assert "money" in ready(free, settings(), chosen=False)
    assert ready(free, settings(), chosen=True) == ""
