"""The command line as people meet it: what it says, to whom, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest
from tests.conftest import HERMES

from hermes.interfaces.cli.commands import COMMANDS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import CommandLine


def test_no_arguments_show_where_to_begin(hermes: CommandLine) -> None:
    done = hermes()

    assert (done.returncode, done.stderr) == (0, "")
    assert 5 <= done.stdout.count("\n") <= 12
    assert "hermes tools" in done.stdout


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version(hermes: CommandLine, option: str) -> None:
    done = hermes(option)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("hermes ")


def _all_commands() -> list[list[str]]:
    from argparse import _SubParsersAction

    from hermes.interfaces.cli.commands import add_arguments
    from hermes.interfaces.cli.main import Parser

    found: list[list[str]] = [[]]
    for name in COMMANDS:
        found.append([name])
        parser = Parser()
        add_arguments(name, parser)
        for action in parser._actions:
            if isinstance(action, _SubParsersAction):
                found += [[name, inner] for inner in action.choices]
    return found


@pytest.mark.parametrize("words", _all_commands(), ids=" ".join)
def test_help_is_everywhere(hermes: CommandLine, words: list[str]) -> None:
    done = hermes(*words, "--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: hermes")


# -- bad input -----------------------------------------------------------------------------------

BAD: dict[str, tuple[list[str], int, str]] = {
    "unknown command": (["frobnicate"], 2, "no command is called 'frobnicate'"),
    "typo": (["tols"], 2, "did you mean `tools`?"),
    "typo of another": (["docter"], 2, "did you mean `doctor`?"),
    "empty command": ([""], 2, "no command is called ''"),
    "odd command": (["a\nb"], 2, "no command is called"),
    "unknown option": (["--frobnicate"], 2, "try `hermes --help`"),
    "unknown action": (["tools", "lst"], 2, "lst"),
    "unknown option of an action": (["tools", "list", "--al\nx"], 2, "unrecognized"),
    "unknown tool to show": (["tools", "show", "slep"], 1, "Did you mean sleep?"),
    "no tool to show": (["tools", "show"], 2, "NAME"),
    "unknown toolset": (["toolsets", "show", "systm"], 1, "Did you mean system?"),
    "unknown toolset to list": (["tools", "list", "--toolset", "x y"], 1, "no toolset is called"),
    "no number": (["tools", "search", "x", "--limit", "many"], 2, "many"),
    "a number too small": (["tools", "search", "x", "--limit", "0"], 1, "at least 1"),
    "nothing found": (["tools", "search", "zzqxw"], 1, "nothing fits"),
    "unknown tool to call": (["call", "slep", "seconds=1"], 1, "Did you mean sleep?"),
    "nothing to call": (["call"], 2, "NAME"),
    "both ways to call": (["call", "sleep", "--json"], 2, "--json"),
    "no KEY=VALUE": (["call", "sleep", "1"], 2, "'1' is not KEY=VALUE"),
    "no key": (["call", "sleep", "=1"], 2, "is not KEY=VALUE"),
    "missing argument": (["call", "sleep"], 1, "seconds"),
    "wrong kind of argument": (["call", "sleep", "seconds=soon"], 1, "seconds"),
    "unknown argument": (["call", "sleep", "seconds=0", "colour=red"], 1, "colour"),
    "broken JSON": (["call", "sleep", '{"seconds": '], 1, "hermes:"),
    "missing file": (["call", "sleep", "seconds=@/no/such/file"], 1, "/no/such/file"),
    "folder for a file": (["call", "sleep", "seconds=@/"], 1, "can't be read"),
    "no JSON on stdin": (["call", "--json"], 1, "not JSON"),
    "refused": (["call", "env_manager", "action=set", "name=A", "value=1"], 3, "--yes"),
    "unknown setting": (
        ["config", "get", "tools.defer_abov"],
        1,
        "Did you mean tools.defer_above?",
    ),
    "unknown setting to set": (["config", "set", "colour", "red"], 1, "there is no setting"),
    "wrong kind of setting": (["config", "set", "tools.parallel", "many"], 1, "a whole number"),
    "no value": (["config", "set", "tools.parallel"], 2, "VALUE"),
    "untrusted place": (["trust", "/no/such/place"], 1, "does not exist"),
    "nothing to trust": (["trust"], 1, "does not exist"),
    "nothing to revoke": (["trust", "revoke"], 1, "revoke needs one path"),
    "never trusted": (["trust", "revoke", "/tmp"], 1, "was not trusted"),
    "two places": (["trust", "a", "b"], 1, "one path"),
    "unknown shell": (["completion", "tcsh"], 2, "tcsh"),
}


@pytest.mark.parametrize(("words", "code", "said"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_an_exit_code(
    hermes: CommandLine, words: list[str], code: int, said: str
) -> None:
    done = hermes(*words)

    assert done.returncode == code
    assert done.stderr.count("\n") == 1, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


CONFIGS: dict[str, bytes] = {
    "broken YAML": b"tools: [",
    "a list": b"- a\n- b\n",
    "a word": b"tools\n",
    "no text": b"\xff\xfe\x00",
    "wrong kind": b"plugins: {enabled: 7}\n",
    "a section that is none": b"plugins: true\ntools: {enabled_toolsets: system}\n",
    "control characters": b"tools: \x00\n",
    "an object of Python": b"tools: !!python/object:os.system x\n",
}


@pytest.mark.parametrize("content", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("words", [["config"], ["call", "sleep", "seconds=0"]], ids=" ".join)
def test_bad_settings_are_one_line_that_names_the_file(
    hermes: CommandLine, content: bytes, words: list[str]
) -> None:
    hermes.home.mkdir()
    (hermes.home / "config.yaml").write_bytes(content)

    done = hermes(*words)

    assert "Traceback" not in done.stderr
    if words == ["config"] or done.returncode:
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1, done.stderr
        assert "config.yaml" in done.stderr


@pytest.mark.parametrize("content", CONFIGS.values(), ids=CONFIGS)
def test_the_doctor_sees_patients_with_bad_settings(hermes: CommandLine, content: bytes) -> None:
    hermes.home.mkdir(mode=0o700)
    (hermes.home / "config.yaml").write_bytes(content)

    done = hermes("doctor")
    report = hermes("doctor", "--json")

    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.count("config.yaml") >= 1
    assert len(json.loads(report.stdout)["problems"]) == len(
        set(json.loads(report.stdout)["problems"])
    )


def test_a_setting_that_is_a_typo_is_found_by_the_doctor(hermes: CommandLine) -> None:
    hermes.home.mkdir(mode=0o700)
    (hermes.home / "config.yaml").write_text("tools: {defer_abov: 3}\n")

    done = hermes("doctor")

    assert done.returncode == 1
    assert "tools.defer_abov" in done.stdout
    assert "tools.defer_above" in done.stdout


def test_settings_that_may_not_be_read_are_one_line(hermes: CommandLine) -> None:
    (hermes.home / "config.yaml").mkdir(parents=True)

    done = hermes("config", "list")

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "config.yaml" in done.stderr


HOMES = ["/dev/null", "/dev/null/home", "/proc/nowhere/home"]


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize(
    "words",
    [
        ["tools"],
        ["toolsets"],
        ["plugins"],
        ["doctor"],
        ["config"],
        ["config", "set", "tools.parallel", "3"],
        ["call", "sleep", "seconds=0"],
        ["call", "env_manager", "action=set", "name=A", "value=1"],
        ["trust", "."],
        ["trust", "list"],
        ["tolls"],
    ],
    ids=" ".join,
)
def test_a_home_that_can_t_be_used_gives_no_traceback(
    hermes: CommandLine, home: str, words: list[str]
) -> None:
    done = hermes(*words, env={"HERMES_HOME": home})

    assert "Traceback" not in done.stderr
    # That the audit log can't be written is a line of its own.
    assert done.stderr.count("\n") <= 1 + (words[0] == "call"), done.stderr
    if words[0] == "doctor" or "set" in words:
        assert done.returncode != 0


def test_a_working_folder_that_is_gone_gives_no_traceback(hermes: CommandLine) -> None:
    gone = hermes.folder / "gone"
    gone.mkdir()
    script = f'rmdir "{gone}"; exec "{HERMES}" tools'

    done = subprocess.run(
        ["sh", "-c", script],
        cwd=gone,
        env=hermes.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") <= 1


# -- streams -------------------------------------------------------------------------------------


def test_answers_go_to_stdout_and_remarks_to_stderr(hermes: CommandLine) -> None:
    answer = hermes("toolsets")
    parsed = hermes("toolsets", "list", "--json")

    assert "tools that work here" in answer.stderr
    assert "tools that work here" not in answer.stdout
    assert parsed.stderr == ""
    assert json.loads(parsed.stdout)


@pytest.mark.parametrize(
    "words",
    [
        ["tools", "list", "--json"],
        ["tools", "list", "--all", "--json"],
        ["tools", "show", "sleep", "--json"],
        ["tools", "search", "wait", "--json"],
        ["toolsets", "list", "--json"],
        ["toolsets", "show", "system", "--json"],
        ["plugins", "list", "--json"],
        ["config", "list", "--json"],
        ["config", "get", "tools", "--json"],
        ["trust", "list", "--json"],
        ["doctor", "--json"],
    ],
    ids=" ".join,
)
def test_json_is_json_and_nothing_else(hermes: CommandLine, words: list[str]) -> None:
    done = hermes(*words)

    assert done.returncode == 0, done
    assert done.stderr == ""
    json.loads(done.stdout)


def run_in_shell(hermes: CommandLine, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f'hermes() {{ "{HERMES}" "$@"; }}; {script}'],
        env=hermes.environment(),
        cwd=hermes.folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "words",
    ["tools", "toolsets", "config", "doctor", "--help", "", "call system_info", "--version"],
)
def test_a_reader_that_has_seen_enough_is_no_trouble(hermes: CommandLine, words: str) -> None:
    done = run_in_shell(hermes, f"hermes {words} | true; exit ${{PIPESTATUS[0]}}")

    assert done.stderr.replace("tools that work here / tools declared\n", "") == ""


@pytest.mark.parametrize("words", ["tools", "--help", "call sleep seconds=0", "doctor"])
def test_a_full_disk_is_one_line_and_a_failure(hermes: CommandLine, words: str) -> None:
    done = run_in_shell(hermes, f"hermes {words} > /dev/full")

    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize(
    "script",
    [
        "hermes tools >&-",
        "hermes tools 2>&-",
        "hermes call sleep seconds=0 <&-",
        "hermes call --json <&-",
        "hermes tolls >&- 2>&-",
        "hermes call sleep seconds=0 <&- >&- 2>&-",
    ],
)
def test_missing_streams_are_no_trouble(hermes: CommandLine, script: str) -> None:
    done = run_in_shell(hermes, script)

    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_terminal_without_unicode_gets_escapes(hermes: CommandLine) -> None:
    done = hermes(env={"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})

    assert done.returncode == 0
    assert "\\u2026" in done.stdout


# -- stopping ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        (["call", "sleep", "seconds=60"], ""),
        (
            ["call", "--json"],
            '{"tool_calls": [{"function": {"name": "sleep", "arguments": {"seconds": 60}}}]}',
        ),
    ],
    ids=["one call", "protocol"],
)
def test_control_c_ends_at_once_with_130(hermes: CommandLine, words: list[str], stdin: str) -> None:
    run = subprocess.Popen(
        [str(HERMES), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=hermes.environment(),
        cwd=hermes.folder,
        text=True,
        start_new_session=True,
    )
    assert run.stdin is not None
    run.stdin.write(stdin)
    run.stdin.close()
    run.stdin = None
    wait_until_idle(run.pid)

    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=30)

    assert run.returncode == 130, (out, err)
    assert "Traceback" not in err
    assert err == "hermes: interrupted\n"
    assert not [p for p in psutil.process_iter() if in_session(p, run.pid)]


def in_session(process: psutil.Process, session: int) -> bool:
    try:
        return os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, psutil.Error):
        return False


def wait_until_idle(pid: int) -> None:
    """Wait until a program has started up and only waits: it uses no more time."""
    process = psutil.Process(pid)
    used = -1.0
    for _ in range(100):
        time.sleep(0.25)
        now = sum(process.cpu_times()[:2])
        if now == used and now > 0.05:
            return
        used = now
    raise AssertionError("it never came to rest")


# -- several at once -----------------------------------------------------------------------------


def test_two_at_once_on_a_fresh_home_both_work(hermes: CommandLine) -> None:
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "hermes", "call", "sleep", "seconds=0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=hermes.environment(),
            cwd=hermes.folder,
        )
        for _ in range(2)
    ]

    ends = [run.communicate(timeout=60) for run in runs]

    assert [run.returncode for run in runs] == [0, 0]
    assert [err for _, err in ends] == [b"", b""]
    assert hermes("audit", "verify").returncode == 0


def test_what_is_made_in_the_home_is_private(hermes: CommandLine) -> None:
    hermes("call", "sleep", "seconds=0")

    made: list[Path] = [hermes.home, *hermes.home.rglob("*")]

    assert [path for path in made if path.stat().st_mode & 0o077] == []
