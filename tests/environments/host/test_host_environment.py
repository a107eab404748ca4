"""Commands on this machine: what they give back, what carries over, what never hangs."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hermes.core.context import Cancellation
from hermes.core.errors import ToolError
from hermes.environments.command import CommandResult
from hermes.environments.environment import SharedSettings
from hermes.environments.host.guardian_client import guardian
from hermes.environments.host.host_environment import LocalEnvironment


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalEnvironment]:
    made = LocalEnvironment(str(tmp_path))
    yield made
    made.cleanup()


def run(local: LocalEnvironment, command: str, **options: object) -> CommandResult:
    options.setdefault("timeout", 20)
    return local.execute(command, **options)  # type: ignore[arg-type]


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


# -- what comes back -------------------------------------------------------------------------------


def test_streams_and_exit_code_come_back(local: LocalEnvironment) -> None:
    result = run(local, "echo out; echo err >&2; exit 3")

    assert (result.exit_code, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert result.ended == "exited"
    assert result.cwd == local.cwd


@pytest.mark.parametrize(
    ("command", "code"),
    [("kill -9 $$", 137), ("kill -SEGV $$", 139), ("nosuchcommand", 127), ("/etc/passwd", 126)],
)
def test_signals_and_missing_programs_have_the_usual_codes(
    local: LocalEnvironment, command: str, code: int
) -> None:
    assert run(local, command).exit_code == code


def test_the_shell_counts_the_lines_of_the_command_alone(local: LocalEnvironment) -> None:
    assert "line 2: nosuch" in run(local, "cd .\nnosuch").stderr
    assert "line 2: nosuch" in run(local, "true\nnosuch").stderr


def test_a_command_longer_than_the_system_allows_runs(local: LocalEnvironment) -> None:
    assert run(local, f"printf %s {'x' * 300_000} | wc -c").stdout.strip() == "300000"


def test_text_to_read_is_read_to_its_end(local: LocalEnvironment) -> None:
    text = "línea\n" * 100_000

    assert run(local, "wc -l", stdin=text).stdout.strip() == "100000"
    assert run(local, "cat", stdin=b"\xff\x00x").stdout == "\\xff\x00x".replace("\x00", "")


def test_odd_characters_in_a_command_arrive(local: LocalEnvironment) -> None:
    assert run(local, "printf %s 'é🙂\t\"$`'").stdout == 'é🙂\t"$`'
    with pytest.raises(ToolError):
        run(local, "echo a\0b")
    with pytest.raises(ToolError):
        run(local, "echo \ud800")


# -- what carries over -----------------------------------------------------------------------------


def test_folder_variables_functions_and_aliases_stay(local: LocalEnvironment) -> None:
    run(local, "cd /usr; export A=$'x\\ny' ; f() { echo \"in f $1\"; }; alias hi='echo hi'")

    assert run(local, 'pwd; echo "$A"; f 1; hi').stdout == "/usr\nx\ny\nin f 1\nhi\n"
    assert local.cwd == "/usr"
    assert local.env["A"] == "x\ny"


def test_what_was_taken_away_stays_away(local: LocalEnvironment) -> None:
    run(local, "export A=1; f() { :; }")
    run(local, "unset A; unset -f f")

    assert run(local, "echo [$A]; type f").stdout == "[]\n"
    assert local.env["A"] is None


def test_a_subshell_leaves_nothing(local: LocalEnvironment) -> None:
    run(local, "(cd /usr; export A=1)")

    assert run(local, 'pwd; echo "[$A]"').stdout == f"{local.cwd}\n[]\n"


def test_a_folder_for_one_command_does_not_stick(local: LocalEnvironment, tmp_path: Path) -> None:
    assert run(local, "cd /etc; pwd", cwd="/usr").stdout == "/etc\n"
    assert run(local, "pwd").stdout == f"{tmp_path}\n"


def test_variables_for_one_command_do_not_stick(local: LocalEnvironment) -> None:
    assert run(local, "cd .; echo $B", env={"B": "2"}).stdout == "2\n"
    assert run(local, "echo [$B]").stdout == "[]\n"


def test_state_is_kept_however_the_shell_ends(local: LocalEnvironment) -> None:
    run(local, "cd /usr; exit 3")
    assert local.cwd == "/usr"
    run(local, "set -e; cd /etc; false; cd /")
    assert local.cwd == "/etc"
    run(local, "trap 'echo bye' EXIT; cd /var")
    assert local.cwd == "/var"


def test_options_of_one_command_do_not_reach_the_next(local: LocalEnvironment) -> None:
    run(local, "set -eux; cd .")

    result = run(local, "false; echo $nope on")

    assert (result.stdout, result.stderr) == ("on\n", "")


def test_a_deleted_folder_falls_back_to_the_nearest_above(
    local: LocalEnvironment, tmp_path: Path
) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    run(local, f"cd {deep}")
    shutil.rmtree(tmp_path / "a")

    result = run(local, "pwd")

    assert (result.exit_code, result.stdout) == (0, f"{tmp_path}\n")
    assert "gone" in result.notes[0]


def test_a_folder_that_is_not_there_is_an_error(local: LocalEnvironment) -> None:
    with pytest.raises(ToolError, match="no folder"):
        run(local, "pwd", cwd="nowhere")


def test_a_large_environment_is_carried_over(local: LocalEnvironment) -> None:
    run(local, 'for i in $(seq 40); do export "BIG_$i=$(printf %05000d $i)"; done')

    assert run(local, 'printf %s "$BIG_40" | wc -c').stdout.strip() == "5000"


# -- what never hangs ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", ["sleep 600 &", "nohup sleep 600 &", "setsid sleep 600 & disown", "(sleep 600 &)"]
)
def test_what_is_left_running_does_not_keep_the_call(local: LocalEnvironment, command: str) -> None:
    result = run(local, f"{command}\necho ready", timeout=15)

    assert result.ended == "exited"
    assert "ready" in result.stdout
    assert len(result.background_pids) == 1
    assert alive(result.background_pids[0])
    local.cleanup()
    assert not alive(result.background_pids[0])


def test_what_ends_at_once_is_not_called_left_running(local: LocalEnvironment) -> None:
    result = run(local, "sleep 0.02 & echo a > >(cat)")

    assert result.background_pids == ()
    assert result.stdout == "a\n"


def test_the_log_of_what_was_left_running_goes_on(local: LocalEnvironment) -> None:
    result = run(local, "(sleep 0.4; echo later; sleep 600) & echo now")
    kept = result.background

    assert kept is not None
    assert kept.wait(10, until=lambda: "later" in kept.log()[0])
    assert result.stdout == "now\n"


def test_a_timeout_ends_everything_that_was_started(
    local: LocalEnvironment, tmp_path: Path
) -> None:
    result = run(
        local,
        "echo begun; sleep 601 & setsid env -i /bin/sleep 602 & trap '' TERM; sleep 603; sleep 604",
        timeout=0.7,
    )

    assert result.timed_out
    assert result.exit_code == 124
    assert result.stdout == "begun\n"
    assert run(local, "pgrep -f '^(/bin/)?sleep 60[1234]'").stdout == ""
    assert run(local, "echo ok").stdout == "ok\n"


def test_cancelling_ends_a_command_and_keeps_what_it_said(local: LocalEnvironment) -> None:
    cancellation = Cancellation()
    threading.Timer(0.3, cancellation.cancel).start()

    result = run(local, "echo begun; sleep 605 & sleep 605", cancellation=cancellation)

    assert result.ended == "cancelled"
    assert result.stdout == "begun\n"
    assert run(local, "pgrep -f '^sleep 605'").stdout == ""


def test_one_cancelled_beforehand_ends_at_once(local: LocalEnvironment) -> None:
    cancellation = Cancellation()
    cancellation.cancel()

    assert run(local, "sleep 606", cancellation=cancellation).ended == "cancelled"


def test_a_stopped_process_is_ended_too(local: LocalEnvironment) -> None:
    result = run(local, "kill -STOP $$", timeout=0.4)

    assert result.timed_out


@pytest.mark.parametrize("command", ["read x", "cat", "python3 -c 'input()'", "git commit", "less"])
def test_nothing_waits_for_a_keyboard_that_is_not_there(
    local: LocalEnvironment, command: str
) -> None:
    assert run(local, command, timeout=15).ended == "exited"


def test_a_terminal_is_not_reachable(local: LocalEnvironment) -> None:
    assert run(local, "exec 3</dev/tty").exit_code != 0
    assert run(local, "tty").stdout == "not a tty\n"


def test_a_question_nobody_can_answer_ends_the_command(local: LocalEnvironment) -> None:
    result = run(local, "printf 'Really delete? [y/N] '; sleep 600", timeout=30)

    assert result.ended == "needs input"
    assert result.prompt == "Really delete? [y/N]"
    assert result.background is None


def test_a_question_in_a_terminal_can_be_answered(local: LocalEnvironment) -> None:
    result = run(local, "read -p 'Name? ' who; echo \"hello $who\"", pty=True, timeout=30)
    waiting = result.background

    assert result.ended == "needs input"
    assert result.prompt == "Name?"
    assert waiting is not None
    waiting.write(b"joe\n")
    assert waiting.wait(10)
    assert "hello joe" in waiting.log()[0]
    assert waiting.exit_code == 0


def test_a_terminal_is_one(local: LocalEnvironment) -> None:
    result = run(
        local, "tty; test -t 0 && test -t 1 && echo yes; : </dev/tty && echo own", pty=True
    )

    assert result.stdout.startswith("/dev/")
    assert result.stdout.endswith("yes\nown\n")


# -- output ----------------------------------------------------------------------------------------


def test_a_flood_is_kept_to_its_two_ends_and_a_file(local: LocalEnvironment) -> None:
    result = run(local, "seq 1 2000000", timeout=60)

    assert result.stdout.startswith("1\n2\n")
    assert result.stdout.endswith("1999999\n2000000\n")
    assert result.truncated > 10_000_000
    assert result.spill is not None
    assert Path(result.spill).stat().st_size == result.output.total
    os.unlink(result.spill)


def test_output_is_shown_while_it_comes(local: LocalEnvironment) -> None:
    shown: list[str] = []

    run(local, "echo 1; sleep 0.3; echo 2", on_output=shown.append)

    assert "".join(shown) == "1\n2\n"
    assert len(shown) == 2


def test_progress_bars_and_colours_are_cleaned(local: LocalEnvironment) -> None:
    result = run(local, "printf '10%%\\r50%%\\r100%%\\n\\033[31mred\\033[0m\\n'")

    assert result.stdout == "100%\nred\n"


# -- many ------------------------------------------------------------------------------------------


def test_many_commands_leave_no_zombie(local: LocalEnvironment) -> None:
    for _ in range(500):
        assert run(local, "true").exit_code == 0
    with ThreadPoolExecutor(8) as several:
        list(several.map(lambda _: run(local, "sleep 9 & sleep 9", timeout=0.01), range(50)))

    states = run(local, "ps -eo stat=,ppid= | grep ^Z").stdout.split()
    assert str(os.getpid()) not in states
    assert str(guardian.pid) not in states


def test_colours_stay_where_they_are_wanted(tmp_path: Path) -> None:
    local = LocalEnvironment(str(tmp_path), shared=SharedSettings(ansi=True))
    command = "printf '\\033[31mred\\033[0m\\r\\n'"

    result = run(local, command)
    beside = local.start(command)
    beside.wait(10)
    log = beside.log(0)[0]
    local.cleanup()

    assert result.stdout == "\x1b[31mred\x1b[0m\n"
    assert log == "\x1b[31mred\x1b[0m\n"


def test_commands_side_by_side_do_not_mix(tmp_path: Path) -> None:
    tasks = [
        LocalEnvironment(str(tmp_path), shared=SharedSettings(task=f"t{number}"))
        for number in range(8)
    ]
    wrong: list[str] = []

    def work(number: int) -> None:
        for turn in range(12):
            result = run(tasks[number], f"export N={number}; echo {number}-{turn}-$N; echo e >&2")
            if (result.stdout, result.stderr) != (f"{number}-{turn}-{number}\n", "e\n"):
                wrong.append(f"{result.stdout} {result.stderr} {result.ended}")

    threads = [threading.Thread(target=work, args=(number % 8,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for task in tasks:
        task.cleanup()

    assert wrong == []


def test_more_processes_than_allowed_are_stopped(local: LocalEnvironment) -> None:
    result = run(local, "for i in $(seq 110); do sleep 607 & done")

    assert any("stopped" in note for note in result.notes)
    assert result.background is not None
    assert result.background.wait(10)
    assert run(local, "pgrep -f '^sleep 607'").stdout == ""


def test_no_more_background_commands_than_allowed_are_started(local: LocalEnvironment) -> None:
    for _ in range(32):
        local.start("sleep 608")

    with pytest.raises(ToolError, match="32 commands"):
        local.start("sleep 608")


def test_what_is_not_isolated_is_said(local: LocalEnvironment) -> None:
    said = local.info().as_dict()

    assert said["backend"] == "local"
    assert said["files"] == "not isolated"
    assert "owned" in str(said["processes"])


def test_a_full_disk_is_mentioned(local: LocalEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    from hermes.environments.host import host_environment

    monkeypatch.setattr(host_environment, "_LOW_SPACE", 1 << 60)

    assert any("nearly full" in note for note in run(local, "true").notes)


def test_a_busy_background_is_mentioned(
    local: LocalEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hermes.environments.host import host_environment

    monkeypatch.setattr(host_environment, "BUSY_SECONDS", 0.2)
    monkeypatch.setattr(host_environment, "BUSY_SHARE", 0.05)
    local.start("while :; do :; done", name="busy")
    notes: list[str] = []
    until = time.monotonic() + 10
    while not notes and time.monotonic() < until:
        time.sleep(0.25)
        notes = run(local, "true").notes

    assert "busy" in notes[0]


def test_what_came_first_is_known(local: LocalEnvironment) -> None:
    assert (
        run(local, "echo e >&2; sleep 0.1; echo o; sleep 0.1; echo f >&2").output.merged
        == "e\no\nf\n"
    )
