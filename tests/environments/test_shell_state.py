"""What a shell carries over, read back from what real shells print."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.environments import shell_state

SHELLS = [shell for shell in ("bash", "dash") if shutil.which(shell)]
VALUES = st.binary(max_size=60).filter(lambda value: b"\0" not in value)


@pytest.mark.parametrize("shell", SHELLS)
@given(value=VALUES)
def test_whatever_a_variable_holds_comes_back(shell: str, value: bytes) -> None:
    env = {b"PATH": os.environb[b"PATH"], b"HELD": value, b"LC_ALL": b"C.UTF-8"}

    printed = subprocess.run([shell, "-c", "export -p"], env=env, capture_output=True, check=True)

    if value:
        assert shell_state.read_exports(printed.stdout)["HELD"] == os.fsdecode(value)


@given(st.dictionaries(st.from_regex(r"H[A-Z]{0,3}", fullmatch=True), VALUES, max_size=4))
def test_several_variables_are_told_apart(held: dict[str, bytes]) -> None:
    env = {b"PATH": os.environb[b"PATH"], **{os.fsencode(k): v for k, v in held.items()}}

    printed = subprocess.run(["bash", "-c", "export -p"], env=env, capture_output=True, check=True)
    found = shell_state.read_exports(printed.stdout)

    wanted = {name: os.fsdecode(value) for name, value in held.items() if value or name in found}
    assert {name: found[name] for name in found if name.startswith("H")} == wanted


def test_a_value_that_looks_like_a_declaration_is_no_declaration() -> None:
    text = b'declare -x A="x\ndeclare -x EVIL=\\"1\\"\n"\ndeclare -x B="2"\n'

    assert shell_state.read_exports(text) == {"A": 'x\ndeclare -x EVIL="1"\n', "B": "2"}


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_can_be_given_a_long_command(shell: str, tmp_path: Path) -> None:
    bash = shell == "bash"
    text = tmp_path / "text"
    text.write_bytes(b"x='%s'; echo ${#x}; cd /usr" % (b"y" * 300_000) + (b"\0" if bash else b""))
    script = shell_state.wrapped(bash=bash, long=True)

    with open(text, "rb") as given_file, open(tmp_path / "state", "wb") as state:
        files = (
            f"exec 8<&{given_file.fileno()} 9>&{state.fileno()}; exec {shell} -c \"$0\" sh '' ''"
        )
        ran = subprocess.run(
            ["bash", "-c", files, script],
            pass_fds=[given_file.fileno(), state.fileno()],
            capture_output=True,
            text=True,
            check=True,
        )

    assert ran.stdout == "300000\n"
    left = shell_state.read_state((tmp_path / "state").read_bytes())
    assert left is not None
    assert left.cwd == "/usr"


def test_what_was_changed_and_taken_away_is_known() -> None:
    changed = shell_state.changes({"A": "1", "B": "2", "PWD": "/"}, {"A": "1", "C": "3"})

    assert changed == {"B": None, "C": "3"}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("cd /usr; export A=1", 0),
        ("cd /usr; exit 4", 4),
        ("cd /usr; set -e; false; echo not here", 1),
        ("cd /usr; trap 'echo mine' EXIT", 0),
        ("cd /usr; set -u", 0),
        ("cd /usr; return 3 2>/dev/null; (exit 3)", 3),
    ],
)
def test_state_is_written_however_a_command_ends(
    shell: str, command: str, code: int, tmp_path: Path
) -> None:
    script = shell_state.wrapped(bash=shell == "bash")

    ran = subprocess.run(
        [
            shell,
            "-c",
            f'exec 9>"$0"; exec {shell} -c "$@"',
            tmp_path / "state",
            script,
            shell,
            command,
            "",
        ],
        capture_output=True,
    )
    read = shell_state.read_state((tmp_path / "state").read_bytes())

    assert ran.returncode == code
    assert read is not None
    assert read.cwd == "/usr"
    assert ran.stderr == b""


@pytest.mark.parametrize(
    "command", ["true", "ls -la /tmp", "git status | head -5", "npm test 2>&1", "echo 'a b' >x"]
)
def test_plain_commands_need_no_wrapper(command: str) -> None:
    assert shell_state.is_stateless(command)


@pytest.mark.parametrize(
    "command",
    [
        "cd x", "ls; cd x", "X=1", "export X", ". ./env.sh", "ls\n. ./env.sh", "source x", "f() { :; }",
        "eval ls", "read x", "for x in 1; do ls; done", "c\\d /", "unset PATH", "exec ls", "-x", "",
        "echo ${X:=1}", "alias a", "let x", "pushd /", "command cd /", "builtin cd /", "printf -v X 1",
    ],
)  # fmt: skip
def test_commands_that_may_change_the_state_are_wrapped(command: str) -> None:
    assert not shell_state.is_stateless(command)
