"""The two commands of the README, from a clean copy of the project with nothing installed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The project's own files as they are now, and nothing else."""
    target = tmp_path / "clone"
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


def _environment(tmp_path: Path) -> dict[str, str]:
    """A person's environment: nothing of the tests', no active virtual environment."""
    unwanted = ("VIRTUAL_ENV", "PYTHONPATH", "PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST", "CI")
    kept = {key: value for key, value in os.environ.items() if key not in unwanted}
    folder = str(Path(sys.executable).parent)
    path = [part for part in kept["PATH"].split(os.pathsep) if part != folder]
    return {**kept, "PATH": os.pathsep.join(path), "HERMES_HOME": str(tmp_path / "home")}


def _run(clone: Path, tmp_path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=clone,
        env=_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_both_commands_work_from_a_clean_clone(clone: Path, tmp_path: Path) -> None:
    first = _run(clone, tmp_path, "./hermes", "tools", "list")
    second = _run(clone, tmp_path, "./hermes", "tools", "list")
    tests = _run(clone, tmp_path, "make", "test", "TESTS=tests/core/test_result.py")

    assert first.returncode == 0, first.stderr
    assert "system_info" in first.stdout
    assert "first run" in first.stderr
    assert second.stdout == first.stdout
    assert second.stderr == ""
    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert " passed" in tests.stdout


def test_a_first_run_that_was_cut_short_is_repaired_by_the_next(
    clone: Path, tmp_path: Path
) -> None:
    first = subprocess.Popen(
        ["./hermes", "--version"],
        cwd=clone,
        env=_environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    while not (clone / ".venv" / "bin").exists() and first.poll() is None:
        time.sleep(0.05)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()

    again = _run(clone, tmp_path, "./hermes", "--version")

    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("hermes ")
    assert "first run" in again.stderr


def test_the_launcher_starts_nothing_but_the_program_once_installed(
    clone: Path, tmp_path: Path
) -> None:
    """Counted, not timed: an installed launcher execs, so one program runs under one pid."""
    program = clone / ".venv" / "bin" / "hermes"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$$ $PPID $*"\n')
    program.chmod(0o755)
    (clone / ".venv" / ".ready").write_text(f"{clone.resolve()}\n")

    started = subprocess.Popen(
        [str(clone / "hermes"), "a b", "c"], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    shown, _ = started.communicate()

    pid, parent, rest = shown.split(maxsplit=2)
    assert (int(pid), int(parent)) == (started.pid, os.getpid())
    assert rest == "a b c\n"
