"""Containers as the engine has them: what is in them, what is not, and what is said when not."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.core.errors import ConfigError
from hermes.environments.command import BackendError
from hermes.environments.docker import (
    DockerEnvironment,
    DockerSettings,
    containers,
    explain_error,
    prune,
    run_arguments,
)
from hermes.environments.docker import engine as find_engine
from hermes.environments.host.process_listing import MACHINE, PID, STARTED, TASK

IMAGE = "hermes-testbox"
Make = Callable[..., DockerEnvironment]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def make(engine: str, work: Path) -> Iterator[Make]:
    made: list[DockerEnvironment] = []

    def one(image: str = IMAGE, **options: object) -> DockerEnvironment:
        settings = DockerSettings(image, **{"host": engine, **options})  # type: ignore[arg-type]
        made.append(DockerEnvironment(str(work), settings))
        return made[-1]

    yield one
    for place in made:
        place.cleanup()


def docker(engine: str, *words: str) -> str:
    return subprocess.check_output(["docker", "-H", engine, *words], text=True)


def inspected(engine: str, place: DockerEnvironment) -> dict[str, Any]:
    found: list[dict[str, Any]] = json.loads(docker(engine, "inspect", place._container.name))
    return found[0]


# -- the walls -------------------------------------------------------------------------------------


def test_the_container_has_no_more_than_it_needs(
    engine: str, make: Make, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden")
    place = make(pids=50, memory=64 << 20)
    place.execute("true", timeout=20)

    found = inspected(engine, place)
    host, config = found["HostConfig"], found["Config"]

    assert host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"]
    assert not host["Privileged"]
    assert "no-new-privileges" in host["SecurityOpt"]
    assert (host["PidsLimit"], host["Memory"], host["MemorySwap"]) == (50, 64 << 20, 64 << 20)
    assert host["NetworkMode"] == "none"
    assert config["User"].split(":")[0] not in ("", "0", "root")
    assert [mount["Source"] for mount in found["Mounts"] if mount["Type"] == "bind"] == [str(work)]
    assert "sk-hidden" not in json.dumps(found)
    assert ".sock" not in json.dumps(found["Mounts"])
    assert config["Labels"]["hermes.task"] == "main"
    assert config["Labels"]["hermes.pid"] == str(os.getpid())


def test_inside_there_are_no_rights_and_no_network(make: Make) -> None:
    result = make().execute(
        "id -u; grep -E 'CapEff|NoNewPrivs' /proc/self/status; ls /sys/class/net; echo x > /bin/x",
        timeout=20,
    )

    user, *rest = result.stdout.split()
    assert user != "0"
    assert rest == ["CapEff:", "0000000000000000", "NoNewPrivs:", "1", "lo"]
    assert result.exit_code != 0


def test_what_belongs_to_root_can_be_worked_on_and_private_files_stay_so(
    make: Make, work: Path
) -> None:
    (work / "file").write_text("old\n")
    (work / "key").write_text("private")
    (work / "key").chmod(0o600)

    result = make().execute("echo more >> file; mkdir new; echo x > new/y; cat key", timeout=20)

    assert (work / "file").read_text() == "old\nmore\n"
    assert (work / "new" / "y").read_text() == "x\n"
    assert "private" not in result.stdout
    assert (work / "key").stat().st_mode & 0o777 == 0o600


def test_a_read_only_image_leaves_the_workspace_and_tmp(make: Make, work: Path) -> None:
    result = make(read_only=True).execute("touch /var/x; touch a /tmp/b && echo ok", timeout=20)

    assert result.stdout == "ok\n"
    assert "Read-only" in result.stderr
    assert (work / "a").exists()


@pytest.mark.parametrize("path", ["/", "~", "/home", "/etc"])
def test_a_home_is_never_mounted(path: str) -> None:
    with pytest.raises(ConfigError):
        DockerEnvironment(os.path.expanduser(path), DockerSettings(IMAGE))


def test_a_socket_never_gets_inside(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "odd"))
        with pytest.raises(ConfigError, match="socket"):
            DockerSettings(IMAGE, volumes=[f"{tmp_path}/odd:/s"])
    for extra in (["-v", "/run/docker.sock:/s"], ["--privileged"], ["--pid", "host"]):
        with pytest.raises(ConfigError):
            DockerSettings(IMAGE, extra=extra)


# -- volumes ---------------------------------------------------------------------------------------


def test_volumes_and_arguments_are_exactly_as_configured(
    engine: str, make: Make, work: Path, tmp_path: Path
) -> None:
    for name in ("data", "a,b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    place = make(
        volumes=[f"{tmp_path}/data:/data:ro", f"{tmp_path}/a,b:{work}/sub"],
        extra=["--hostname", "box"],
    )

    result = place.execute("cat /data/file sub/file; hostname; touch /data/x", timeout=20)

    assert result.stdout == "dataa,bbox\n"
    assert "Read-only" in result.stderr
    mounts = {one["Destination"] for one in inspected(engine, place)["Mounts"]}
    assert {"/data", f"{work}/sub", str(work)} <= mounts


def test_a_volume_that_is_not_there_fails_before_anything_starts(tmp_path: Path) -> None:
    for bad in (f"{tmp_path}/none:/data", "/only", "relative:data", ""):
        with pytest.raises(ConfigError):
            DockerSettings(IMAGE, volumes=[bad])


def test_a_workspace_that_is_not_the_one_here_is_said_to_be_none(make: Make, work: Path) -> None:
    place = make(extra=["--tmpfs", "/elsewhere:mode=1777"])
    # An engine on another machine has another folder of that name.
    place.workspace = place.cwd = "/elsewhere"

    result = place.execute("echo x > file", timeout=20)

    assert "not persistent" in " ".join(result.notes)
    assert place.disk.read("/elsewhere/file") == b"x\n"
    assert not list(work.iterdir())
    assert place.execute("true", timeout=20).notes == []


# -- ends and causes -------------------------------------------------------------------------------


def test_out_of_memory_is_named(make: Make) -> None:
    result = make(memory=32 << 20).execute("dd if=/dev/zero of=/dev/null bs=200M", timeout=30)

    assert result.exit_code == 137
    assert "out of memory" in " ".join(result.notes)


def test_a_fork_bomb_stays_inside_and_ends(make: Make) -> None:
    place = make(pids=40)

    place.execute("f() { f | f & }; f; sleep 1", timeout=5)
    alive = _eventually(lambda: place.execute("echo alive", timeout=10).stdout == "alive\n")

    assert alive


def test_many_commands_leave_no_zombie(make: Make) -> None:
    place = make()
    for _ in range(40):
        place.execute("(true &)", timeout=20)

    listed = place.execute("cat /proc/[0-9]*/stat | grep -c ' Z '", timeout=20)

    assert int(listed.stdout) < 5


def test_a_container_that_was_removed_is_made_anew_and_that_is_said(
    engine: str, make: Make
) -> None:
    place = make()
    place.execute("cd /tmp; export KEPT=1", timeout=20)
    docker(engine, "rm", "-f", place._container.name)

    result = place.execute("echo $KEPT; pwd", timeout=30)

    assert result.stdout == "1\n/tmp\n"
    assert "a new one was started" in " ".join(result.notes)
    assert "files that were only there, are gone" in " ".join(result.notes)


def test_nothing_is_left_after_cleanup(engine: str, make: Make) -> None:
    place = make()
    place.execute("sleep 5017 & true", timeout=20)
    name = place._container.name

    place.cleanup()

    assert name not in docker(engine, "ps", "--all", "--format", "{{.Names}}")


def test_containers_whose_hermes_is_gone_are_removed_and_others_stay(
    engine: str, make: Make
) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    ours = make()
    ours.execute("true", timeout=20)
    mine = inspected(engine, ours)["Config"]["Labels"]
    labels = {**mine, PID: str(gone.pid), STARTED: "1", TASK: "old"}
    elsewhere = {**labels, MACHINE: "another machine", TASK: "far"}
    for one in (labels, elsewhere):
        words = [word for item in one.items() for word in ("--label", "=".join(item))]
        docker(engine, "run", "-d", "--network", "none", *words, IMAGE, "sleep", "600")
    program = find_engine(DockerSettings(IMAGE, host=engine))

    removed = prune(program)

    left = {one.task: one.id for one in containers(program)}
    docker(engine, "rm", "-f", left["far"])
    assert [one.task for one in removed] == ["old"]
    assert set(left) == {"main", "far"}


# -- what can't be started -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "cause", "check"),
    [
        ({"image": "nosuch:image"}, "the image nosuch:image is not here", "docker pull nosuch"),
        ({"host": "unix:///nowhere/d.sock"}, "the engine does not run", "docker info"),
        ({"host": "tcp://127.0.0.1:9"}, "the engine does not run", "docker info"),
        ({"network": "nosuch"}, "network", "docker network ls"),
        ({"extra": ["--no-such-flag"]}, "not known", "docker run --help"),
    ],
)
def test_what_keeps_it_from_starting_is_named_with_the_check(
    make: Make, options: dict[str, Any], cause: str, check: str
) -> None:
    with pytest.raises(BackendError, match=cause) as failure:
        make(**options).execute("true", timeout=20)

    assert check in (failure.value.hint or "")


def test_an_engine_that_says_nothing_is_given_up_on_in_time(work: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    held.append(server.accept()[0])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        host = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        place = DockerEnvironment(str(work), DockerSettings(IMAGE, host=host, start_seconds=1.0))

        with pytest.raises(BackendError, match="within 1 s"):
            place.execute("true", timeout=20)

        server.shutdown(socket.SHUT_RDWR)
        for one in held:
            one.close()
    place.cleanup()


def test_no_room_for_another_process_is_told_from_other_causes() -> None:
    said = "OCI runtime exec failed: exec failed: resource temporarily unavailable: unknown"

    error = explain_error(said, 126, program="docker", image="x", seconds=1)

    assert "another process" in str(error)
    assert "terminal.docker.pids" in (error.hint or "")


def test_names_with_commas_and_quotes_are_one_field() -> None:
    settings = DockerSettings(IMAGE)

    argv = run_arguments(settings, name="n", labels={}, workspace='/a,b"c', user="1:1")

    assert 'type=bind,"source=/a,b""c","target=/a,b""c"' in argv


def _eventually(holds: Callable[[], bool], seconds: float = 15.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if holds():
                return True
        except BackendError:
            pass
        time.sleep(0.1)
    return False


def test_what_was_granted_in_a_folder_of_root_s_is_taken_away_again(
    engine: str, tmp_path: Path
) -> None:
    if os.getuid():
        pytest.skip("only root's folders need it")
    folder = tmp_path / "ours"
    folder.mkdir(mode=0o750)
    (folder / "old").write_text("old")
    (folder / "old").chmod(0o640)
    place = DockerEnvironment(str(folder), DockerSettings(IMAGE, host=engine))
    try:
        made = place.execute("mkdir sub && echo new >sub/new && cat old && id -u", timeout=60)
        granted = os.listxattr(folder)
    finally:
        place.cleanup()

    assert (made.exit_code, made.stdout) == (0, "old61001\n")
    assert granted
    for path in (folder, *folder.rglob("*")):
        found = path.stat()
        assert (found.st_uid, os.listxattr(path)) == (0, []), path
    assert (folder.stat().st_mode & 0o777, (folder / "old").stat().st_mode & 0o777) == (
        0o750,
        0o640,
    )


def test_ports_inside_are_found(make: Make) -> None:
    place = make()
    one = place.start("nc -l -p 4567", name="server")

    found = one.wait(20, until=lambda: bool(one.ports()))

    assert found
    assert [port.rpartition(":")[2] for port in one.ports()] == ["4567"]
