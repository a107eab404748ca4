"""Questions are told from statements."""

from __future__ import annotations

import pytest

from hermes.environments.prompts import last_line, looks_like_prompt, wanted_input


@pytest.mark.parametrize(
    "text",
    [
        "Do you want to continue? [Y/n] ",
        "Overwrite x? (y/n)",
        "[sudo] password for joe: ",
        "Enter passphrase for key '/x': ",
        "Are you sure you want to continue connecting (yes/no/[fingerprint])? ",
        "lines\nProceed ([y]/n)? ",
        "Press any key to continue . . .",
        "Username for 'https://example.com': ",
        "--More--(12%)",
        "(END)",
        "Enter your name: ",
        "? Select a template: ",
        "Vim: Warning: Output is not to a terminal\n~  ~\n",
    ],
)
def test_questions_are_seen(text: str) -> None:
    assert looks_like_prompt(text)


@pytest.mark.parametrize(
    "text",
    ["", "done\n", "Password changed.\n", "Compiling x", "Downloading: 45%", "Continue? [y/N] n\n"],
)
def test_statements_are_no_questions(text: str) -> None:
    assert not looks_like_prompt(text)


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("sudo -k true", "sudo: a terminal is required to read the password\n", 1),
        ("python x.py", "Name: Traceback\nEOFError: EOF when reading a line\n", 1),
        ("git clone x", "fatal: could not read Username for 'x': terminal prompts disabled\n", 128),
        ("./install", "Continue? [y/N] ", 1),
        ("read x", "", 1),
        ("python3", "", 0),
        ("read -p 'Name? ' who", "", 1),
    ],
)
def test_what_could_not_be_asked_is_noticed(command: str, output: str, code: int) -> None:
    assert wanted_input(command, output, code)


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("true", "", 0),
        ("grep read x", "", 1),
        ("echo a | while read x; do :; done", "", 0),
        ("python3 x.py", "", 0),
        ("./x", "finished\n", 1),
    ],
)
def test_ordinary_ends_are_left_alone(command: str, output: str, code: int) -> None:
    assert wanted_input(command, output, code) is None


def test_the_last_line_is_one_that_says_something() -> None:
    assert last_line("a\n b \n\n  \n") == "b"
    assert last_line("") == ""
