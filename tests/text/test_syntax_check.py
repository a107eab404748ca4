"""The syntax check after an edit."""

from __future__ import annotations

import pytest

from hermes.text.syntax_check import check_syntax, check_syntax_change

GOOD = {
    "a.py": "x = 1\nprint('\\d')\n",
    "b.pyi": "def f() -> int: ...\n",
    "c.json": '{"a": [1, 2]}\n',
    "d.yaml": "a:\n  - !Ref b\n---\nc: {d: 1}\n",
    "e.yml": "",
    "f.toml": "[a]\nb = 1\n",
    "g.txt": "((((",
    "Makefile": "a:\n  b",
    "dir.py/file": "((((",
}
BAD = {
    "a.py": ("x = 1\ndef f(:\n    pass\n", "line 2: "),
    "b.py": ("if x:\npass\n", "line 2: "),
    "c.json": ('{\n  "a": 1,\n}\n', "line "),
    "d.yaml": ("a: [1, 2\nb: 3\n", "line 2: "),
    "e.toml": ("a = 1\nb = \n", "line 2: "),
    "f.ipynb": ('{"cells": [}', "line 1: "),
    "G.PY": ("return 1\n", "line 1: "),
    "nul.py": ("x = 1\n\0", "line "),
}


@pytest.mark.parametrize("name", GOOD)
def test_files_that_can_be_read_have_no_problem(name: str) -> None:
    assert check_syntax(f"/some/where/{name}", GOOD[name]) is None
    assert check_syntax(name, "\ufeff" + GOOD[name]) is None


@pytest.mark.parametrize("name", BAD)
def test_the_first_problem_has_its_line(name: str) -> None:
    text, start = BAD[name]

    found = check_syntax(name, text)

    assert found is not None
    assert found.startswith(start)
    assert "\n" not in found


def test_only_a_problem_that_is_new_is_reported() -> None:
    assert check_syntax_change("a.py", "x = 1\n", "x = (\n") == "line 1: '(' was never closed"
    assert check_syntax_change("a.py", "x = (\n", "x = ((\n") is None
    assert check_syntax_change("a.py", "x = (\n", "x = 1\n") is None
    assert check_syntax_change("a.py", "x = 1\n", "x = 2\n") is None


def test_in_a_long_file_the_statements_around_the_edit_are_read() -> None:
    block = "@wraps\ndef name_{0}(\n    a,\n):\n    if a:\n        return {0}\n\n"
    before = "".join(block.format(number) for number in range(4_000))

    broken = before.replace("        return 3000", "        return (3000")
    moved = before.replace("        return 3000", "        total = 3000\n        return total")
    found = check_syntax_change("a.py", before, broken)

    assert found is not None
    assert found.startswith("line 21006: ")
    assert check_syntax_change("a.py", before, moved) is None


@pytest.mark.parametrize(
    ("name", "piece"), [("a.py", "("), ("b.json", "["), ("c.yaml", "["), ("d.toml", "a=[")]
)
def test_deep_and_huge_files_are_let_be(name: str, piece: str) -> None:
    check_syntax(name, piece * 5_000)
    assert check_syntax(name, piece * 5_000_000) is None
