"""The verdict on whole commands: what is asked, refused and passed, and where findings point."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.corpus import each

from hermes.safety.shell import Verdict, detect_dangerous_command

CWD, HOME = "/home/dev/projects/app", "/home/dev"
CORPUS = Path(__file__).parents[2] / "data" / "shell_commands.jsonl"


def judge(command: str) -> Verdict:
    return detect_dangerous_command(command, cwd=CWD, home=HOME)


def test_the_corpus_gets_the_actions_it_should_but_for_a_few() -> None:
    entries = [json.loads(line) for line in CORPUS.read_text().splitlines()]
    results = [
        (entry, detect_dangerous_command(entry["command"], cwd="/home/u/proj", home="/home/u"))
        for entry in entries
    ]

    dangerous = [pair for pair in results if pair[0]["action"] != "allow"]
    ordinary = [pair for pair in results if pair[0]["action"] == "allow"]
    missed = [entry["command"] for entry, verdict in dangerous if verdict.action == "allow"]
    alarms = [entry["command"] for entry, verdict in ordinary if verdict.action != "allow"]
    milder = [
        entry["command"]
        for entry, verdict in dangerous
        if entry["action"] == "refuse" and verdict.action == "ask"
    ]
    assert len(entries) >= 9_000
    assert len(missed) <= 0.02 * len(dangerous), missed
    assert len(alarms) <= 0.01 * len(ordinary), alarms
    assert len(milder) <= 0.02 * len(dangerous), milder


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("echo hi; sudo rm -rf build && ls", "rm -rf build"),
        ("bash -c 'ls; rm -rf x'", "rm -rf x"),
        ("echo $(ls; rm -rf q)", "rm -rf q"),
        ("echo 'é' > a; rm -rf b", "rm -rf b"),
        ("r\u200bm -rf b; ls", "r\u200bm -rf b"),
        ("echo x >> ~/.bashrc; ls", "~/.bashrc"),
    ],
)
def test_a_finding_points_at_the_command_it_is_about(command: str, found: str) -> None:
    finding = judge(command).findings[0]

    start, end = finding.span
    assert command[start:end] == found
    assert finding.description.endswith(".")
    assert finding.command


def test_the_action_is_that_of_the_worst_finding() -> None:
    verdict = judge("rm -rf build; rm -rf /; ls")

    assert verdict.action == "refuse"
    assert {finding.severity for finding in verdict.findings} == {"ask", "refuse"}


def test_position_in_a_long_chain_does_not_matter() -> None:
    chain = "true; " * 400

    assert judge(chain + "ls").action == "allow"
    assert judge(chain + "rm -rf ~").action == "refuse"
    assert judge("rm -rf ~; " + chain).action == "refuse"


def test_a_directory_carries_over_from_one_command_to_the_next() -> None:
    assert judge("cd .. && cd .. && rm -rf projects").action == "ask"
    assert judge("cd ../../.. && rm -rf dev").action == "refuse"
    assert judge("(cd /tmp); rm -rf *").action == "ask"
    assert judge("(cd ~); rm note.txt").action == "allow"


def test_home_and_working_directory_come_from_the_caller() -> None:
    assert detect_dangerous_command("rm -rf /srv/me", home="/srv/me").action == "refuse"
    assert detect_dangerous_command("rm -rf .", cwd="/srv/me", home="/srv/me").action == "refuse"
    assert detect_dangerous_command("rm x.txt", cwd="/srv/me/app", home="/srv/me").action == "allow"


@each(
    "command",
    [
        "",
        " ",
        "\n\n",
        "# only a comment",
        ";",
        "&&",
        "\0",
        "\ue000",
        "é",
        "'",
        '"',
        "$(",
        "`",
        "<<",
    ],
)
def test_odd_texts_get_a_verdict(command: str) -> None:
    assert judge(command).action in ("allow", "ask", "refuse")


@pytest.mark.parametrize(
    "text",
    [
        "true\r rm -rf build",
        "ｒｍ -rf build",
        "r\u200bm -rf build",
        "\x1b[31mrm\x1b[0m -rf build",
        "true\u037e rm -rf build",
        "rm \u2013rf build",
        "r\u00adm -r build",
    ],
)
def test_disguised_text_is_read_as_a_normaliser_reads_it(text: str) -> None:
    assert judge(text).action == "ask"


@pytest.mark.parametrize(
    "text",
    [
        "git commit -m '修正（括弧）；完了'",
        "echo “don’t rm -rf /”",
        "echo naïve café 👩‍💻 > notes.txt",
        'git commit -m "it’s fixed — finally"',
    ],
)
def test_ordinary_text_of_any_language_passes(text: str) -> None:
    assert judge(text).action == "allow"


def test_bash_that_the_grammar_has_trouble_with_passes() -> None:
    for command in (
        'cat 2>&1 <<<"hi"',
        "python3 - <<'PY' 2>&1 | head\nprint(1)\nPY",
        "cat <<EOF > a; ls\nx\nEOF",
        "cat <<A <<B\na\nA\nb\nB",
        "case $x in (a) ls;; b|c) id;& *) true;;& esac",
        "ls !(a|b) *.@(py|js)",
        "exec 3<>file",
        "if cat <<EOF; then ls; fi\nx\nEOF",
    ):
        assert judge(command).action == "allow", command
