"""Linters, formatters and test runners: real ones, on small real projects."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.core.entry import ToolCall, ToolOutcome
from hermes.core.registry import ToolRegistry
from hermes.runtime.app import App
from hermes.runtime.pipeline import Runtime

BIN = Path(sys.executable).parent


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """A project whose virtual environment has the programs that our own has."""
    work = tmp_path / "work"
    (work / "venv" / "bin").mkdir(parents=True)
    for name in ("ruff", "mypy", "pytest"):
        program = work / "venv" / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {BIN / "python"} -m {name} "$@"\n')
        program.chmod(0o755)
    monkeypatch.chdir(work)
    app = App(ToolRegistry())
    yield app.runtime
    app.close()


def outcome(runtime: Runtime, tool: str, **arguments: Any) -> ToolOutcome:
    return runtime.call_sync(ToolCall(tool, arguments), runtime.context(approver=lambda _: True))


def run(runtime: Runtime, tool: str, **arguments: Any) -> dict[str, Any]:
    ended = outcome(runtime, tool, **arguments)
    assert ended.ok, ended.content
    value: dict[str, Any] = ended.value
    return value


def git(*words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", *identity, *words], check=True, capture_output=True)


def test_linters_of_the_project_report_rows(runtime: Runtime) -> None:
    Path("pyproject.toml").write_text("[tool.ruff]\n[tool.mypy]\nstrict = true\n")
    Path("a.py").write_text("import os\n\n\ndef f(x: int) -> str:\n    return x\n")

    result = run(runtime, "code_lint", paths=["a.py"])

    assert result["linters"] == ["ruff", "mypy"]
    rows = {(row["tool"], row["line"], row["rule"]) for row in result["remarks"]}
    assert rows == {("ruff", 1, "F401"), ("mypy", 5, "return-value")}
    assert [row.get("fixable") for row in result["remarks"]] == [True, None]


def test_fix_shows_the_diff_and_can_be_undone(runtime: Runtime) -> None:
    text = "import os\n\nprint(1)\n"
    Path("a.py").write_text(text)

    result = run(runtime, "code_lint", paths=["a.py"], fix=True)

    assert result["changed"] == ["a.py"]
    assert "-import os" in result["diff"]
    assert result["count"] == 0
    subprocess.run([str(BIN / "hermes"), "undo"], check=True, capture_output=True, timeout=60)
    assert Path("a.py").read_text() == text


def test_only_changed_files_are_checked_by_default(runtime: Runtime) -> None:
    Path(".gitignore").write_text("venv\n")
    Path("old.py").write_text("import os\n")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "first")
    Path("new.py").write_text("import sys\n")

    result = run(runtime, "code_lint")

    assert [row["file"] for row in result["remarks"]] == ["new.py"]
    assert any("changed files alone" in note for note in result["notes"])


def test_a_configured_linter_that_is_missing_is_named(runtime: Runtime) -> None:
    Path("pyrightconfig.json").write_text("{}")
    Path("pyproject.toml").write_text("[tool.ruff]\n")
    Path("a.py").write_text("x = 1\n")

    result = run(runtime, "code_lint", paths=["a.py"])

    assert result["count"] == 0
    assert "pyright is configured here and not installed" in result["notes"]


def test_no_linter_is_an_error_with_names(runtime: Runtime) -> None:
    ended = outcome(runtime, "code_lint", paths=["a.zig"])

    assert "no linter for these files" in (ended.error or "")


def test_shellcheck(runtime: Runtime) -> None:
    Path("a.sh").write_text("#!/bin/sh\necho $1\n")

    result = run(runtime, "code_lint", paths=["."])

    assert ("a.sh", "SC2086") in {
        (row["file"].removeprefix("./"), row["rule"]) for row in result["remarks"]
    }


def test_format_and_check(runtime: Runtime) -> None:
    Path("a.py").write_text("x   =  1\n")

    checked = run(runtime, "code_format", paths=["a.py"], check=True)
    assert checked["clean"] is False
    assert "+x = 1" in checked["diff"]
    assert Path("a.py").read_text() == "x   =  1\n"

    formatted = run(runtime, "code_format", paths=["a.py"])
    assert formatted["changed"] == ["a.py"]
    assert Path("a.py").read_text() == "x = 1\n"
    assert run(runtime, "code_format", paths=["a.py"], check=True)["clean"] is True


TESTS = """\
import pytest

def half(n):
    assert n % 2 == 0, "odd number"
    return n // 2

def test_even():
    assert half(4) == 2

def test_odd():
    assert half(3) == 1

@pytest.mark.skip
def test_later():
    pass
"""


def test_pytest_counts_and_places(runtime: Runtime) -> None:
    Path("conftest.py").touch()
    Path("test_half.py").write_text(TESTS)

    result = run(runtime, "code_test")

    assert (result["runner"], result["passed"], result["failed"], result["skipped"]) == (
        "pytest",
        1,
        1,
        1,
    )
    failure = result["failures"][0]
    assert failure["test"] == "test_half::test_odd"
    assert "odd number" in failure["message"]
    assert failure["where"] == "test_half.py:4"

    again = run(runtime, "code_test", select="failed")
    assert (again["passed"], again["failed"]) == (0, 1)
    assert run(runtime, "code_test", name="even")["passed"] == 1


def test_a_broken_test_file_is_a_failure_with_its_reason(runtime: Runtime) -> None:
    Path("test_broken.py").write_text("import nothing_like_this\n")

    result = run(runtime, "code_test", paths=["test_broken.py"])

    assert result["failed"] == 1
    assert "nothing_like_this" in str(result["failures"])


def test_a_timeout_says_what_had_run(runtime: Runtime) -> None:
    Path("test_slow.py").write_text(
        "import time\ndef test_quick(): pass\ndef test_slow(): time.sleep(60)\n"
    )

    ended = outcome(runtime, "code_test", paths=["test_slow.py"], timeout=8)

    assert "stopped after" in (ended.error or "")
    assert ended.value["data"]["passed"] == 1
    assert "test_slow" in ended.value["hint"]


def test_unittest(runtime: Runtime) -> None:
    (Path("venv") / "bin" / "pytest").unlink()
    Path("test_u.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n"
        "    def test_ok(self): pass\n"
        "    def test_bad(self): self.assertEqual(1, 2)\n"
    )

    result = run(runtime, "code_test", runner="unittest")

    assert (result["passed"], result["failed"]) == (1, 1)
    assert result["failures"][0]["message"] == "AssertionError: 1 != 2"
    assert result["failures"][0]["where"] == "test_u.py:4"


def test_node(runtime: Runtime) -> None:
    Path("package.json").write_text('{"scripts": {"test": "node --test"}}')
    Path("a.test.mjs").write_text(
        "import test from 'node:test'; import assert from 'node:assert';\n"
        "test('ok', () => {});\ntest('bad', () => { assert.equal(1, 2) });\n"
    )

    result = run(runtime, "code_test")

    assert (result["runner"], result["passed"], result["failed"]) == ("node --test", 1, 1)
    assert result["failures"][0]["where"] == "a.test.mjs:3"


def test_a_runner_that_is_not_there_names_those_that_are(runtime: Runtime) -> None:
    ended = outcome(runtime, "code_test", runner="vitest")

    assert "vitest can't be run here" in (ended.error or "")
    assert "pytest" in ended.value["hint"]
