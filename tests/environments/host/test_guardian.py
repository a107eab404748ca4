"""Nothing outlives Hermes, whatever ends it; nothing outlives its guardian for long."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hermes.environments.environment import SharedSettings
from hermes.environments.host import process_table
from hermes.environments.host.guardian_client import MARK, GuardianClient, guardian
from hermes.environments.host.host_environment import LocalEnvironment
from hermes.runtime.child_process import marked

PROGRAM = """
import sys
from hermes.environments.host.host_environment import LocalEnvironment
from hermes.environments.environment import SharedSettings
local = LocalEnvironment("/tmp", shared=SharedSettings(task=sys.argv[1]))
local.execute("for i in $(seq 20); do sleep 9999 & done", timeout=20)
local.execute("(setsid nohup env -i /bin/sleep {seconds} >/dev/null 2>&1 &)", timeout=20)
local.start("trap '' TERM HUP INT; while :; do sleep 9999; done")
kept = local.start("sleep 9999", name="kept")
if "detach" in sys.argv:
    kept.detach()
print(local._task, kept.pid, flush=True)
{end}
"""


def begin(end: str, *words: str) -> tuple[subprocess.Popen[str], str, int, str]:
    seconds = str(40_000 + os.getpid() + int(time.time()) % 1000)
    program = PROGRAM.format(end=end, seconds=seconds)
    started = subprocess.Popen(
        [sys.executable, "-c", program, "owner", *words], stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    task, kept = started.stdout.readline().split()
    started.stdout.close()
    return started, task, int(kept), seconds


def left(task: str, seconds: str) -> list[int]:
    bare = subprocess.run(
        ["pgrep", "-f", f"^/bin/sleep {seconds}"], capture_output=True, text=True
    ).stdout.split()
    return [pid for pid in marked(MARK, task) if _runs(pid)] + [int(pid) for pid in bare]


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def settled(task: str, seconds: str, wanted: int) -> list[int]:
    until = time.monotonic() + 5
    while len(found := left(task, seconds)) > wanted and time.monotonic() < until:
        time.sleep(0.05)
    return found


@pytest.mark.parametrize(
    "end",
    ["import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "pass", "raise SystemExit(3)"],
)
def test_nothing_is_left_when_the_program_ends(end: str) -> None:
    started, task, _, seconds = begin(end)
    started.wait()

    assert settled(task, seconds, 0) == []


def test_nothing_is_left_when_it_is_killed_in_the_middle_of_a_command() -> None:
    end = "local.execute('sleep 9999 & sleep 9999', timeout=None)"
    started, task, _, seconds = begin(end)
    time.sleep(0.3)
    assert len(left(task, seconds)) > 20
    started.send_signal(signal.SIGKILL)
    started.wait()

    assert settled(task, seconds, 0) == []


def test_what_was_detached_lives_on() -> None:
    started, task, kept, seconds = begin("pass", "detach")
    started.wait()
    found = settled(task, seconds, 1)
    os.kill(kept, signal.SIGKILL)

    assert found == [kept]


def test_a_forked_child_has_a_guardian_of_its_own(tmp_path: Path) -> None:
    local = LocalEnvironment(str(tmp_path))
    local.execute("true", timeout=10)
    before = guardian.pid
    child = os.fork()
    if not child:
        ok = local.execute("echo hi", timeout=10).stdout == "hi\n" and guardian.pid != before
        os._exit(0 if ok else 1)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert local.execute("echo hi", timeout=10).stdout == "hi\n"
    assert guardian.pid == before


def test_when_the_guardian_is_killed_the_next_command_has_another(tmp_path: Path) -> None:
    local = LocalEnvironment(str(tmp_path))
    beside = local.start("sleep 9998")
    killed = guardian.pid
    os.kill(killed, signal.SIGKILL)

    assert beside.wait(10)
    assert beside.state == "lost"
    until = time.monotonic() + 5
    while (_runs(beside.pid) or guardian.pid == killed) and time.monotonic() < until:
        time.sleep(0.02)
    assert not _runs(beside.pid)
    assert local.execute("echo hi", timeout=10).stdout == "hi\n"
    local.cleanup()


def test_a_command_whose_guardian_is_killed_says_so(tmp_path: Path) -> None:
    local = LocalEnvironment(str(tmp_path))
    local.execute("true", timeout=10)

    result = local.execute(f"sleep 0.2; kill -9 {guardian.pid}; sleep 9997", timeout=20)

    assert result.ended == "lost"
    until = time.monotonic() + 5
    while (
        left := [pid for pid in marked(MARK, local._task) if _runs(pid)]
    ) and time.monotonic() < until:
        time.sleep(0.02)
    assert left == []


def test_the_guardian_holds_no_variable_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "sparrow")
    own = GuardianClient()
    try:
        own._start()
        time.sleep(0.2)
        assert b"sparrow" not in Path(f"/proc/{own.pid}/environ").read_bytes()
    finally:
        own.close()


def test_ending_a_task_leaves_those_of_others_alone(tmp_path: Path) -> None:
    one, other = (
        LocalEnvironment(str(tmp_path), shared=SharedSettings(task="a")),
        LocalEnvironment(str(tmp_path), shared=SharedSettings(task="a")),
    )
    first, second = one.start("sleep 9996"), other.start("sleep 9996")

    one.cleanup()

    assert first.state == "killed"
    assert first.killed_by == "the end of the task"
    assert second.state == "running"
    other.cleanup()


HIDDEN = "setsid env -i sleep {seconds} </dev/null >/dev/null 2>&1 &"


def sleeping(seconds: str) -> list[int]:
    """The processes of this machine that sleep for so long."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if Path(f"/proc/{name}/cmdline").read_bytes() == f"sleep\0{seconds}\0".encode():
                found.append(int(name))
        except OSError:
            continue
    return [pid for pid in found if _runs(pid)]


def until_none(seconds: str) -> list[int]:
    until = time.monotonic() + 10
    while (found := sleeping(seconds)) and time.monotonic() < until:
        time.sleep(0.05)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux shows them")
def test_what_hides_is_found_when_the_guardian_is_killed(tmp_path: Path) -> None:
    seconds = str(10**7 + os.getpid())
    local = LocalEnvironment(str(tmp_path))
    local.execute(HIDDEN.format(seconds=seconds), timeout=10)
    until = time.monotonic() + 10
    while not sleeping(seconds) and time.monotonic() < until:
        time.sleep(0.02)
    assert sleeping(seconds)

    os.kill(guardian.pid, signal.SIGKILL)

    assert until_none(seconds) == []
    local.cleanup()


@pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux shows them")
def test_what_hides_from_both_that_are_killed_is_found_at_the_next_start() -> None:
    seconds = str(2 * 10**7 + os.getpid())
    program = (
        "import os, signal\n"
        "from hermes.environments.host.host_environment import LocalEnvironment\n"
        "from hermes.environments.host.guardian_client import guardian\n"
        "local = LocalEnvironment('/tmp')\n"
        f"local.execute({HIDDEN.format(seconds=seconds)!r}, timeout=10)\n"
        f"while os.system('pgrep -xf \"sleep {seconds}\" >/dev/null'): pass\n"
        "os.kill(guardian.pid, signal.SIGSTOP)\n"
        "pid = guardian.pid\n"
        "if not os.fork():\n"
        "    os.kill(os.getppid(), signal.SIGKILL)\n"
        "    os.kill(pid, signal.SIGKILL)\n"
        "    os._exit(0)\n"
        "signal.pause()\n"
    )
    words = [sys.executable, "-W", "ignore", "-c", program]
    ended = subprocess.run(words, check=False, timeout=60)
    next_one = GuardianClient()
    try:
        next_one.open()

        # It was there. Any guardian may have been the next one, that of another test too.
        assert ended.returncode == -signal.SIGKILL
        assert until_none(seconds) == []
    finally:
        next_one.close()


@pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux shows them")
def test_what_was_detached_is_not_swept(tmp_path: Path) -> None:
    local = LocalEnvironment(str(tmp_path))
    kept = local.start("sleep 9995")
    kept.detach()
    kept.pids()

    os.kill(guardian.pid, signal.SIGKILL)
    time.sleep(0.5)
    process_table.sweep()
    alive = _runs(kept.pid)
    os.kill(kept.pid, signal.SIGKILL)

    assert alive
