"""Questions are told from statements."""

from __future__ import annotations

import pytest

from hermes.environments.command_wait import last_line, looks_like_prompt, wanted_input


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
    ("command", "output"),
    [
        ("sudo -k true", "sudo: a terminal is required to read the password\n"),
        ("python x.py", "Name: Traceback\nEOFError: EOF when reading a line\n"),
        ("git clone x", "fatal: could not read Username for 'x': terminal prompts disabled\n"),
        ("./install", "Continue? [y/N] "),
        ("read x", ""),
        ("python3", ""),
        ("read -p 'Name? ' who", ""),
        ("touch f; rm -i f", "rm: remove regular empty file 'f'? "),
        ("npm init", "Press ^C at any time to quit.\npackage name: (some) "),
        ("gpg --gen-key", "gpg: cannot open '/dev/tty': No such device or address\n"),
    ],
)
def test_what_could_not_be_asked_is_noticed(command: str, output: str) -> None:
    assert wanted_input(command, output)


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("true", ""),
        ("grep read x", ""),
        ("echo a | while read x; do :; done", ""),
        ("python3 x.py", ""),
        ("./x", "finished\n"),
        ("printf 'done? '", "done? "),
        ("ls -C | head -c 9", "bin   etc "),
    ],
)
def test_ordinary_ends_are_left_alone(command: str, output: str) -> None:
    assert wanted_input(command, output) is None


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("stty -echo; make", "stty: 'standard input': Inappropriate ioctl for device\nok\n"),
        (
            "ssh -t box true",
            "Pseudo-terminal will not be allocated because stdin is not a terminal.\n",
        ),
        ("make", "Running in non-interactive mode\n"),
        ("cat log", "EOFError: EOF when reading a line\n"),
        ("grep -r tty .", "cannot open /dev/tty\n"),
        ("make", "EOFError: EOF when reading a line\nretrying\nbuilt\nlinked\ndone\n"),
    ],
)
def test_a_remark_of_one_that_ended_well_is_no_question(command: str, output: str) -> None:
    assert wanted_input(command, output, failed=False) is None


def test_a_failed_beginning_of_a_pipeline_is_noticed() -> None:
    said = "sudo: a terminal is required to read the password\nsudo: a password is required\n"

    assert wanted_input("sudo id 2>&1 | tail -5", said, failed=False)
    said = "fatal: could not read Username for 'https://x': terminal prompts disabled\n"
    assert wanted_input("git push 2>&1 | tail -5", said, failed=False)


def test_a_warning_of_ssh_is_not_why_it_failed() -> None:
    said = "Pseudo-terminal will not be allocated because stdin is not a terminal.\nrefused\n"

    assert wanted_input("ssh box", said) is None


def test_the_question_is_told_and_not_the_complaint() -> None:
    fell = "Traceback (most recent call last):\n  x\nEOFError: EOF when reading a line\n"

    assert wanted_input("./a", f"hi\nName? {fell}", stdout="hi\nName? ") == "Name?"
    assert wanted_input("./a", f"hi\nPassword: {fell}", stdout="hi\n") == "Password:"


def test_a_line_in_whose_middle_it_was_stopped_is_no_question() -> None:
    assert wanted_input("make", "Building (3/4) ", stopped=True) is None
    assert wanted_input("./install", "Continue? [y/N] ", stopped=True) == "Continue? [y/N]"


def test_the_last_line_is_one_that_says_something() -> None:
    assert last_line("a\n b \n\n  \n") == "b"
    assert last_line("") == ""
