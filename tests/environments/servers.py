"""Servers of our own, for tests and benchmarks: sshd and dockerd, on this machine alone."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.environments.ssh import SshSettings

IMAGE = "hermes-testbox"


class MissingError(Exception):
    """A server can't be had here."""


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


@contextmanager
def ssh_server(folder: Path) -> Iterator[SshHost]:
    """A host to log in to; its home folder is empty."""
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if program is None or shutil.which("ssh") is None:
        raise MissingError("there is no sshd here")
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


@contextmanager
def docker_engine(root: Path) -> Iterator[str]:
    """The address of a Docker engine, with one small image (busybox) in it.

    `root` has a short name: sockets have.
    """
    if os.getuid() or not all(map(shutil.which, ("dockerd", "docker", "busybox"))):
        raise MissingError("a Docker engine of one's own needs root, dockerd, docker and busybox")
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
        _wait_for_engine(address, daemon, root)
        _import(address, root)
        yield address
    finally:
        daemon.terminate()
        try:
            daemon.wait(20)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def _wait_for_engine(address: str, daemon: subprocess.Popen[bytes], root: Path) -> None:
    until = time.monotonic() + 30
    while subprocess.run(["docker", "-H", address, "version"], capture_output=True).returncode:
        if daemon.poll() is not None or time.monotonic() > until:
            said = (root / "log").read_text()[-300:]
            raise MissingError(f"dockerd does not start here: {said}")
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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        if server.poll() is not None:
            raise MissingError("sshd does not start here")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise MissingError("sshd does not answer")
