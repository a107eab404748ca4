"""What all cloud sandboxes have in common, with a service that keeps its sandboxes in folders."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import pytest

from hermes.core.context import Cancellation
from hermes.core.errors import ToolError
from hermes.environments.cloud.cloud_environment import CloudEnvironment
from hermes.environments.cloud.provider import ListedSandbox, ProviderError, prune
from hermes.environments.environment import SharedSettings
from hermes.environments.host.process_listing import MACHINE, PID, labels

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


class Folders:
    """A service whose sandboxes are folders here and whose commands are real."""

    name = "folders"

    def __init__(self, root: Path) -> None:
        self.root = root
        self.made: list[tuple[str, str]] = []
        self.snapshots: list[str] = []
        self.broken = ""
        self.labels: dict[str, dict[str, str]] = {}
        self.home: Path | None = None
        self.path = os.environ["PATH"]

    def create(
        self, *, image: str, snapshot: str, seconds: float, labels: Mapping[str, str]
    ) -> None:
        self.labels[f"box{len(self.made) + 1}"] = dict(labels)
        self.made.append((image, snapshot))
        self.home = self.root / f"box{len(self.made)}"
        if snapshot:
            shutil.copytree(self.root / snapshot, self.home)
        else:
            self.home.mkdir()

    def run(self, command: str, *, seconds: float) -> str:
        assert self.home is not None
        env = {"PATH": self.path, "HOME": str(self.home)}
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
        if self.home is not None:
            del self.labels[self.home.name]
        self.home = None

    def sandboxes(self) -> list[ListedSandbox]:
        return [ListedSandbox(id_, labels) for id_, labels in self.labels.items()]

    def remove(self, id_: str) -> None:
        del self.labels[id_]


class Clock:
    """A time that passes when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Folders]:
    yield Folders(tmp_path)
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("HOME", "").startswith(f"{tmp_path}/box"):
                process.kill()


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


def test_a_question_on_a_terminal_can_be_answered(service: Folders) -> None:
    place = made(service)

    asked = place.execute("printf 'Your name? '; read x; test -t 0 && echo hi $x", 30, pty=True)
    assert asked.background is not None
    asked.background.write(b"word\n")
    ended = asked.background.wait(20)
    said = asked.background.recent()
    plain = place.execute("test -t 1 && exit 7", timeout=20, pty=True)
    typed = place.execute("read x; echo got $x", timeout=20, stdin="early\n", pty=True)
    place.cleanup()

    assert (asked.ended, asked.prompt) == ("needs input", "Your name?")
    assert ended
    assert "hi word" in said
    assert (plain.ended, plain.exit_code) == ("exited", 7)
    assert "got early" in typed.stdout


def test_what_is_too_much_to_type_is_refused_before_anything_runs(service: Folders) -> None:
    place = made(service)

    with pytest.raises(ToolError, match="takes no more than"):
        place.execute("sleep 60", timeout=20, pty=True, stdin="x" * 5000)
    running = place.processes()
    place.cleanup()

    assert list(running) == []


def test_where_no_terminal_can_be_had_one_line_says_so(service: Folders, tmp_path: Path) -> None:
    place = made(service)
    tools = tmp_path / "few"
    tools.mkdir()
    for name in (
        "sh",
        "bash",
        "cat",
        "grep",
        "mkdir",
        "mkfifo",
        "rm",
        "head",
        "wc",
        "tr",
        "base64",
        "mktemp",
        "sleep",
        "tail",
        "sed",
        "dd",
        "timeout",
        "mv",
        "readlink",
    ):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    service.path = str(tools)

    with pytest.raises(ToolError, match="neither script nor python3"):
        place.start("true", pty=True)


def test_what_is_printed_is_shown_meanwhile_and_nothing_twice(service: Folders) -> None:
    place = made(service)
    shown: list[tuple[float, str]] = []
    command = "echo one; echo two >&2; while [ ! -e go ]; do sleep 0.1; done; echo three"

    def show(text: str) -> None:
        shown.append((time.monotonic(), text))
        assert service.home is not None
        (service.home / "go").touch()

    result = place.execute(command, timeout=30, on_output=show)

    assert result.exit_code == 0
    assert sorted("".join(text for _, text in shown).split()) == ["one", "three", "two"]
    assert "three" not in shown[0][1]


def test_of_a_flood_the_end_is_shown(service: Folders) -> None:
    shown: list[str] = []

    result = made(service).execute("seq 20000", timeout=30, on_output=shown.append)

    assert result.output.total > 100_000
    assert shown[-1].endswith("20000\n")
    assert len("".join(shown)) < 20_000


def test_a_command_runs_beside_others(service: Folders) -> None:
    place = made(service)
    place.execute("mkdir sub; cd sub; export A='it is'", timeout=20)

    one = place.start('echo $A; basename "$PWD"; read x; echo got $x; exit 3', name="web")
    shown = one.wait(20, until=lambda: "sub" in one.recent())
    beside = place.execute("echo beside", timeout=20)
    one.write(b"word\n")
    ended = one.wait(20)
    text, start, total = one.log(0)
    page, _, _ = one.log(6, limit=3)
    place.cleanup()

    assert (shown, ended, beside.stdout) == (True, True, "beside\n")
    assert (text, start, total) == ("it is\nsub\ngot word\n", 0, 19)
    assert page == "sub"
    assert (one.state, one.exit_code, one.name) == ("exited", 3, "web")


def test_the_end_of_its_input_can_be_reached(service: Folders) -> None:
    place = made(service)

    counted = place.start("wc -c")
    counted.write(b"12345")
    counted.close_input()
    given = place.start("wc -c", stdin=b"123")

    assert counted.wait(20)
    assert given.wait(20)
    assert (counted.recent().strip(), given.recent().strip()) == ("5", "3")


def test_killing_ends_everything_that_was_started(service: Folders) -> None:
    place = made(service)
    one = place.start("sleep 91235 & sleep 91236")
    assert one.wait(20, until=lambda: len(one.pids()) >= 3)

    one.kill("the test")

    assert one.wait(20)
    assert (one.state, one.killed_by, one.pids()) == ("killed", "the test", [])


def test_what_a_command_leaves_running_is_the_task_s(service: Folders) -> None:
    place = made(service)

    result = place.execute("sleep 91237 & echo on", timeout=20)
    known = place.processes()
    known[0].kill("the test")

    assert result.stdout == "on\n"
    assert len(result.background_pids) == 1
    assert [one.left_behind for one in known] == [True]
    assert known[0].wait(20)
    assert place.execute("true", timeout=20).background is None


def test_ports_are_found(service: Folders) -> None:
    place = made(service)
    code = (
        "import socket,time; s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen(); time.sleep(99)"
    )
    one = place.start(f'python3 -c "{code}"')

    assert one.wait(20, until=lambda: bool(one.ports()))
    assert one.ports()[0].startswith("127.0.0.1:")
    one.kill("the test")


def test_a_taken_name_and_a_missing_folder_are_refused(service: Folders) -> None:
    place = made(service)
    one = place.start("sleep 91238", name="web")

    with pytest.raises(ToolError, match="runs already"):
        place.start("true", name="web")
    with pytest.raises(ToolError, match="no folder"):
        place.start("true", cwd="/no/such/folder")
    one.kill("the test")


def test_long_output_comes_back_in_pieces(service: Folders) -> None:
    place = made(service)
    command = "seq 1200000; echo last >&2"

    result = place.execute(command, timeout=60)
    place.disk.write(f"{place.cwd}/long", b"x" * 9_000_001)

    assert result.output.total == sum(len(str(n)) + 1 for n in range(1, 1_200_001)) + 5
    assert result.stdout.endswith("1200000\n")
    assert result.stderr.endswith("last\n")
    assert not any("did not come back" in note for note in result.notes)
    assert len(place.disk.read(f"{place.cwd}/long")) == 9_000_001
    if result.spill is not None:
        os.unlink(result.spill)


def test_an_idle_sandbox_is_saved_and_ended(service: Folders) -> None:
    place = made(service, persistent=True, lifetime=600.0, shared=SharedSettings(idle_seconds=0.2))
    place.execute("echo work >file", timeout=20)
    until = time.monotonic() + 10
    while service.home is not None and time.monotonic() < until:
        time.sleep(0.02)

    ended = service.home is None
    result = place.execute("cat ~/file", timeout=20)
    place.cleanup()

    assert ended
    assert result.stdout == "work\n"
    assert any("without use" in note for note in result.notes)


def test_sandboxes_of_a_hermes_that_is_gone_are_removed_and_no_others(service: Folders) -> None:
    place = made(service)
    ours = labels("t")
    service.labels = {
        "gone": {**ours, PID: "999999999"},
        "elsewhere": {**ours, PID: "999999999", MACHINE: "another"},
        "somebody's": {"kind": "theirs"},
    }

    place.execute("true", timeout=20)

    assert set(service.labels) == {"elsewhere", "somebody's", "box1"}
    assert prune(service) == []
    place.cleanup()
    assert set(service.labels) == {"elsewhere", "somebody's"}
