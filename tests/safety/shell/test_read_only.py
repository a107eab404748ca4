"""What is known to change nothing, and what is not."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.corpus import each

from hermes.safety.shell import detect_dangerous_command

CWD, HOME = "/home/dev/projects/app", "/home/dev"


def only(command: str) -> bool:
    return detect_dangerous_command(command, cwd=CWD, home=HOME).reads_only


CHANGES_NOTHING = (
    "true",
    "ls -la src | head -5",
    "cat a.txt b.txt",
    "grep -rn 'rm -rf' . 2>/dev/null",
    "rg -n pattern src 2>&1 | wc -l",
    "find . -name '*.py' -type f",
    "find . -name '*.py' -exec grep -l x {} +",
    "git status && git diff --stat && git log --oneline -5",
    "git -C sub show HEAD:file.txt",
    "git branch -a",
    "git branch --list 'feat/*'",
    "git --no-pager log -3",
    "git stash list",
    "git remote -v",
    "git config --get user.name",
    "x=5; echo $((x + 1))",
    "for f in a b; do cat $f; done",
    "if [ -f x ]; then echo yes; else echo no; fi",
    "timeout 5 env LC_ALL=C sort a.txt | uniq -c",
    "bash -c 'ls; pwd'",
    "ps aux | awk '{print $2}'",
    "sed -n '1,20p' a.py",
    "sed 's/a/b/g' a.txt",
    "git ls-files | xargs wc -l",
    "python3 -c 'import json, sys; print(json.load(sys.stdin)[\"x\"])' < a.json",
    "python --version",
    "kubectl get pods -n prod -o wide",
    "docker ps -a",
    "date +%F",
    "f() { ls; }; f",
    "cat <<'EOF'\nrm -rf /\nEOF",
    "echo hi >&2",
    "tar -tzf a.tgz",
    "cd sub && pwd",
)
MAY_CHANGE = (
    "touch a",
    "echo hi > a.txt",
    "cat a >> b",
    "ls > list.txt",
    "exec 3<>file",
    "sort -o a.txt a.txt",
    "sort -uoa.txt a.txt",
    "uniq a b",
    "find . -name x -delete",
    "find . -exec sed -i s/a/b/ {} +",
    "find . -fprint out",
    "git branch new",
    "git branch -d old",
    "git tag v1",
    "git stash",
    "git log --output=x",
    "git diff --outp=x",
    "git config user.name me",
    "git -c core.pager='touch x' log",
    "git -c alias.status='!touch x' status",
    "git lg",
    "sed -i s/a/b/ a",
    "sed 's/a/b/w out' a",
    "sed -n 'w out' a",
    "awk '{print > \"out\"}' a",
    "awk 'BEGIN{system(\"x\")}'",
    "./ls",
    "PATH=.:$PATH ls",
    "export PATH=.; ls",
    "alias ls='touch x'\nls",
    "ls() { touch x; }; ls",
    "bash script.sh",
    "bash",
    "source env.sh",
    "make",
    "npm test",
    "python app.py",
    'python -c \'open("x", "w")\'',
    "python -c 'import os; os.remove(\"x\")'",
    "python -c 'import mymodule'",
    "python -m pytest",
    "ls | xargs touch",
    "ls | xargs find",
    "ls *; sort *",
    "tee a < b",
    "$CMD x",
    "ls; $(touch x)",
    "echo `touch x`",
    "echo ${x:?$(touch y)}",
    "echo ${HOME#$(touch y)}",
    "fd -e py -x echo {} \\; -x touch",
    "hostname new",
    "date -s tomorrow",
    "sudo -e a",
    "curl -O https://example.com/x",
    "tar xzf a.tgz",
    "tar -tf a --to-command=x",
    "tree -o out",
    "rg --pre ./x y",
    "cat >(touch x)",
    "if",
    "read PATH < p; ls",
    "printf -v PATH .; ls",
    "env -S 'touch x'",
    "trap 'touch x' EXIT",
    "cp a b",
    "dd if=a of=b",
    "docker exec c ls",
    "kubectl delete pod x",
    "ls &> out",
    "ls 2> errors.txt",
    "unknown-program",
)


@each("command", CHANGES_NOTHING)
def test_a_command_that_only_looks_changes_nothing(command: str) -> None:
    assert only(command)


@each("command", MAY_CHANGE)
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


@each(
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
