"""What is known to change nothing, and what is not."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.safety.shell import detect_dangerous_command
from hermes.safety.shell.read_only_programs import CHANGES_NOTHING, MAY_CHANGE

CWD, HOME = "/home/dev/projects/app", "/home/dev"


def only(command: str) -> bool:
    return detect_dangerous_command(command, cwd=CWD, home=HOME).reads_only


@pytest.mark.parametrize("command", CHANGES_NOTHING)
def test_a_command_that_only_looks_changes_nothing(command: str) -> None:
    assert only(command)


@pytest.mark.parametrize("command", MAY_CHANGE)
def test_a_command_that_may_change_something_is_never_called_harmless(command: str) -> None:
    assert not only(command)


def test_the_verdict_carries_the_same_fact() -> None:
    assert detect_dangerous_command("ls | wc -l", cwd=CWD, home=HOME).reads_only
    assert not detect_dangerous_command("make", cwd=CWD, home=HOME).reads_only


def test_reading_a_secret_is_asked_about_and_still_changes_nothing() -> None:
    verdict = detect_dangerous_command("cat ~/.ssh/id_rsa", cwd=CWD, home=HOME)

    assert verdict.action == "ask"
    assert verdict.reads_only


WRITES = st.sampled_from(["touch x", "cp a b", "make", "./run", "git commit -m x", "echo a > b"])
READS = st.sampled_from(["ls", "cat a", "git status", "grep x a | wc -l", "true", "pwd"])
AROUND = st.sampled_from(
    [
        "{r}; {w}",
        "{w}; {r}",
        "{r} && {w}",
        "{r} || {w}",
        "{r} | {w}",
        "{w} | {r}",
        "{r} & {w}",
        "({r}; {w})",
        "{{ {r}; {w}; }}",
        "if {r}; then {w}; fi",
        "for i in 1 2; do {r}; {w}; done",
        "while {r}; do {w}; done",
        "case x in a) {r};; *) {w};; esac",
        "echo $({w})",
        "echo `{w}`",
        "cat <({w})",
        "cat <<EOF\n$({w})\nEOF",
        "f() {{ {w}; }}; f",
        "[[ -n $({w}) ]] && {r}",
        "x=$({w}); {r}",
        "bash -c {q}",
        "eval {q}",
        "timeout 5 sh -c {q}",
        "echo a | xargs sh -c {q}",
        "! {w}",
        "time {w}",
        "trap {q} EXIT; {r}",
        "{r} > out.txt",
        "{r} 2>> out.txt",
        "${{y:-$({w})}}",
        "echo ${{HOME%$({w})}}",
    ]
)


@settings(max_examples=150, deadline=None)
@given(READS, WRITES, AROUND)
def test_one_writer_anywhere_is_enough(read: str, write: str, around: str) -> None:
    command = around.format(r=read, w=write, q=shlex.quote(write))

    assert not only(command), command


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="abc -;|&<>(){}$'\"\\\n*?[]=./~!#", max_size=40))
def test_any_text_gets_an_answer(text: str) -> None:
    assert only(text) in (True, False)


@pytest.mark.parametrize(
    "source",
    [
        "import os; os.path.os.system('x')",
        "import os; list(map(os.path.os.system, ['x']))",
        "list(map(eval, ['1']))",
        "len = eval; len('1')",
        "from pathlib import Path; Path('a').replace('b')",
        "print((x for x in []).gi_frame.f_builtins)",
        "import sys; sys.modules['os'].system('x')",
        "o = open; o('a', 'w')",
        "from os import *",
        "import os as math; math.system('x')",
        "class A: pass",
        "import platform; platform.os.remove('a')",
        "with open('a', 'r+') as f: pass",
        "import glob; glob.os.remove('a')",
        "__import__('os').system('x')",
        "def f(x): return x\nf = exec",
        "import urllib.request",
    ],
)
def test_python_that_could_do_something_is_not_pure(source: str) -> None:
    assert not only(f"python3 -c {shlex.quote(source)}")


@pytest.mark.parametrize(
    "source",
    [
        "print(1 + 1)",
        "import os; print(sorted(os.listdir('.')))",
        "from pathlib import Path; print(Path('a').read_text().replace('a', 'b'))",
        "import json, sys; print([row['x'] for row in json.load(sys.stdin)])",
        "def double(x):\n    return x * 2\nprint(double(4))",
        "with open('a') as f:\n    print(len(f.read().splitlines()))",
        "from datetime import datetime; print(datetime.now().isoformat())",
    ],
)
def test_python_that_only_computes_and_reads_is_pure(source: str) -> None:
    assert only(f"python3 -c {shlex.quote(source)}")
