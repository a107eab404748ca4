"""Programs that are started without a shell, and all that is left to one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.environments.host.host_environment import LocalEnvironment
from hermes.environments.host.launch import plain_argv

PATH = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalEnvironment]:
    made = LocalEnvironment(str(tmp_path))
    yield made
    made.cleanup()


@pytest.mark.parametrize("command", ["true", "ls", "ls -la /tmp", "ls  -a\t-l "])
def test_a_program_and_plain_words_need_no_shell(command: str) -> None:
    found = plain_argv(command, PATH)

    assert found is not None
    assert found[1] == [word.encode() for word in command.split()]


@pytest.mark.parametrize(
    "command",
    [
        "echo a", "true --help", "time ls", "ls | wc", "ls > f", "ls *", "ls ~", "ls $HOME", "A=b",
        "A=b ls", "ls 'a'", "ls a\\ b", "ls &", "ls; ls", "ls\nls", "!ls", "ls {a,b}", "# ls",
        "if", "[ a ]", "no-such-program-here", "ls #a", "-ls", "%1", "=ls", "",
    ],
)  # fmt: skip
def test_everything_else_is_the_shell_s(command: str) -> None:
    assert plain_argv(command, PATH) is None


@pytest.mark.parametrize(
    "variables",
    [{**PATH, "BASH_ENV": "/x"}, {**PATH, "BASH_FUNC_ls%%": "() { :; }"}, {"PATH": "rel:/bin"}, {}],
)
def test_so_is_what_its_variables_may_change(variables: dict[str, str]) -> None:
    assert plain_argv("ls", variables) is None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("ab0/._+:,@%=-", min_size=1, max_size=6), max_size=4))
def test_words_are_what_a_shell_makes_of_them(words: list[str]) -> None:
    command = " ".join(["printenv", *words])
    found = plain_argv(command, PATH)
    if found is None:
        return
    seen = subprocess.run(
        ["bash", "-c", f"set -- {command.partition(' ')[2]}; printf '%s\\n' \"$@\""],
        capture_output=True, text=True, check=True, env=PATH,
    )  # fmt: skip

    assert [word.decode() for word in found[1][1:]] == (seen.stdout.splitlines() if words else [])


def test_a_program_sees_the_name_that_it_was_called_by(local: LocalEnvironment) -> None:
    result = local.execute("ls no-such-file")

    assert result.exit_code == 2
    assert result.stderr.startswith("ls: ")


def test_what_the_system_can_not_start_is_explained_by_the_shell(
    local: LocalEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "script").write_text("echo no first line\n")
    (tmp_path / "script").chmod(0o755)
    (tmp_path / "broken").write_text("#!/no/such/interpreter\n")
    (tmp_path / "broken").chmod(0o755)
    (tmp_path / "data").write_text("")

    assert local.execute("./script").stdout == "no first line\n"
    assert "./broken" in local.execute("./broken").stderr
    assert local.execute("./data").exit_code == 126
    assert local.execute("./missing").exit_code == 127
    assert local.execute("/").exit_code == 126


def test_functions_and_variables_of_the_task_come_first(
    local: LocalEnvironment, tmp_path: Path
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ls").write_text("#!/bin/sh\necho mine\n")
    (folder / "ls").chmod(0o755)

    local.execute(f"export PATH={folder}:$PATH")
    mine = local.execute("ls")
    local.execute("ls() { echo function; }")
    defined = local.execute("ls")

    assert (mine.stdout, defined.stdout) == ("mine\n", "function\n")
