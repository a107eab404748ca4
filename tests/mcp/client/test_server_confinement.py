"""The setting `confine` of MCP servers: whose process is confined, and that it really is."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path
from typing import Any

import pytest
from tests.environments.confinement.conftest import require

from hermes.mcp.client.server_process import ServerProcess, resolve_launch
from hermes.mcp.client.settings import Server

COMMAND = {"command": "sh", "args": ["-c", "readlink /proc/self/ns/pid; touch mark /etc/mcp-mark"]}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    require("bubblewrap")
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def confinement(project: Path, source: str = "config.yaml", **definition: Any) -> str:
    server = Server("s", {**COMMAND, **definition}, source)
    assert not server.problem, server.problem
    return resolve_launch(server, str(project)).confinement


def printed(launch: Any) -> str:
    process = ServerProcess(launch, "s")
    output = b""
    deadline = time.monotonic() + 20
    while not process.gone and time.monotonic() < deadline:
        select.select([process.output, process.status], [], [], 1)
        for file in (process.output,):
            try:
                output += os.read(file, 4096)
            except BlockingIOError:
                continue
        process.read_status()
    process.stop()
    process.close()
    return output.decode()


def test_a_server_of_the_persons_own_settings_keeps_its_rights(project: Path) -> None:
    assert confinement(project) == ""
    assert confinement(project, confine="off") == ""
    assert confinement(project, confine="on") == "bubblewrap"
    assert confinement(project, confine=True) == "bubblewrap"


def test_a_server_of_a_project_is_confined_whatever_it_says(project: Path) -> None:
    for confine in ("auto", "on", "off"):
        assert confinement(project, str(project / ".mcp.json"), confine=confine) == "bubblewrap"


def test_a_server_that_runs_a_file_of_the_project_is_confined(project: Path) -> None:
    (project / "server.py").write_text("")

    assert confinement(project, command="python3", args=["server.py"]) == "bubblewrap"
    assert confinement(project, command="python3", args=["other.py"]) == ""
    assert confinement(project, command="python3", args=["server.py"], confine="off") == ""


def test_switched_off_for_commands_it_is_off_for_servers(project: Path, tmp_path: Path) -> None:
    (tmp_path / "home" / "config.yaml").write_text("terminal: {confine: off}\n")

    assert confinement(project, str(project / ".mcp.json")) == ""
    assert confinement(project, confine="on") == "bubblewrap"


def test_an_unknown_value_is_a_problem() -> None:
    assert "confine must be" in Server("s", {**COMMAND, "confine": "some"}, "config.yaml").problem


def test_a_confined_process_has_the_limits(project: Path) -> None:
    ours = os.readlink("/proc/self/ns/pid")
    confined = resolve_launch(
        Server("s", {**COMMAND, "confine": "on"}, "config.yaml"), str(project)
    )

    inside = printed(confined)

    assert inside.startswith("pid:")
    assert ours not in inside
    assert (project / "mark").exists()
    assert not os.path.exists("/etc/mcp-mark")
    plain = {"command": "readlink", "args": ["/proc/self/ns/pid"]}
    assert ours in printed(resolve_launch(Server("s", plain, "config.yaml"), str(project)))
