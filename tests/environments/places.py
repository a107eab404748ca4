"""Real places for tests: an ssh server of our own on loopback, a container program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.environments.servers import MissingError, SshHost, ssh_server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def ssh_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHost]:
    """A host to log in to; its home folder is empty."""
    try:
        with ssh_server(tmp_path_factory.mktemp("sshd")) as host:
            yield host
    except MissingError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


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
