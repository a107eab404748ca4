"""File tools on disks elsewhere: a relative path means what it means to commands there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.environments.servers import SshHost
from tests.tools.bench import Bench

from hermes.core.paths import is_below
from hermes.environments.environment import SharedSettings, moved
from hermes.runtime.app import App

Make = Callable[[str, dict[str, Any]], Bench]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """The tools of Hermes, with some settings, in a workspace of their own."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir(mode=0o700)
    work.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(home))
    monkeypatch.chdir(work)
    apps: list[App] = []

    def made(kind: str, settings: dict[str, Any]) -> Bench:
        whole = {"terminal": {"env_type": kind, kind: settings}}
        (home / "config.yaml").write_text(yaml.safe_dump(whole))
        apps.append(App())
        apps[0].approver = lambda request: True
        return Bench(apps[0], work)

    yield made
    for app in apps:
        app.close()


def worked_with(bench: Bench) -> None:
    """Every file tool by relative paths, and the shell beside them."""
    wrote = bench("write_file", path="sub/a.txt", content="one\ntwo\n")
    assert "error" not in wrote, wrote
    seen = bench("terminal", command="cat sub/a.txt; pwd")
    folder = seen["stdout"].splitlines()[-1]
    assert seen["stdout"] == f"one\ntwo\n{folder}\n"

    patched = bench("patch", path="sub/a.txt", old_string="two", new_string="three")
    assert "error" not in patched, patched
    assert bench("terminal", command="cat sub/a.txt")["stdout"] == "one\nthree\n"

    bench("terminal", command="echo needle > sub/b.txt; cd sub")
    assert "needle" in str(bench("read_file", path="sub/b.txt"))
    found = bench("search_files", pattern="needle", path=".")
    assert "sub/b.txt" in str(found), found
    assert "needle" in str(bench("read_file", path=f"{folder}/sub/b.txt"))


def test_paths_on_a_host_begin_where_commands_do(make: Make, ssh_host: SshHost) -> None:
    host = ssh_host.settings()
    (ssh_host.home / "project").mkdir(exist_ok=True)
    bench = make(
        "ssh",
        {
            "host": host.host, "user": host.user, "port": host.port, "cwd": "~/project",
            "identity_file": host.identity_file, "known_hosts_file": host.known_hosts_file,
            "config_file": host.config_file,
        },
    )  # fmt: skip

    worked_with(bench)

    # The gate takes the folder there for the workspace, by whose name it knows it.
    assert bench.context.cwd == str(bench.work / "sub")
    assert (ssh_host.home / "project/sub/a.txt").read_text() == "one\nthree\n"
    assert list(bench.work.iterdir()) == []


@pytest.mark.parametrize("mounted", [True, False])
def test_paths_in_a_container_begin_where_commands_do(
    make: Make, engine: str, mounted: bool
) -> None:
    settings: dict[str, Any] = {"image": "hermes-testbox", "host": engine}
    if not mounted:
        settings |= {"mount_workspace": False, "user": "0:0"}
    bench = make("docker", settings)

    worked_with(bench)

    assert (bench.work / "sub/a.txt").exists() == mounted


@pytest.mark.parametrize(
    ("place", "folder", "target", "wanted"),
    [
        ("/w/a", "/w", "/home/u", "/home/u/a"),
        ("/w", "/w", "/home/u", "/home/u"),
        ("/w/a/b", "/w/", "/", "/a/b"),
        ("/w", "/w", "/", "/"),
    ],
)
def test_a_place_is_moved(place: str, folder: str, target: str, wanted: str) -> None:
    assert is_below(place, folder)
    assert moved(place, folder, target) == wanted


def test_the_root_of_a_system_is_nobody_s_workspace() -> None:
    shared = SharedSettings(workspace="/w")

    assert shared.named("/home/u/a", "/home/u") == "/w/a"
    assert shared.named("/etc", "/home/u") == "/etc"
    assert shared.named("/etc", "/") == "/etc"
    assert SharedSettings().named("/home/u/a", "/home/u") == "/home/u/a"


@pytest.mark.parametrize(("place", "folder"), [("/ws/a", "/w"), ("/", "/w"), ("/w/a", "")])
def test_what_lies_elsewhere_is_not(place: str, folder: str) -> None:
    assert not is_below(place, folder)
