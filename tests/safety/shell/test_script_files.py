"""A script that a command runs is judged by what is in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes.safety.shell import Verdict, detect_dangerous_command

SHELL = "#!/bin/bash\nset -e\necho building\nrm -rf build\n"
PYTHON = "#!/usr/bin/env python3\nimport shutil\n\nshutil.rmtree('build')\n"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    return work


def _judge(command: str, work: Path, **options: str) -> Verdict:
    return detect_dangerous_command(command, cwd=str(work), home="/home/dev", **options)


@pytest.mark.parametrize(
    "command",
    [
        "bash x.sh",
        "sh -eu x.sh one two",
        "./x.sh",
        "sub/../x.sh --now",
        ". ./x.sh",
        "source x.sh",
        "bash < x.sh",
        "env FOO=1 nohup ./x.sh &",
        "find . -maxdepth 0 -exec ./x.sh \\;",
        "cd sub && ../x.sh",
        "echo ok && time bash ./x.sh | tee log",
        "timeout 5 sh -c './x.sh'",
    ],
)
def test_a_shell_script_is_judged_by_its_lines(command: str, work: Path) -> None:
    (work / "x.sh").write_text(SHELL)

    verdict = _judge(command, work)

    assert verdict.action == "ask"
    assert any("rm -rf build" in finding.command for finding in verdict.findings)


@pytest.mark.parametrize(
    "command",
    ["python3 y.py", "python y.py --flag", "./y.py", "python3 < y.py", "uv run y.py",
     "python3 -m y", "python3 -u -W ignore y.py"],
)  # fmt: skip
def test_a_python_script_is_judged_by_its_calls(command: str, work: Path) -> None:
    (work / "y.py").write_text(PYTHON)

    assert _judge(command, work).action == "ask"


def test_a_home_is_not_deleted_by_a_script(work: Path) -> None:
    (work / "x.sh").write_text('rm -rf "$HOME"\n')

    assert _judge("bash x.sh", work).action == "refuse"


@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        ("a.sh", 'tmp=$(mktemp)\ntrap \'rm -f "$tmp"\' EXIT\nexec "$JAVACMD" "$@"\n', "bash a.sh"),
        ("a.sh", '${CC:-cc} -o app main.c && ./app "$1"\n', "./a.sh x"),
        ("a.sh", ': > "$LOG"\nsource "$CONFIG"\necho done >> "$LOG"\n', "sh a.sh"),
        ("a.sh", "set -a; . ./.env; set +a\nnpm test\n", "bash a.sh"),
        ("a.py", "import os\nfor n in os.listdir('.'):\n    print(n)\n", "python3 a.py"),
        ("a.py", "import os, sys\nos.remove(sys.argv[1])\n", "python3 a.py old.txt"),
        ("a.py", "import os\n\ndef drop(path):\n    os.remove(path)\n", "python3 a.py"),
        ("a.py", "import json\njson.load(open('credentials.json'))\n", "python3 a.py"),
        ("a.py", "from http.server import HTTPServer\nHTTPServer(('', 1), None)\n", "python a.py"),
        ("a.py", "print 'for another Python'\n", "python a.py"),
        ("a.js", "require('fs').rmSync('dist', {recursive: true})\n", "node a.js"),
    ],
)
def test_ordinary_scripts_pass(name: str, text: str, command: str, work: Path) -> None:
    (work / name).write_text(text)

    assert _judge(command, work).action == "allow", _judge(command, work)


def test_a_script_is_judged_with_what_it_is_given(work: Path) -> None:
    (work / "any.sh").write_text('"$@"\n')

    assert _judge("bash any.sh ls -l", work).action == "allow"
    assert _judge("bash any.sh rm -rf build", work).action == "ask"


def test_a_sourced_script_leaves_its_variables(work: Path) -> None:
    (work / "vars.sh").write_text("tool=rm\ngone() { $tool -rf build; }\n")

    assert _judge(". ./vars.sh; $tool -rf build", work).action == "ask"
    assert _judge("source vars.sh && echo $tool", work).action == "ask"  # for what is in `gone`


def test_a_script_inside_a_script_is_judged_too(work: Path) -> None:
    (work / "x.sh").write_text(SHELL)
    (work / "outer.sh").write_text("./x.sh\n")

    verdict = _judge("bash outer.sh", work)

    assert verdict.action == "ask"
    assert verdict.typed == [["bash", "outer.sh"]]
    assert verdict.commands[1:] == [[f"{work}/outer.sh"], [f"{work}/x.sh"]]
    assert ["rm", "-rf", "build"] in verdict.inside


def test_what_was_found_before_is_found_again(work: Path) -> None:
    (work / "x.sh").write_text(SHELL)
    (work / "outer.sh").write_text("./x.sh\n")

    first, again = _judge("bash outer.sh", work), _judge("bash outer.sh", work)

    assert again.commands == first.commands
    assert again.inside == first.inside
    assert [f.rule for f in again.findings] == [f.rule for f in first.findings]


def test_a_changed_script_is_judged_anew(work: Path) -> None:
    script = work / "x.sh"
    script.write_text("echo fine\n")
    assert _judge("bash x.sh", work).action == "allow"

    script.write_text("rm -rf fine\n")

    assert _judge("bash x.sh", work).action == "ask"


def test_what_a_script_writes_is_noted(work: Path) -> None:
    (work / "x.sh").write_text("echo x > /srv/data/f\n")

    assert list(_judge("bash x.sh", work).writes) == ["/srv/data/f"]


def test_scripts_are_read_in_the_workspace_only(work: Path) -> None:
    (work.parent / "x.sh").write_text(SHELL)
    (work / "link.sh").symlink_to(work.parent / "x.sh")

    for command in ("bash ../x.sh", "bash link.sh", "bash missing.sh", "bash sub"):
        assert _judge(command, work).action == "allow", command
    assert _judge("bash ../x.sh", work, workspace=str(work.parent)).action == "ask"


def test_a_pipe_or_binary_in_place_of_a_script_is_not_waited_for(work: Path) -> None:
    os.mkfifo(work / "pipe.sh")
    (work / "tool").write_bytes(b"\x7fELF\0\0rm -rf build\n")

    assert _judge("bash pipe.sh", work).action == "allow"
    assert _judge("./tool", work).action == "allow"


def test_scripts_that_run_each_other_end(work: Path) -> None:
    (work / "a.sh").write_text("./b.sh; ./a.sh; . ./a.sh\n")
    (work / "b.sh").write_text("./a.sh x; ./b.sh y; bash a.sh $1$1\n")

    assert _judge("bash a.sh", work).action in ("allow", "ask")


def test_what_tools_generate_is_not_read(work: Path) -> None:
    line = "rm -f conftest* && echo a line of a script\n"
    (work / "big.sh").write_text(line * 7_000)
    (work / "configure").write_text("#!/bin/sh\n# Generated by GNU Autoconf 2.71\n" + line * 2_000)

    assert _judge("bash big.sh", work).action == "allow"
    assert _judge("./configure --prefix=/usr/local", work).action == "allow"


def test_the_environment_of_a_project_is_entered_unasked(work: Path) -> None:
    activate = work / ".venv" / "bin" / "activate"
    activate.parent.mkdir(parents=True)
    activate.write_text(
        f'VIRTUAL_ENV="{work}/.venv"\nexport VIRTUAL_ENV\n'
        'PATH="$VIRTUAL_ENV/bin:$PATH"\nexport PATH\n'
        "deactivate () {\n  unset -f deactivate\n}\nhash -r 2>/dev/null\n"
    )

    assert _judge("source .venv/bin/activate && pytest -q", work).action == "allow"
