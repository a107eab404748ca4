"""Exit codes in words."""

from __future__ import annotations

import pytest

from hermes.environments.terminal_result import exit_meaning


@pytest.mark.parametrize(
    ("code", "command", "word"),
    [
        (137, "x", "SIGKILL"),
        (139, "x", "segmentation"),
        (143, "x", "request"),
        (130, "x", "interrupted"),
        (126, "./x", "not executable"),
        (127, "nosuch", "not found"),
        (124, "timeout 1 x", "timed out"),
        (1, "grep x y", "no match"),
        (1, "cat y | grep -q x", "no match"),
        (1, "cd z && rg x", "no match"),
        (1, "FOO=1 sudo grep x y", "no match"),
        (1, "git diff --exit-code", "differ"),
        (1, "diff a b", "differ"),
        (1, "[ -f x ]", "false"),
        (5, "python -m pytest x", "no tests"),
        (6, "curl -f http://x", "host name"),
        (-11, "x", "segmentation"),
        (129, "x", "SIGHUP"),
    ],
)
def test_numbers_that_mislead_are_explained(code: int, command: str, word: str) -> None:
    assert word in (exit_meaning(code, command) or "")


@pytest.mark.parametrize(
    ("code", "command"),
    [(0, "grep x"), (1, "make-it"), (2, "grep x"), (1, "echo grep; false"), (255, "x"), (200, "x")],
)
def test_other_numbers_say_no_more_than_they_are(code: int, command: str) -> None:
    assert exit_meaning(code, command) is None
