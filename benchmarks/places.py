"""What a command costs in the other places, warm: sandbox, container, host."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.environments.servers import IMAGE, MissingError, docker_engine, ssh_server

from benchmarks.measure import Row
from hermes.environments.docker import DockerEnvironment, DockerSettings
from hermes.environments.sandbox.sandbox_environment import SandboxEnvironment
from hermes.environments.ssh import SshEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes.environments.environment import Environment

_TIMES = 60


def rows() -> Iterator[Row]:
    """`true` in each of them; a place that can't be had here has no row."""
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root, "work")
        folder.mkdir()
        if shutil.which("bwrap"):
            by_hand = _least_ms(
                lambda: subprocess.run(["bash", "-c", "true"], capture_output=True, check=True)
            )
            ours = _true(SandboxEnvironment(str(folder)))
            yield Row("`true`, sandbox / bash -c true", ours / by_hand, "×", 3)
        try:
            with docker_engine(_made(root, "d")) as address:
                place = DockerEnvironment(str(folder), DockerSettings(IMAGE, host=address))
                yield Row("`true`, docker, warm", _true(place), "ms", 5)
            with ssh_server(_made(root, "s")) as host:
                there = SshEnvironment(host.settings(), str(folder))
                yield Row("`true`, ssh, warm", _true(there), "ms", 5)
        except MissingError as error:
            print(f"not measured: {error}")


def _made(root: str, name: str) -> Path:
    folder = Path(root, name)
    folder.mkdir()
    return folder


def _true(place: Environment) -> float:
    def once() -> None:
        assert place.execute("true", timeout=20).exit_code == 0

    try:
        once()
        return _least_ms(once)
    finally:
        place.cleanup()


def _least_ms(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(_TIMES):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best * 1000
