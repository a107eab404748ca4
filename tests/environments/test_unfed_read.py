"""A `read` that nobody feeds is told from one that somebody does."""

from __future__ import annotations

import pytest

from hermes.environments.command_wait import unfed_read, wanted_input


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ("read -p 'Name? ' x; echo got $x", "Name?"),
        ('cd . && read -rsp "Password: " p && echo', "Password:"),
        ("IFS= read -r -n 1 -p'Press any key' k", "Press any key"),
        ("while ! read -p 'y/n? ' x; do sleep 1; done", "y/n?"),
        ("read -pÖffnen? x", "Öffnen?"),
        ("if read -p 'Sure? ' x; then :; fi", "Sure?"),
        ("echo a | cat; read line", "`read line` found standard input closed"),
        ("x=$(read y; echo $y)", "`read y` found standard input closed"),
        ("select x in a b; do echo $x; done", "select, which asks for a number"),
        ("(read x 3</etc/passwd)", "`read x` found standard input closed"),
    ],
)
def test_what_would_be_asked_is_found(command: str, asked: str) -> None:
    found = unfed_read(command)

    assert found == asked


@pytest.mark.parametrize(
    "command",
    [
        "grep read x",
        "echo a | while read x; do :; done",
        "while read -r l; do echo $l; done < f",
        "{ read a; read b; } <f",
        "read x <<< word",
        "read x <<E\na\nE",
        "read -u 3 x 3<f",
        "read -t 0 && cat",
        "[ -t 0 ] && read x",
        "ask() { read x; }",
        "case $a in y) read x;; esac",
        "if false; then read x; fi",
        "done; read (",
        "git log --select read",
    ],
)
def test_what_is_fed_or_may_not_run_is_left_alone(command: str) -> None:
    found = unfed_read(command)

    assert found is None


def test_a_command_that_was_given_input_needs_none() -> None:
    found = wanted_input("read x; echo $x", "a\n", fed=True)

    assert found is None
