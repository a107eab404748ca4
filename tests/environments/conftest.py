"""The real places that environments are tested against; what can't be had here is skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.environments.places import apptainer, some_apptainer, ssh_host

__all__ = ["apptainer", "engine", "some_apptainer", "ssh_host"]

IMAGE = "hermes-testbox"


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Docker engine of our own, with one small image (busybox) in it."""
    if os.getuid() or not all(map(shutil.which, ("dockerd", "docker", "busybox"))):
        pytest.skip("a Docker engine of one's own needs root, dockerd, docker and busybox")
    # Sockets have short names.
    root = tmp_path_factory.mktemp("engine")
    address = f"unix://{root}/d.sock"
    with open(root / "log", "wb") as log:
        daemon = subprocess.Popen(
            [
                "dockerd", "--data-root", root / "data", "--exec-root", root / "exec",
                "-H", address, "--pidfile", root / "pid", "--iptables=false",
                "--ip6tables=false", "--ip-forward=false", "--bridge=none",
                "--storage-driver=vfs", "--log-level", "warn",
            ],
            stdout=log,
            stderr=log,
        )  # fmt: skip
    try:
        _wait(address, daemon, root)
        _import(address, root)
        yield address
    finally:
        daemon.terminate()
        try:
            daemon.wait(20)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def _wait(address: str, daemon: subprocess.Popen[bytes], root: Path) -> None:
    until = time.monotonic() + 30
    while subprocess.run(["docker", "-H", address, "version"], capture_output=True).returncode:
        if daemon.poll() is not None or time.monotonic() > until:
            pytest.skip(f"dockerd does not start here: {(root / 'log').read_text()[-300:]}")
        time.sleep(0.2)


def packed_image(root: Path) -> bytes:
    """A small system (busybox), as an archive; `root` is a folder to make it in."""
    made = root / "rootfs"
    for name in ("bin", "tmp", "etc", "root", "dev", "proc", "sys", "var/tmp"):
        (made / name).mkdir(parents=True)
    (made / "tmp").chmod(0o1777)
    busybox = shutil.which("busybox")
    assert busybox is not None
    shutil.copy(busybox, made / "bin/busybox")
    for name in subprocess.check_output([busybox, "--list"], text=True).split():
        if name != "busybox":
            (made / "bin" / name).symlink_to("busybox")
    (made / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    packed = subprocess.run(["tar", "-C", made, "-c", "."], capture_output=True, check=True)
    return packed.stdout


def _import(address: str, root: Path) -> None:
    subprocess.run(
        ["docker", "-H", address, "import", "-c", "ENV PATH=/bin", "-", IMAGE],
        input=packed_image(root),
        capture_output=True,
        check=True,
    )
