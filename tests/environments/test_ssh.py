"""Commands on another host, by a real sshd on loopback."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from hermes.core.context import Cancellation
from hermes.core.errors import ConfigError, ToolError
from hermes.environments.command import BackendError
from hermes.environments.ssh import SshEnvironment, SshSettings, socket_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.environments.servers import SshHost

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sshd is needed")


@pytest.fixture
def ssh(ssh_host: SshHost) -> Iterator[SshEnvironment]:
    """An environment on the host, closed at the end."""
    environment = SshEnvironment(ssh_host.settings())
    yield environment
    environment.cleanup()


def running(word: str) -> list[str]:
    """The command lines of live processes that hold a word."""
    found = subprocess.run(
        ["ps", "-wweo", "stat=,args="], capture_output=True, text=True, check=True
    )
    lines = [line for line in found.stdout.splitlines() if not line.startswith("Z")]
    return [line for line in lines if word in line]


def eventually(holds: Callable[[], bool], seconds: float = 8.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if holds():
            return True
        time.sleep(0.05)
    return holds()


def sleeping() -> str:
    """A length of sleep that nobody else uses."""
    return f"9{int.from_bytes(os.urandom(4)) % 10**8:08d}"


def test_both_streams_and_the_exit_code_come_back(ssh: SshEnvironment) -> None:
    result = ssh.execute("echo out; echo err >&2; exit 3", timeout=20)

    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    assert result.notes == []


def test_folder_variables_and_functions_carry_over(ssh: SshEnvironment, tmp_path: Path) -> None:
    ssh.execute(
        f'cd {tmp_path}; export GREETING="it\'s $((1+1))\nlines"; hi() {{ echo hello; }}',
        timeout=20,
    )

    result = ssh.execute('pwd; echo "$GREETING"; hi', timeout=20)

    assert result.stdout == f"{tmp_path}\nit's 2\nlines\nhello\n"
    assert result.cwd == str(tmp_path)


def test_a_process_that_nobody_owns_any_more_is_named_by_the_command_that_started_it(
    ssh: SshEnvironment,
) -> None:
    ssh.execute("true", timeout=20)
    for command in ("nohup setsid {} &", "nohup setsid {} >/dev/null 2>&1 </dev/null & disown",
                    "env -i {} &"):  # fmt: skip
        length = sleeping()
        result = ssh.execute(command.format(f"sleep {length}"), timeout=20)

        assert result.background is not None, command
        assert len(result.background_pids) == 1, command
        result.background.kill("the test")
        assert eventually(lambda length=length: not running(f"sleep {length}"))  # type: ignore[misc]


def test_nothing_escapes_the_end_of_the_task(ssh_host: SshHost) -> None:
    if shutil.which("prlimit") is None:
        pytest.skip("prlimit is not installed")
    ssh = SshEnvironment(ssh_host.settings())
    length = sleeping()
    ssh.execute(f"env -i setsid -f sleep {length}", timeout=20)
    other = sleeping()
    ssh.start(f"env -i setsid -f sleep {other}")
    there = eventually(lambda: bool(running(f"sleep {length}") and running(f"sleep {other}")))

    ssh.cleanup()

    assert there
    assert eventually(lambda: not running(f"sleep {length}") and not running(f"sleep {other}"))


def test_a_folder_for_one_command_does_not_stick(ssh: SshEnvironment, ssh_host: SshHost) -> None:
    there = ssh.execute("pwd", timeout=20, cwd="/usr")
    after = ssh.execute("(cd /etc); pwd", timeout=20)

    assert there.stdout == "/usr\n"
    assert after.stdout == f"{ssh_host.home}\n"
    with pytest.raises(ToolError, match="no folder"):
        ssh.execute("pwd", timeout=20, cwd="/there/is/none")


def test_a_folder_that_is_gone_falls_back_to_the_nearest(
    ssh: SshEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    ssh.execute(f"cd {tmp_path}/a/b", timeout=20)
    (tmp_path / "a" / "b").rmdir()
    (tmp_path / "a").rmdir()

    result = ssh.execute("pwd", timeout=20)

    assert result.stdout == f"{tmp_path}\n"
    assert "is gone" in result.notes[0]


def test_a_timeout_ends_everything_that_was_started(ssh: SshEnvironment) -> None:
    word = sleeping()

    result = ssh.execute(
        f"sleep {word} & (setsid sleep {word} &); trap '' TERM; echo here; sleep {word}; sleep {word}",
        timeout=1,
    )

    assert (result.ended, result.exit_code, result.stdout) == ("timeout", 124, "here\n")
    assert eventually(lambda: not running(word))
    assert ssh.execute("echo fine", timeout=20).stdout == "fine\n"


def test_a_cancel_ends_the_command(ssh: SshEnvironment) -> None:
    word = sleeping()
    cancellation = Cancellation()
    threading.Timer(0.5, cancellation.cancel).start()

    result = ssh.execute(f"sleep {word}", timeout=60, cancellation=cancellation)

    assert result.ended == "cancelled"
    assert eventually(lambda: not running(word))


def test_what_a_command_leaves_running_is_named_and_ends_with_the_task(
    ssh_host: SshHost,
) -> None:
    ssh = SshEnvironment(ssh_host.settings())
    word, other = sleeping(), sleeping()

    result = ssh.execute(f"sleep {word} & echo on", timeout=20)
    # One that leaves the shell's session as it starts is seen by the next command at the latest.
    ssh.execute(f"nohup setsid sleep {other} >/dev/null 2>&1 &", timeout=20)
    after = ssh.execute("echo next", timeout=20)
    listed = [one.state for one in ssh.processes()]
    alive = running(word) and running(other)
    ssh.cleanup()

    assert result.stdout == "on\n"
    assert result.background_pids
    assert after.stdout == "next\n"
    assert listed == ["running", "running"]
    assert alive
    assert eventually(lambda: not running(word) and not running(other))


def test_background_commands_take_input_and_can_be_killed(ssh: SshEnvironment) -> None:
    word = sleeping()
    talker = ssh.start('while read -r line; do echo "<$line>"; done; echo bye; exit 4')
    sleeper = ssh.start(f"sleep {word}", name="sleeper")

    talker.write(b"one\n")
    talker.wait(20, until=lambda: "<one>" in talker.recent())
    talker.close_input()
    ended = talker.wait(20)
    pids = sleeper.pids()
    sleeper.kill("the test")

    assert ended
    assert (talker.exit_code, talker.recent()) == (4, "<one>\nbye\n")
    assert sleeper.pid in pids
    assert (sleeper.state, sleeper.killed_by) == ("killed", "the test")
    assert not running(word)


def test_a_question_on_a_terminal_can_be_answered(ssh: SshEnvironment) -> None:
    result = ssh.execute("read -p 'Your name: ' x; echo \"hi $x\"", timeout=30, pty=True)

    assert result.ended == "needs input"
    assert result.prompt == "Your name:"
    assert result.background is not None
    result.background.write(b"Ada\n")
    assert result.background.wait(20)
    assert "hi Ada" in result.background.recent()


def test_input_and_files_keep_every_byte(ssh: SshEnvironment, tmp_path: Path) -> None:
    data = bytes(range(256)) * 1200
    place = f'{tmp_path}/it\'s a "name" with $signs\n.bin'

    ssh.disk.write(place, data)
    result = ssh.execute("sha256sum", timeout=30, stdin=data)
    small = ssh.execute("od -An -c", timeout=30, stdin="a'b\\n\n")

    import hashlib

    assert ssh.disk.read(place) == data
    assert [entry.name for entry in ssh.disk.scan(str(tmp_path))] == [os.path.basename(place)]
    assert result.stdout.split()[0] == hashlib.sha256(data).hexdigest()
    assert small.stdout.split() == ["a", "'", "b", "\\", "n", "\\n"]


def test_what_a_login_prints_is_no_part_of_any_output(ssh_host: SshHost) -> None:
    settings = ssh_host.home / ".bashrc"
    settings.write_text("echo welcome; echo careful >&2\n")
    ssh = SshEnvironment(ssh_host.settings())
    try:
        result = ssh.execute("echo out; echo err >&2", timeout=20)
        beside = ssh.start("echo beside")
        ended = beside.wait(20)
    finally:
        settings.unlink()
        ssh.cleanup()

    assert (result.stdout, result.stderr) == ("out\n", "err\n")
    assert ended
    assert beside.recent() == "beside\n"


def test_a_long_command_runs(ssh: SshEnvironment) -> None:
    result = ssh.execute(f": {'x' * 300_000}; echo done", timeout=30)

    assert result.stdout == "done\n"


def test_commands_of_one_task_run_side_by_side(ssh: SshEnvironment) -> None:
    answers: dict[int, str] = {}

    def run(number: int) -> None:
        answers[number] = ssh.execute(f"sleep 0.1; echo {number}", timeout=60).stdout

    threads = [threading.Thread(target=run, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == {number: f"{number}\n" for number in range(12)}


def test_a_dead_connection_is_made_anew_with_a_note(ssh: SshEnvironment) -> None:
    ssh.execute("export KEPT=yes; cd /usr", timeout=20)
    _cut(ssh)

    result = ssh.execute("echo $KEPT; pwd", timeout=20)

    assert result.stdout == "yes\n/usr\n"
    assert "made anew" in result.notes[0]
    assert ssh.execute("true", timeout=20).notes == []


def test_a_connection_lost_meanwhile_is_said_and_nothing_runs_twice(
    ssh: SshEnvironment, tmp_path: Path
) -> None:
    word = sleeping()
    ssh.execute("true", timeout=20)

    def cut() -> None:
        if eventually(lambda: running(word)):
            _cut(ssh)

    cutter = threading.Thread(target=cut)
    cutter.start()
    result = ssh.execute(f"echo once >>{tmp_path}/ran; sleep {word}", timeout=30)
    cutter.join()

    assert result.ended == "lost"
    assert (tmp_path / "ran").read_text() == "once\n"
    assert eventually(lambda: not running(word))
    assert ssh.execute("echo again", timeout=20).stdout == "again\n"


def test_what_ran_beside_on_a_dead_connection_is_lost_and_did_not_exit(
    ssh: SshEnvironment,
) -> None:
    beside = ssh.start("sleep 3051")
    left = ssh.execute("sleep 3052 & echo", timeout=20).background
    well = ssh.start("echo ready; read x; exit 255")
    assert left is not None
    assert well.wait(10, until=lambda: "ready" in well.recent())
    well.write(b"go\n")
    assert well.wait(10)

    _cut(ssh)

    assert beside.wait(10)
    assert left.wait(10)
    assert [(one.state, one.exit_code) for one in (beside, left)] == [("lost", None)] * 2
    assert (well.state, well.exit_code, well.recent()) == ("exited", 255, "ready\n")


def test_a_person_ends_here_what_runs_there(ssh: SshEnvironment) -> None:
    from hermes.environments.host.process_listing import list_processes, terminate

    word = sleeping()
    started = ssh.start(f"sleep {word}", name="far away")
    holding = [one for one in list_processes() if one.called == "far away"]

    assert [one.place for one in holding] == [ssh.label]
    assert terminate(holding) == []

    assert started.wait(10)
    assert (started.state, started.killed_by) == ("killed", "a person, with hermes ps kill")
    assert eventually(lambda: not running(word))


def _cut(ssh: SshEnvironment) -> None:
    """End the connection from the other side."""
    found = ssh.run_script("ps -o ppid= -p $PPID; ps -o ppid= -p $(ps -o ppid= -p $PPID)")[1]
    for pid in map(int, found.split()):
        with open(f"/proc/{pid}/cmdline") as file:
            if "@" in file.read():
                os.kill(pid, signal.SIGKILL)


def test_nothing_is_left_when_we_are_killed(ssh_host: SshHost) -> None:
    word = sleeping()
    settings = ssh_host.settings()
    program = (
        "import sys\nfrom hermes.environments.ssh import *\n"
        f"s = SshSettings('127.0.0.1', user={settings.user!r}, port={settings.port},"
        f" identity_file={settings.identity_file!r}, config_file={settings.config_file!r},"
        f" known_hosts_file={settings.known_hosts_file!r})\n"
        f"e = SshEnvironment(s)\ne.start('sleep {word}')\n"
        f"e.execute('setsid sleep {word} &', timeout=20)\nprint('up', flush=True)\n"
        f"e.execute('sleep {word}', timeout=100)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as ours:
        assert ours.stdout is not None
        begun = ours.stdout.readline()
        started = eventually(lambda: len(running(f"sleep {word}")) >= 3)
        ours.kill()

    assert begun == b"up\n"
    assert started
    assert eventually(lambda: not running(word))
    assert eventually(lambda: not [x for x in running(str(ssh_host.port)) if "ssh " in x])


def test_a_plain_connection_does_as_well(ssh_host: SshHost) -> None:
    ssh = SshEnvironment(ssh_host.settings(multiplex=False))

    result = ssh.execute("echo plain", timeout=30)
    ssh.cleanup()

    assert result.stdout == "plain\n"


def test_a_socket_that_is_gone_does_not_stop_new_shells(ssh: SshEnvironment) -> None:
    ssh.execute("true", timeout=20)
    ssh.transport.close()

    started = ssh.start("echo beside")

    assert started.wait(20)
    assert started.recent() == "beside\n"


@pytest.mark.parametrize("host", ["h" * 200, "fe80::1%" + "e" * 100, "a.b"])
def test_socket_names_are_short(host: str) -> None:
    assert len(socket_path(f"someone@{host}:22").encode()) <= 90


def test_socket_names_are_short_in_deep_folders_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/" + "deep/" * 40)

    assert len(socket_path("host").encode()) <= 90


def test_an_unknown_host_is_not_trusted(ssh_host: SshHost, tmp_path: Path) -> None:
    known = str(tmp_path / "known")
    with pytest.raises(BackendError, match="not known") as refused:
        SshEnvironment(ssh_host.settings(known_hosts_file=known)).execute("true", timeout=20)
    trusting = SshEnvironment(ssh_host.settings(known_hosts_file=known, accept_new_hosts=True))
    accepted = trusting.execute("echo in", timeout=20)
    trusting.cleanup()

    assert refused.value.hint is not None
    assert "accept_new_hosts" in refused.value.hint
    assert accepted.stdout == "in\n"


def test_a_refused_login_says_so_and_asks_for_no_password(
    ssh_host: SshHost, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)

    with pytest.raises(BackendError, match="refuses the login") as refused:
        SshEnvironment(ssh_host.settings(identity_file=str(other))).execute("true", timeout=20)

    assert refused.value.hint is not None
    assert "Passwords are not asked for" in refused.value.hint


def test_a_closed_port_is_one_error_with_the_check(ssh_host: SshHost) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        closed = probe.getsockname()[1]

    with pytest.raises(BackendError, match="nothing listens") as refused:
        SshEnvironment(ssh_host.settings(port=closed)).execute("true", timeout=20)

    assert refused.value.hint is not None
    assert f"ssh -o BatchMode=yes -p {closed}" in refused.value.hint


def test_a_host_that_says_nothing_is_given_up(ssh_host: SshHost) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        settings = ssh_host.settings(port=silent.getsockname()[1], start_seconds=2.0)

        with pytest.raises(BackendError, match=r"does not answer|no answer"):
            SshEnvironment(settings).execute("true", timeout=20)


@pytest.mark.parametrize("host", ["", "-oProxyCommand=touch /tmp/x", "a b", "a;b", "$(id)"])
def test_what_is_no_host_is_refused_before_anything_runs(host: str) -> None:
    with pytest.raises(ConfigError):
        SshSettings(host)


def test_unchanged_files_are_not_sent_again(ssh_host: SshHost, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    (ours / "deep").mkdir(parents=True)
    (ours / "a'b\\c.txt").write_bytes(b"one")
    (ours / "deep" / "run").write_bytes(b"#!/bin/sh\n")
    (ours / "deep" / "run").chmod(0o755)
    (ours / "link").symlink_to("deep/run")
    first = SshEnvironment(ssh_host.settings())
    sent = first.upload(str(ours), str(theirs))
    first.cleanup()

    second = SshEnvironment(ssh_host.settings())
    again = second.upload(str(ours), str(theirs))
    (ours / "a'b\\c.txt").write_bytes(b"two")
    changed = second.upload(str(ours), str(theirs))
    (theirs / "deep" / "run").write_bytes(b"spoilt")
    repaired = second.upload(str(ours), str(theirs))
    second.download(str(theirs), str(tmp_path / "back"))
    second.cleanup()

    assert sent == (3, 13, 0)
    assert again == (0, 0, 3)
    assert changed == (1, 3, 2)
    assert repaired == (1, 10, 2)
    assert (theirs / "deep" / "run").read_bytes() == b"#!/bin/sh\n"
    assert os.access(theirs / "deep" / "run", os.X_OK)
    assert os.readlink(theirs / "link") == "deep/run"
    assert (tmp_path / "back" / "theirs" / "a'b\\c.txt").read_bytes() == b"two"


def test_a_flood_is_held_within_bounds(ssh: SshEnvironment) -> None:
    result = ssh.execute("head -c 8000000 /dev/zero | tr '\\0' x; echo end", timeout=60)

    assert result.output.total == 8_000_004
    assert result.stdout.endswith("xend\n")
    assert result.truncated
