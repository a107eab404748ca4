"""Every example in the documents runs, and prints what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.S | re.M)
# A YAML block that begins with a file's name is that file, for the commands of its document.
_FILE = re.compile(r"^```yaml\n# (\S+\.yaml)\n(.*?)^```$", re.S | re.M)
ELISION = "…"


def _blocks(kind: str) -> list[object]:
    found = []
    for document in DOCUMENTS:
        for number, (language, text) in enumerate(_BLOCK.findall(document.read_text()), 1):
            if language == kind:
                name = f"{document.relative_to(ROOT)}:{number}"
                found.append(pytest.param(text, document, id=name))
    return found


def _environment(home: Path) -> dict[str, str]:
    scripts = str(Path(sys.executable).parent)
    path = os.pathsep.join([scripts, os.environ["PATH"]])
    return {**os.environ, "HERMES_HOME": str(home), "PATH": path, "COLUMNS": "100"}


@pytest.mark.parametrize(("text", "document"), _blocks("python"))
def test_python_example_runs(text: str, document: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", text],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=_environment(tmp_path / "home"),
        timeout=60,
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("text", "document"), _blocks("console"))
def test_console_example_prints_what_it_says(text: str, document: Path, tmp_path: Path) -> None:
    for name, content in _FILE.findall(document.read_text()):
        (tmp_path / name).write_text(content)

    for command, expected in _commands(text):
        done = subprocess.run(
            ["bash", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=tmp_path,
            env=_environment(tmp_path / "home"),
            timeout=60,
        )

        assert _fits(done.stdout, expected), f"$ {command}\n{done.stdout}\n--- expected\n{expected}"


def _commands(text: str) -> list[tuple[str, str]]:
    parts = re.split(r"^\$ ", text, flags=re.M)[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


def _fits(printed: str, expected: str) -> bool:
    """Whether the output is the expected one, where an elision stands for any text."""
    pieces = [re.escape(piece.strip()) for piece in expected.split(ELISION)]
    return re.fullmatch(r"\s*" + r"[\s\S]*".join(pieces) + r"\s*", printed) is not None
