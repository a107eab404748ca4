"""What all cloud sandboxes have in common, with a service that keeps its sandboxes in folders."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from hermes.core.context import Cancellation
from hermes.core.errors import ToolError
from hermes.environments.cloud import CloudEnvironment
from hermes.environments.cloud.provider import ProviderError

if TYPE_CHECKING:
    from pathlib import Path


class Folders:
    """A service whose sandboxes are folders here and whose commands are real."""

    name = "folders"

    def __init__(self, root: Path) -> None:
        self.root = root
        self.made: list[tuple[str, str]] = []
        self.snapshots: list[str] = []
        self.broken = ""
        self.home: Path | None = None

    def create(self, *, image: str, snapshot: str, seconds: float) -> None:
        self.made.append((image, snapshot))
        self.home = self.root / f"box{len(self.made)}"
        if snapshot:
            shutil.copytree(self.root / snapshot, self.home)
        else:
            self.home.mkdir()

    def run(self, command: str, *, seconds: float) -> str:
        assert self.home is not None
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        done = subprocess.run(
            ["sh", "-c", command], env=env, cwd=self.home, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds,
        )  # fmt: skip
        return done.stdout.decode("ascii")

    def snapshot(self) -> str:
        if self.broken:
            raise ProviderError(self.broken)
        assert self.home is not None
        name = f"snapshot{len(self.snapshots)}"
        shutil.copytree(self.home, self.root / name)
        self.snapshots.append(name)
        return name

    def destroy(self) -> None:
        self.home = None


class Clock:
    """A time that passes when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def service(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def made(service: Folders, clock: Clock | None = None, **options: object) -> CloudEnvironment:
    given: dict[str, object] = {"image": "one", "lifetime": 60.0, "persistent": False}
    return CloudEnvironment(service, clock=clock or Clock(), **{**given, **options})  # type: ignore[arg-type]


def test_streams_code_folder_and_variables_come_back(service: Folders) -> None:
    place = made(service)

    first = place.execute(
        "mkdir sub; cd sub; export A='x  y'; f() { echo fun; }; echo err >&2; exit 3", timeout=20
    )
    second = place.execute('basename $PWD; echo "$A"; f; cat', timeout=20, stdin=b"\xff\0in")
    place.cleanup()

    assert (first.exit_code, first.stdout, first.stderr) == (3, "", "err\n")
    assert second.stdout.startswith("sub\nx  y\nfun\n")
    assert second.cwd.endswith("/sub")


def test_a_folder_that_is_not_there_is_said_to_be(service: Folders) -> None:
    place = made(service)

    with pytest.raises(ToolError, match="no folder"):
        place.execute("true", timeout=20, cwd="/no/such/folder")


def test_files_keep_every_byte(service: Folders) -> None:
    place = made(service)
    place.execute("true", timeout=20)
    data = bytes(range(256)) * 600

    place.disk.write(f"{place.cwd}/it's", data)

    assert place.disk.read(f"{place.cwd}/it's") == data


def test_a_timeout_and_a_cancel_end_the_command(service: Folders) -> None:
    place = made(service)
    cancellation = Cancellation()
    threading.Timer(0.7, cancellation.cancel).start()

    cancelled = place.execute("echo a; sleep 91234", timeout=50, cancellation=cancellation)
    late = place.execute("echo b; sleep 91234", timeout=1)

    assert (cancelled.ended, cancelled.stdout) == ("cancelled", "a\n")
    assert (late.ended, late.exit_code, late.stdout) == ("timeout", 124, "b\n")


def test_near_its_end_the_result_warns_and_a_snapshot_is_taken(service: Folders) -> None:
    clock = Clock()
    place = made(service, clock)

    early = place.execute("echo work >file", timeout=20)
    clock.now += 49
    late = place.execute("true", timeout=20)

    assert early.notes == []
    assert service.snapshots == ["snapshot0"]
    assert "ends in 11 s; a snapshot was taken" in late.notes[0]


def test_after_its_end_the_work_goes_on_from_the_snapshot(service: Folders) -> None:
    clock = Clock()
    place = made(service, clock)
    place.execute("echo work >file", timeout=20)
    clock.now += 50
    place.execute("true", timeout=20)
    clock.now += 20

    result = place.execute("cat ~/file", timeout=20)

    assert result.stdout == "work\n"
    assert service.made == [("one", ""), ("one", "snapshot0")]
    assert "came to its end" in result.notes[0]


def test_a_snapshot_is_taken_while_a_command_runs_past_the_moment(service: Folders) -> None:
    place = CloudEnvironment(service, image="one", lifetime=5.0, persistent=False)

    place.execute("echo work >file; sleep 30", timeout=30)

    assert service.snapshots


def test_a_snapshot_that_fails_is_loud_and_the_old_one_is_kept(service: Folders) -> None:
    clock = Clock()
    place = made(service, clock)
    place.execute("echo old >file", timeout=20)
    clock.now += 50
    place.execute("true", timeout=20)
    service.broken = "no room"

    failed = place.execute("echo new >file", timeout=20)
    clock.now += 30
    after = place.execute("cat ~/file", timeout=20)

    assert "NOT SAVED" in failed.notes[0]
    assert "no room" in failed.notes[0]
    assert after.stdout == "old\n"


def test_another_image_means_a_new_sandbox_and_a_note(service: Folders) -> None:
    first = made(service, persistent=True)
    first.execute("echo work >file", timeout=20)
    first.cleanup()

    same = made(service).execute("cat ~/file", timeout=20)
    other = made(service, image="two").execute("ls ~", timeout=20)

    assert (same.stdout, same.notes) == ("work\n", [])
    assert other.stdout == ""
    assert "the image is two now and was one" in other.notes[0]
    assert service.made[-1] == ("two", "")


def test_what_is_not_offered_is_said(service: Folders) -> None:
    place = made(service)

    with pytest.raises(ToolError, match="listened to"):
        place.start("sleep 5")
    with pytest.raises(ToolError, match="no terminals"):
        place.execute("true", timeout=5, pty=True)
