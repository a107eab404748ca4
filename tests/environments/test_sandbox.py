"""What the walls of the sandbox keep out, and what they let through."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes.core.errors import ConfigError
from hermes.environments.command import BackendError, CommandResult
from hermes.environments.sandbox import bwrap
from hermes.environments.sandbox.bwrap import check_workspace, parse_binds
from hermes.environments.sandbox.sandbox_environment import SandboxEnvironment

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="no bubblewrap here")

Make = Callable[..., SandboxEnvironment]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[SandboxEnvironment] = []

    def one(**options: object) -> SandboxEnvironment:
        folder = tmp_path / "work"
        folder.mkdir(exist_ok=True)
        made.append(SandboxEnvironment(str(folder), **options))  # type: ignore[arg-type]
        return made[-1]

    yield one
    for place in made:
        place.cleanup()


def run(place: SandboxEnvironment, command: str, timeout: float = 30) -> CommandResult:
    return place.execute(command, timeout=timeout)


# -- files -----------------------------------------------------------------------------------------


def test_secrets_outside_the_workspace_are_not_there(make: Make, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("token")
    place = make()

    result = run(
        place, f"cat {tmp_path}/secret ~root/.ssh/* /etc/shadow /etc/sudoers; ls /root/.ssh"
    )

    assert result.exit_code != 0
    assert result.stdout == ""
    assert "token" not in result.stdout


def test_only_the_workspace_can_be_written(make: Make, tmp_path: Path) -> None:
    place = make()

    result = run(place, "echo kept > file; touch /usr/x /etc/x /bin/x; echo $?")

    assert result.stdout == "1\n"
    assert (tmp_path / "work" / "file").read_text() == "kept\n"


def test_tmp_is_its_own_and_lasts_as_long_as_the_task(make: Make) -> None:
    place = make()
    run(place, "echo mine > /tmp/hermes-own")

    assert run(place, "cat /tmp/hermes-own").stdout == "mine\n"
    assert not os.path.exists("/tmp/hermes-own")


def test_sockets_of_this_machine_are_not_reached(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "engine.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        place = make()
        script = (
            f"import os, socket\nprint([os.path.exists(p) for p in ({str(path)!r}, "
            "'/var/run/docker.sock', '/run/docker.sock', '/run/dbus')])\n"
            "print(os.listdir('/run'))"
        )

        result = place.execute("python3 -", timeout=20, stdin=script)

    assert result.stdout == "[False, False, False, False]\n['hermes']\n"


def test_there_is_no_network_unless_it_was_switched_on(make: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"timeout 5 bash -c '</dev/tcp/127.0.0.1/{port}'"

        assert run(make(), connect).exit_code != 0
        assert run(make(network=True), connect).exit_code == 0


def test_another_user_without_any_right(make: Make) -> None:
    result = run(make(), "id -u; grep -E 'CapEff|NoNewPrivs' /proc/self/status")

    user, *rest = result.stdout.split()
    assert user != "0"
    assert rest == ["CapEff:", "0000000000000000", "NoNewPrivs:", "1"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_a_workspace_of_somebody_elses_is_worked_on_as_they(make: Make, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    os.chown(tmp_path / "work", 54_321, 54_321)

    result = run(make(), "id -u; id -G; echo x > file; cat /proc/self/status | grep CapEff")

    assert result.stdout == "54321\n54321\nCapEff:\t0000000000000000\n"
    assert (tmp_path / "work" / "file").stat().st_uid == 54_321


def test_processes_of_this_machine_are_not_seen(make: Make) -> None:
    result = run(make(), f"ls -d /proc/[0-9]* | wc -l; kill -0 {os.getpid()}")

    assert int(result.stdout) < 10
    assert result.exit_code != 0


# -- limits ----------------------------------------------------------------------------------------


def test_memory_is_limited(make: Make) -> None:
    place = make(memory=150_000_000)

    result = run(place, "python3 -c 'x = bytearray(400_000_000); print(len(x))'")

    assert result.exit_code != 0
    assert result.stdout == ""
    assert place.info().memory


def test_a_fork_bomb_stays_inside_and_ends(make: Make) -> None:
    place = make(pids=60)
    if "at most" not in place.info().processes:
        pytest.skip("the number of processes can't be limited here")

    run(place, "f() { f | f & }; f; sleep 1", timeout=5)

    assert run(place, "echo alive").stdout == "alive\n"


def test_many_commands_leave_no_zombie(make: Make) -> None:
    place = make()
    for _ in range(60):
        run(place, "true")

    assert int(run(place, "ls -d /proc/[0-9]* | wc -l").stdout) < 10


def test_what_is_enforced_is_said(make: Make) -> None:
    info = make().info()

    assert info.backend == "sandbox"
    assert all((info.files, info.network, info.processes, info.memory))


def test_nothing_is_left_after_cleanup(make: Make) -> None:
    place = make()
    run(place, "sleep 4017 & sleep 0.1")
    first = place._guardian.first
    folders = list(place._guardian.limits.folders) if place._guardian.limits else []

    place.cleanup()

    assert not os.path.exists(f"/proc/{first}")
    assert not any(map(os.path.exists, folders))


def test_cgroups_of_programs_that_are_gone_are_removed() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    parents = set(bwrap._groups().values())
    if not parents:
        pytest.skip("no cgroup can be made here")
    left = [os.path.join(parent, f"hermes-{gone.pid}-abc") for parent in parents]
    for folder in left:
        os.mkdir(folder)

    assert set(left) <= set(bwrap.prune())
    assert not any(map(os.path.exists, left))


def test_a_killed_sandbox_is_made_anew(make: Make) -> None:
    place = make()
    run(place, "true")
    os.kill(place._guardian.first, 9)

    results = [run(place, "echo again") for _ in range(2)]

    assert results[-1].stdout == "again\n"


def test_a_sandbox_outlives_the_thread_that_began_it(make: Make) -> None:
    place = make()
    thread = threading.Thread(target=lambda: run(place, "echo x > /tmp/first"))
    thread.start()
    thread.join()

    assert run(place, "cat /tmp/first").stdout == "x\n"


# -- what can't be -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["~", "/", "/home", "/usr", "/etc", "/tmp", "/nowhere"])
def test_homes_and_system_folders_are_no_workspace(path: str) -> None:
    with pytest.raises(ConfigError):
        check_workspace(os.path.expanduser(path))


def test_what_holds_a_home_is_no_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "me").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "me"))

    with pytest.raises(ConfigError, match="holds"):
        SandboxEnvironment(str(tmp_path))


def test_hermes_own_home_is_hidden_inside_the_workspace(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "work" / ".hermes"
    own.mkdir(parents=True)
    (own / "secrets").write_text("token")
    monkeypatch.setenv("HERMES_HOME", str(own))

    assert run(make(), "ls -A .hermes; cat .hermes/secrets").stdout == ""


def test_binds_are_as_configured_or_refused(make: Make, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_text("shared")
    place = make(binds=[f"{tmp_path}/data:/data"])

    result = run(place, "cat /data/file; touch /data/new || echo refused")

    assert result.stdout == "sharedrefused\n"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s.sock"))
        for bad in (f"{tmp_path}/none", "relative", f"{tmp_path}/s.sock", os.path.expanduser("~")):
            with pytest.raises(ConfigError):
                parse_binds([bad])


def test_a_sandbox_that_can_not_start_says_why(make: Make, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    place = make(binds=[f"{tmp_path}/data:/data"])
    (tmp_path / "data").rmdir()

    with pytest.raises(BackendError, match="data") as failure:
        run(place, "true")

    assert "bwrap" in (failure.value.hint or "")
