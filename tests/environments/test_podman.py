"""Podman's socket, which speaks as Docker's does, with the real Podman behind it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.environments.servers import IMAGE, packed_image

from hermes.environments.docker import DockerEnvironment, DockerSettings

# Podman wants to raise these, which may not be allowed; so they are said beforehand.
ULIMITS = ["--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"]


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of Podman's socket, with the small image behind it."""
    if os.getuid() or not all(map(shutil.which, ("podman", "runc", "docker", "busybox"))):
        pytest.skip("Podman's socket needs root, podman, runc, docker and busybox")
    root = tmp_path_factory.mktemp("podman")
    (root / "containers.conf").write_text(
        '[containers]\ndefault_ulimits = ["nofile=4096:4096","nproc=4096:4096"]\n'
        '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
    )
    (root / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    address = f"unix://{root}/p.sock"
    words = [
        "podman", "--root", str(root / "data"), "--runroot", str(root / "run"),
        "--storage-driver", "vfs", "--runtime", "runc",
        "system", "service", "--time=0", address,
    ]  # fmt: skip
    env = {**os.environ, "CONTAINERS_CONF": str(root / "containers.conf")}
    with open(root / "log", "wb") as log:
        service = subprocess.Popen(words, env=env, stdout=log, stderr=log)
    try:
        until = time.monotonic() + 30
        while subprocess.run(["docker", "-H", address, "version"], capture_output=True).returncode:
            if service.poll() is not None or time.monotonic() > until:
                pytest.skip(f"Podman does not start here: {(root / 'log').read_text()[-300:]}")
            time.sleep(0.2)
        done = subprocess.run(
            ["docker", "-H", address, "import", "-c", "ENV PATH=/bin", "-", IMAGE],
            input=packed_image(root), capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        yield address
    finally:
        service.terminate()
        service.wait(20)
        # Podman keeps the monitors of ended shells for five minutes, for whoever asks after them.
        for pid in monitors(root):
            os.kill(pid, signal.SIGKILL)


def monitors(root: Path) -> list[int]:
    """The processes of Podman's that work in a folder."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"conmon") and any(str(root).encode() in word for word in words):
            found.append(int(name))
    return found


@pytest.fixture
def place(podman: str, tmp_path: Path) -> Iterator[DockerEnvironment]:
    settings = DockerSettings(IMAGE, host=podman, extra=ULIMITS, memory=64 * 1024**2, pids=40)
    made = DockerEnvironment(str(tmp_path), settings)
    yield made
    made.cleanup()


def test_commands_files_and_state_are_as_with_docker(
    place: DockerEnvironment, tmp_path: Path
) -> None:
    first = place.execute(
        "mkdir sub; cd sub; export A=1; echo out; echo err >&2; exit 3", timeout=60
    )
    second = place.execute("basename $PWD; echo $A; echo data >file; id -u", timeout=60)

    assert (first.exit_code, first.stdout, first.stderr) == (3, "out\n", "err\n")
    assert second.stdout.split()[:2] == ["sub", "1"]
    assert second.stdout.split()[2] != "0"
    assert (tmp_path / "sub/file").read_text() == "data\n"


def test_its_walls_hold(place: DockerEnvironment) -> None:
    seen = place.execute(
        "grep CapEff /proc/self/status; wc -l </proc/net/route; ls /root | wc -l", timeout=60
    )
    full = place.execute("dd if=/dev/zero of=/dev/null bs=100M count=1", timeout=60)

    assert "0000000000000000" in seen.stdout
    assert seen.stdout.split()[2] == "1"
    assert full.exit_code == 137


def test_background_commands_end_with_the_task(place: DockerEnvironment, podman: str) -> None:
    one = place.start("echo up; sleep 1000")
    shown = one.wait(20, until=lambda: "up" in one.recent())

    place.cleanup()
    words = ["docker", "-H", podman, "ps", "--all", "--quiet"]
    left = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()

    assert shown
    assert left == []
