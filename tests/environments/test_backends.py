"""What every place where commands run has to do alike; each backend is met as it really is."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes.core.context import Cancellation
from hermes.core.errors import ToolError
from hermes.environments.command import CommandResult
from hermes.environments.docker import DockerEnvironment, DockerSettings
from hermes.environments.environment import Environment
from hermes.environments.host.host_environment import LocalEnvironment
from hermes.environments.sandbox.sandbox_environment import SandboxEnvironment
from hermes.environments.singularity import SingularityEnvironment, SingularitySettings
from hermes.environments.ssh import SshEnvironment

IMAGE = "hermes-testbox"
BACKENDS = ["local", "sandbox", "docker", "ssh", "singularity"]


def made(backend: str, folder: Path, request: pytest.FixtureRequest) -> Environment:
    """A backend's environment with its workspace in a folder."""
    if backend == "local":
        return LocalEnvironment(str(folder))
    if backend == "sandbox":
        if shutil.which("bwrap") is None:
            pytest.skip("bubblewrap is not installed")
        return SandboxEnvironment(str(folder))
    if backend == "ssh":
        ssh_host = request.getfixturevalue("ssh_host")
        return SshEnvironment(ssh_host.settings(), str(folder))
    if backend == "singularity":
        found = request.getfixturevalue("some_apptainer")
        settings = SingularitySettings(
            str(found.image), program=str(found.program), workspace=str(folder)
        )
        return SingularityEnvironment(settings)
    host = request.getfixturevalue("engine")
    return DockerEnvironment(str(folder), DockerSettings(IMAGE, host=host))


@pytest.fixture(scope="module", params=BACKENDS)
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Environment]:
    """One environment for all tests that leave it as it was."""
    place = made(request.param, tmp_path_factory.mktemp("work"), request)
    yield place
    place.cleanup()


@pytest.fixture
def place(shared: Environment) -> Iterator[Environment]:
    folder = shared.cwd
    yield shared
    shared.cwd = folder
    shared.env.clear()


def run(place: Environment, command: str, **options: object) -> CommandResult:
    options.setdefault("timeout", 30)
    return place.execute(command, **options)  # type: ignore[arg-type]


def eventually(holds: Callable[[], bool], seconds: float = 6.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if holds():
            return True
        time.sleep(0.05)
    return holds()


# -- what comes back -------------------------------------------------------------------------------


def test_streams_and_exit_code_come_back(place: Environment) -> None:
    result = run(place, "echo out; echo err >&2; exit 3")

    assert (result.exit_code, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert result.ended == "exited"


@pytest.mark.parametrize(("command", "code"), [("kill -9 $$", 137), ("nosuchcommand", 127)])
def test_signals_and_missing_programs_have_the_usual_codes(
    place: Environment, command: str, code: int
) -> None:
    assert run(place, command).exit_code == code


def test_odd_commands_reach_the_shell_unchanged(place: Environment) -> None:
    result = run(place, "printf '%s|' 'a  b' \"$(echo q)\" '$x' '\\n' 'ü€' \"it's\" '\x1e'")

    assert result.stdout.replace("\x1e", "") == "a  b|q|$x|\\n|ü€|it's||"


def test_a_command_may_be_long(place: Environment) -> None:
    lines = "a line of $text that 'is' \"kept\"\n" * 40_000

    result = run(place, f"wc -c <<'END'\n{lines}END\n", timeout=120)

    assert result.stdout.strip() == str(len(lines))


def test_what_is_given_to_read_is_read(place: Environment) -> None:
    data = bytes(range(1, 256)) * 2000

    assert run(place, "cat; exit 4", stdin="one\ntwo\n").stdout == "one\ntwo\n"
    assert run(place, "wc -c", stdin=data).stdout.strip() == str(len(data))


def test_nothing_to_read_is_the_end_and_no_wait(place: Environment) -> None:
    assert run(place, "cat", timeout=10).ended == "exited"


def test_much_output_is_bounded_and_counted(place: Environment) -> None:
    result = run(place, "head -c 5000000 /dev/zero | tr '\\0' x; echo end")

    assert result.output.total == 5_000_004
    assert result.truncated > 0
    assert result.stdout.endswith("end\n")
    if result.spill is not None:
        os.unlink(result.spill)


# -- what carries over -----------------------------------------------------------------------------


def test_folder_and_variables_carry_over(place: Environment) -> None:
    run(place, "mkdir -p sub && cd sub && export GREETING='hello  world'")

    result = run(place, 'pwd; echo "$GREETING"')

    folder = os.path.join(os.path.dirname(result.cwd), "sub")
    assert result.stdout == f"{folder}\nhello  world\n"


def test_a_folder_for_one_command_does_not_stick(place: Environment) -> None:
    before = run(place, "pwd").stdout

    assert run(place, "pwd", cwd="/").stdout == "/\n"
    assert run(place, "pwd").stdout == before


def test_a_folder_that_is_not_there_is_said_to_be(place: Environment) -> None:
    with pytest.raises(ToolError, match="no folder"):
        run(place, "pwd", cwd="/nowhere/at/all")


def test_a_folder_that_was_removed_is_left_for_the_one_above(place: Environment) -> None:
    above = place.cwd
    run(place, "mkdir -p gone/deep && cd gone/deep && rm -r ../../gone")

    result = run(place, "pwd")

    assert result.stdout == f"{above}\n"
    assert "is gone" in " ".join(result.notes)


def test_variables_of_one_call_and_those_taken_away(place: Environment) -> None:
    run(place, "export KEPT=1 LOST=1; unset LOST")

    assert run(place, 'echo "$KEPT$LOST$ONCE"', env={"ONCE": "x"}).stdout == "1x\n"
    assert run(place, 'echo "$ONCE"').stdout == "\n"


def test_a_shell_that_could_not_say_what_it_leaves_is_told_of(place: Environment) -> None:
    lost = run(place, "cd /; export LOST=1; exec true")
    kept = run(place, "cd /tmp; export KEPT=1; true")

    assert "as before" in " ".join(lost.notes)
    assert kept.notes == []
    assert run(place, 'echo "$LOST$KEPT"').stdout == "1\n"


@pytest.mark.parametrize("command", ["set -v", "set -xv", 'eval "echo \\"a"', "set -e; false"])
def test_nothing_of_our_own_script_is_seen(place: Environment, command: str) -> None:
    result = run(place, f"cd /tmp; {command}")

    assert "hermes" not in result.stdout + result.stderr
    assert result.cwd == "/tmp"


def test_no_secret_of_ours_is_seen(place: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden")

    assert "sk-hidden" not in run(place, "env; cat /proc/1/environ 2>/dev/null || true").stdout


# -- what ends -------------------------------------------------------------------------------------


def test_at_a_timeout_everything_it_started_is_gone(place: Environment) -> None:
    result = run(place, "(sleep 3017 & sleep 3018) & sleep 3019", timeout=1)

    assert result.ended == "timeout"
    assert result.exit_code == 124
    assert eventually(lambda: count(place, "sleep 301") == 0)


def test_the_end_of_one_command_is_not_the_end_of_the_next(place: Environment) -> None:
    stopped = run(place, "trap '' TERM; sleep 0.4; sleep 3021", timeout=0.3)
    after = run(place, "sleep 1.2; echo whole")
    deaf = run(place, "sleep 3022", timeout=0.3)
    again = run(place, "sleep 1.2; echo whole")

    assert (stopped.ended, deaf.ended) == ("timeout", "timeout")
    assert (after.exit_code, after.stdout) == (0, "whole\n")
    assert (again.exit_code, again.stdout) == (0, "whole\n")


def test_a_process_that_leaves_its_session_is_named_at_once(place: Environment) -> None:
    for command in (
        "setsid sleep 3101 >/dev/null 2>&1 &",
        "setsid -f sleep 3102 >/dev/null 2>&1 || setsid sleep 3102 >/dev/null 2>&1 &",
        "(setsid sleep 3103 & ) >/dev/null 2>&1",
    ):
        result = run(place, command)
        assert result.background is not None, command
        assert result.background_pids, command
        result.background.kill("the test")
        assert result.background.wait(10)

    assert eventually(lambda: count(place, "sleep 310") == 0)


def test_a_process_that_cleared_its_variables_is_known_all_the_same(place: Environment) -> None:
    for command in (
        "env -i sleep 3104 >/dev/null 2>&1 &",
        "export HERMES_COMMAND=another; sleep 3105 >/dev/null 2>&1 &",
    ):
        left = run(place, command).background
        assert left is not None, command
        assert not left.wait(1.5), command
        assert len(left.pids()) == 1, command
        left.kill("the test")
        assert left.wait(10)

    assert eventually(lambda: count(place, "sleep 310") == 0)


def test_what_is_left_running_began_when_its_command_did(place: Environment) -> None:
    left = run(place, "sleep 3106 >/dev/null 2>&1 & sleep 1").background
    ended = time.time()
    assert left is not None
    left.kill("the test")
    assert left.wait(10)

    assert left.started_at <= ended - 1


def test_everything_can_be_said_in_order(place: Environment) -> None:
    result = place.execute("cat; echo $A; pwd", 20, "/", {"A": "b"}, "in\n")

    assert result.stdout == "in\nb\n/\n"


def test_a_shell_can_be_opened_and_typed_into(place: Environment) -> None:
    shell = place.start('exec "${BASH:-sh}" -i', pty=True)
    shell.write(b"echo $((40 + 2))\n")
    answered = shell.wait(20, until=lambda: "\n42" in shell.recent().replace("\r", ""))
    shell.write(b"exit\n")

    assert answered, shell.recent()
    assert shell.wait(20)


def test_folders_travel_there_and_back(place: Environment, tmp_path: Path) -> None:
    (tmp_path / "sent/sub").mkdir(parents=True)
    (tmp_path / "sent/sub/file").write_bytes(b"\xff\0")

    first = place.upload(str(tmp_path / "sent"), "/tmp/hermes-there")
    again = place.upload(str(tmp_path / "sent"), "/tmp/hermes-there")
    place.download("/tmp/hermes-there", str(tmp_path / "back"))
    run(place, "rm -r /tmp/hermes-there")

    assert (first.files, again.files, again.unchanged) == (1, 0, 1)
    assert (tmp_path / "back/hermes-there/sub/file").read_bytes() == b"\xff\0"


def test_a_cancelled_command_ends(place: Environment) -> None:
    cancellation = Cancellation()
    threading.Timer(0.5, cancellation.cancel).start()

    result = run(place, "echo begun; sleep 3027", cancellation=cancellation)

    assert (result.ended, result.stdout) == ("cancelled", "begun\n")
    assert eventually(lambda: count(place, "sleep 3027") == 0)


def test_what_is_left_running_is_named_and_can_be_ended(place: Environment) -> None:
    result = run(place, "sleep 3037 & echo started", timeout=20)

    assert result.stdout == "started\n"
    assert result.background is not None
    assert result.background_pids
    result.background.kill("a test")
    assert result.background.wait(6)
    assert eventually(lambda: count(place, "sleep 3037") == 0)


def test_a_background_command_is_heard_written_to_and_ended(place: Environment) -> None:
    started = place.start("echo ready; read line; echo got $line; sleep 3047")

    assert started.wait(10, until=lambda: "ready" in started.recent())
    started.write(b"word\n")
    assert started.wait(10, until=lambda: "got word" in started.recent())
    assert started.pids()
    started.kill("a test")
    assert started.wait(6)
    assert started.state == "killed"


def test_processes_are_named_as_commands_name_them(place: Environment) -> None:
    started = place.start("echo $$; sleep 3050; echo")
    assert started.wait(10, until=lambda: "\n" in started.recent())

    number = int(started.recent().split()[0])

    assert started.pid == number
    assert number in started.pids()
    assert run(place, f"kill -0 {number} && echo alive").stdout == "alive\n"
    started.kill("a test")
    assert started.wait(6)


def test_a_terminal_can_be_answered(place: Environment) -> None:
    result = run(place, "printf 'name? '; read x; echo hello $x", pty=True, timeout=20)

    assert result.ended == "needs input"
    assert result.background is not None
    result.background.write(b"joe\n")
    assert result.background.wait(10)
    assert "hello joe" in result.background.recent()


def test_a_reader_that_asks_nothing_is_noticed_on_a_terminal(place: Environment) -> None:
    result = run(place, "head -n 1", pty=True, timeout=60)

    assert result.ended == "needs input"
    assert result.background is not None
    assert result.background.waits_for_input()
    result.background.write(b"joe\n")
    assert result.background.wait(10)
    assert result.background.recent() == "joe\njoe\n"


def test_the_keys_of_a_terminal_work(place: Environment) -> None:
    started = place.start("echo ready; sleep 3048; echo over", pty=True)
    assert started.wait(10, until=lambda: "ready" in started.recent())

    started.write(b"\x03")

    assert started.wait(10)
    assert "over" not in started.recent()
    said = run(place, "stty -a", pty=True).stdout.split()
    assert {"icanon", "isig", "echo", "onlcr", "^C;", "38400"} <= set(said)


def test_a_pipe_between_programs_is_no_question(place: Environment) -> None:
    started = place.start("echo ready; sleep 3049 | cat")
    assert started.wait(10, until=lambda: "ready" in started.recent() and len(started.pids()) > 1)

    assert not started.waits_for_input()

    started.kill("a test")
    assert started.wait(6)


def test_many_commands_at_once_do_not_mix(place: Environment) -> None:
    answers: dict[int, str] = {}

    def one(number: int) -> None:
        answers[number] = run(place, f"echo {number}; echo {number}").stdout

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == {number: f"{number}\n{number}\n" for number in range(8)}


# -- files -----------------------------------------------------------------------------------------


@pytest.fixture(params=["workspace", "elsewhere"])
def folder(place: Environment, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder for files: below the workspace, or where only the place itself has it."""
    top = place.cwd if request.param == "workspace" else "/tmp"
    if isinstance(place, LocalEnvironment):
        top = str(tmp_path)
    path = f"{top}/files-{os.urandom(4).hex()}"
    assert place.disk.make_folder(f"{path}/in") == [path, f"{path}/in"]
    return path


def test_bytes_survive_whatever_they_and_their_names_are(place: Environment, folder: str) -> None:
    data = bytes(range(256)) * 700
    name = f"{folder}/a b'\"$(x)\n*ü-"

    place.disk.write(name, data)
    place.disk.write(f"{folder}/-n", [b"in ", b"pieces"])

    assert place.disk.read(name) == data
    with place.disk.open(name) as file:
        assert file.read(10) == data[:10]
    found = place.disk.status(name)
    assert found is not None
    assert (found.kind, found.size) == ("file", len(data))
    assert {one.name for one in place.disk.scan(folder)} == {"in", os.path.basename(name), "-n"}


def test_commands_see_the_files_and_the_other_way_round(place: Environment, folder: str) -> None:
    place.disk.write(f"{folder}/ours", b"from outside\n")

    result = run(place, "cat ours; echo from inside > theirs", cwd=folder)

    assert (result.stdout, result.stderr) == ("from outside\n", "")
    assert place.disk.read(f"{folder}/theirs") == b"from inside\n"


def test_a_large_file_is_read_in_pieces(place: Environment, folder: str) -> None:
    data = os.urandom(1000) * 3000
    place.disk.write(f"{folder}/large", data)

    with place.disk.open(f"{folder}/large") as file:
        file.seek(2_500_000)
        rest = b""
        while piece := file.read(100_000):
            rest += piece

    assert rest == data[2_500_000:]


def test_a_replaced_file_keeps_its_mode(place: Environment, folder: str) -> None:
    place.disk.write(f"{folder}/script", b"old")
    place.disk.set_mode(f"{folder}/script", 0o750)

    place.disk.write(f"{folder}/script", b"new")

    found = place.disk.status(f"{folder}/script")
    assert found is not None
    assert found.mode == 0o750
    assert [one.name for one in place.disk.scan(folder) if "script" in one.name] == ["script"]


def test_links_are_described_and_not_followed(place: Environment, folder: str) -> None:
    disk = place.disk
    disk.write(f"{folder}/target", b"secret")
    disk.make_link(f"{folder}/link", "target")
    disk.make_link(f"{folder}/way", folder)

    found = disk.status(f"{folder}/link")

    assert found is not None
    assert found.kind == "link"
    assert disk.link_target(f"{folder}/link") == "target"
    with pytest.raises(ToolError):
        disk.read(f"{folder}/link")
    with pytest.raises(ToolError):
        disk.write(f"{folder}/link", b"x")
    with pytest.raises(ToolError):
        disk.read(f"{folder}/way/target")
    disk.remove(f"{folder}/link")
    assert disk.read(f"{folder}/target") == b"secret"


def test_failures_are_those_of_the_system(place: Environment, folder: str) -> None:
    disk = place.disk
    disk.write(f"{folder}/file", b"x")

    assert disk.status(f"{folder}/none") is None
    assert disk.status(f"{folder}/file/below") is None
    with pytest.raises(FileNotFoundError):
        disk.read(f"{folder}/none")
    with pytest.raises(FileNotFoundError):
        disk.write(f"{folder}/none/file", b"x")
    with pytest.raises(FileNotFoundError):
        disk.remove(f"{folder}/none")
    with pytest.raises(FileExistsError):
        disk.make_link(f"{folder}/file", "x")
    with pytest.raises(NotADirectoryError):
        list(disk.scan(f"{folder}/file"))
    with pytest.raises(ToolError):
        disk.read(f"{folder}/in")
    with pytest.raises(OSError, match="not empty"):
        disk.remove(folder)
    disk.remove(f"{folder}/in")
    assert disk.status(f"{folder}/in") is None


def test_info_says_what_is_enforced(place: Environment) -> None:
    info = place.info().as_dict()

    assert info["backend"] in BACKENDS
    assert set(info) == {"backend", "files", "network", "processes", "memory", "not_enforced"}


# -- the end of Hermes -----------------------------------------------------------------------------

PROGRAM = """
import sys, time
from hermes.environments.docker import DockerEnvironment, DockerSettings
from hermes.environments.host.host_environment import LocalEnvironment
from hermes.environments.sandbox.sandbox_environment import SandboxEnvironment

backend, folder, image, host, word = sys.argv[1:]
place = {
    "local": lambda: LocalEnvironment(folder),
    "sandbox": lambda: SandboxEnvironment(folder),
    "docker": lambda: DockerEnvironment(folder, DockerSettings(image, host=host)),
}[backend]()
place.execute(f"sleep {word} & echo", timeout=20)
place.start(f"sleep {word}")
print("running", flush=True)
place.execute(f"sleep {word}", timeout=200)
"""


# Ssh and singularity have one of their own.
@pytest.mark.parametrize("backend", ["local", "sandbox", "docker"])
def test_nothing_is_left_when_hermes_is_killed(
    backend: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    made(backend, tmp_path, request)
    host = request.getfixturevalue("engine") if backend == "docker" else ""
    word = str(40_000 + os.getpid())
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, backend, tmp_path, IMAGE, host, word],
        stdout=subprocess.PIPE,
    )
    request.addfinalizer(lambda: (program.kill(), program.wait(), program.stdout.close()))
    assert program.stdout is not None
    assert program.stdout.readline() == b"running\n"
    assert eventually(lambda: seen_here(f"sleep\0{word}") >= 3)

    program.send_signal(signal.SIGKILL)
    program.wait()

    assert eventually(lambda: seen_here(f"sleep\0{word}") == 0, 12)


def seen_here(words: str) -> int:
    """How many processes on this machine, containers included, have these words as a command."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", encoding="utf-8", errors="replace") as file:
                    count += file.read().startswith(words)
            except OSError:
                continue
    return count


def count(place: Environment, words: str) -> int:
    """How many processes a command there can see whose command begins with some words."""
    listed = run(
        place, "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f; echo; done 2>/dev/null"
    )
    return sum(line.startswith(words) for line in listed.stdout.splitlines())
