"""Two lines are two commands, however the second one begins and whatever the first one was."""

from __future__ import annotations

from tests.corpus import each

from hermes.safety.shell import detect_dangerous_command

CWD, HOME = "/home/dev/projects/app", "/home/dev"
FIRST = [
    "ls", "ls -la", "A=1", "A=1 B=2", "ls > out", "ls 2>&1", "x=(a b)", "x=$(id)", "f() { :; }",
    "ls # don't", "# it's", "cat <<'EOF'\nit's\nEOF", "ls &", "export A=1", "! ls", "[ a = b ]",
    "[[ a == b* ]]", "((i++))", "declare -A m", "echo $x", 'echo "a\nb"', "echo `id`", "cd /tmp",
    "echo a \\\n b", "case x in a) ls;; esac", "if true; then ls; fi", "(ls)", "{ ls; }", "echo {a,b}",
    "ls | sort | uniq", "! ls | sort | uniq", "ls; ls | sort | uniq -c", "ls |\n sort |\n uniq",
    "ls | sort | grep 'a\nb' # or | so", "ls | sort | while read x\ndo echo $x\ndone",
    "ls | sort | \\\n uniq", "if ls | sort | uniq\nthen ls\nfi",
]  # fmt: skip
SECOND = [
    "{} -rf z", "\\{} -rf z", "  \\{} -rf z", "'{}' -rf z", '"{}" -rf z', "$'{}' -rf z",
    "`echo {}` -rf z", "$(echo {}) -rf z", "\\\n{} -rf z", "command {} -rf z", "A=1 {} -rf z",
    ">f {} -rf z", "! {} -rf z", "({} -rf z)", "cat <(\n{} {{a,b}}.txt\n)", "{} \\\n -rf z",
    "{} -rf z || true", "\n{} -rf z && echo done", "echo z | {} -rf z | cat 2>&1", "true\n{} -rf z || true",
]  # fmt: skip


@each("second", SECOND)
def test_a_dangerous_line_is_found_below_any_other(second: str) -> None:
    passed = [
        first
        for first in FIRST
        for before in ("", "echo hi\n")
        if detect_dangerous_command(
            f"{before}{first}\n{second.format('rm')}", cwd=CWD, home=HOME
        ).action
        == "allow"
    ]

    assert passed == []


@each("second", SECOND)
def test_an_ordinary_line_passes_below_any_other(second: str) -> None:
    asked = [
        first
        for first in FIRST
        if detect_dangerous_command(f"{first}\n{second.format('ls')}", cwd=CWD, home=HOME).action
        != "allow"
    ]

    assert asked == []
