"""Real places for tests: an ssh server of our own on loopback, a container program."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.environments.ssh import SshSettings


class SshHost:
    """A running sshd: where it is, and how to log in."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self.home = folder / "home"

    def settings(self, **changes: object) -> SshSettings:
        """What it takes to log in there."""
        from hermes.environments.ssh import SshSettings

        given: dict[str, object] = {
            "user": pwd.getpwuid(os.getuid()).pw_name,
            "port": self.port,
            "identity_file": str(self.folder / "id"),
            "known_hosts_file": str(self.folder / "known_hosts"),
            "config_file": str(self.folder / "config"),
        }
        return SshSettings("127.0.0.1", **{**given, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def ssh_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHost]:
    """A host to log in to; its home folder is empty."""
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if program is None or shutil.which("ssh") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("there is no sshd here")
        pytest.skip("there is no sshd here")
    folder = tmp_path_factory.mktemp("sshd")
    for name in ("hostkey", "id"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(words, check=True)
    shutil.copy(folder / "id.pub", folder / "authorized_keys")
    host = SshHost(folder, _free_port())
    host.home.mkdir()
    (folder / "config").write_text("")
    key = " ".join((folder / "hostkey.pub").read_text().split()[:2])
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{host.port} {key}\n")
    (folder / "sshd_config").write_text(
        f"Port {host.port}\nListenAddress 127.0.0.1\nHostKey {folder}/hostkey\n"
        f"PidFile none\nAuthorizedKeysFile {folder}/authorized_keys\nPasswordAuthentication no\n"
        "KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nUsePAM no\n"
        f"StrictModes no\nMaxSessions 10\nMaxStartups 100\nSetEnv HOME={host.home}\n"
    )
    if os.getuid() == 0:
        # The daemon wants it, and only a service manager would make it.
        Path("/run/sshd").mkdir(exist_ok=True)
    words = [program, "-D", "-f", str(folder / "sshd_config"), "-E", str(folder / "log")]
    server = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    try:
        _wait_for(host.port, server)
        yield host
    finally:
        server.terminate()
        server.wait()


class Apptainer:
    """The program, or a stand-in for it, and an image that it can start."""

    def __init__(self, program: Path, image: Path, *, real: bool) -> None:
        self.program = program
        self.image = image
        self.real = real


@pytest.fixture(scope="session", params=["stand-in", "real"])
def apptainer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Apptainer:
    """Apptainer itself where `HERMES_TEST_APPTAINER` names it or it is installed; its stand-in."""
    return _apptainer(tmp_path_factory.mktemp("apptainer"), real=request.param == "real")


@pytest.fixture(scope="session")
def some_apptainer(tmp_path_factory: pytest.TempPathFactory) -> Apptainer:
    """The real one, or else its stand-in."""
    found = shutil.which(os.environ.get("HERMES_TEST_APPTAINER") or "apptainer")
    return _apptainer(tmp_path_factory.mktemp("apptainer"), real=found is not None)


def _apptainer(folder: Path, *, real: bool) -> Apptainer:
    if shutil.which("busybox") is None or shutil.which("bwrap") is None:
        pytest.skip("busybox and bwrap are needed")
    rootfs = folder / "rootfs"
    _busybox(rootfs)
    if not real:
        program = folder / "apptainer"
        shutil.copy(Path(__file__).with_name("apptainer_stand_in.py"), program)
        program.write_text(f"#!{sys.executable} -I\n{program.read_text()}")
        program.chmod(0o755)
        return Apptainer(program, rootfs, real=False)
    found = shutil.which(os.environ.get("HERMES_TEST_APPTAINER") or "apptainer")
    if found is None:
        pytest.skip("Apptainer is not installed; HERMES_TEST_APPTAINER may name it")
    words = [found, "build", "--sandbox", str(folder / "image"), str(rootfs)]
    subprocess.run(words, check=True, capture_output=True)
    return Apptainer(Path(found), folder / "image", real=True)


def _busybox(rootfs: Path) -> None:
    for name in ("bin", "tmp", "etc", "root", "dev", "proc", "sys", "var/tmp", "workspace"):
        (rootfs / name).mkdir(parents=True)
    (rootfs / "tmp").chmod(0o1777)
    busybox = shutil.which("busybox")
    assert busybox is not None
    shutil.copy(busybox, rootfs / "bin/busybox")
    for name in subprocess.check_output([busybox, "--list"], text=True).split():
        if name != "busybox":
            (rootfs / "bin" / name).symlink_to("busybox")
    (rootfs / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (rootfs / "etc/group").write_text("root:x:0:\n")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        if server.poll() is not None:
            pytest.skip("sshd does not start here")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail("sshd does not answer")
