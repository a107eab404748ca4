"""Every rule finds its examples and leaves its counter-examples alone."""

from __future__ import annotations

import json
from pathlib import Path

from tests.corpus import each

from hermes.safety.shell import detect_dangerous_command
from hermes.safety.shell.rules.table import RULES
from hermes.safety.shell.verdict import ASK, REFUSE

EXAMPLES = {
    row["rule"]: row
    for row in map(
        json.loads,
        (Path(__file__).parents[2] / "data" / "rule_examples.jsonl").read_text().splitlines(),
    )
}
CWD, HOME = "/home/dev/projects/app", "/home/dev"


def _rules(command: str) -> list[str]:
    return [
        finding.rule for finding in detect_dangerous_command(command, cwd=CWD, home=HOME).findings
    ]


@each("key", RULES)
def test_a_rule_finds_what_it_is_about(key: str) -> None:
    for command in EXAMPLES[key]["matches"]:
        assert _same_kind(key, _rules(command)), command


@each("key", RULES)
def test_a_rule_leaves_alone_what_it_is_not_about(key: str) -> None:
    for command in EXAMPLES[key]["passes"]:
        assert key not in _rules(command), command


@each("key", RULES)
def test_a_rule_is_described_and_has_examples(key: str) -> None:
    rule = RULES[key]

    assert len(EXAMPLES[key]["matches"]) >= 3
    assert len(EXAMPLES[key]["passes"]) >= 3
    assert rule.description.endswith(".")
    assert rule.severity in (ASK, REFUSE)


def _same_kind(key: str, found: list[str]) -> bool:
    # Cleaning a home directory with git is the same loss under a key of its own.
    return key in found or (key == "delete.root-or-home" and "delete.home-cleaned" in found)
