"""Everyday work: commands of developers end confined as they do outside."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.environments.confinement.conftest import require

from hermes.environments.confinement import ConfinedEnvironment, ConfinedMachine, Settings
from hermes.environments.host.host_environment import LocalEnvironment

DATA = Path(__file__).parents[2] / "data" / "everyday.txt"
FILES = {
    "README.md": "# A project\n\nwith one line\n",
    ".gitignore": "build/\n",
    "src/app.py": 'def main():\n    print("hello")\n\n\nmain()\n',
    "src/hello.c": '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n',
    "tests/test_app.py": (
        "import unittest\n\n\nclass Test(unittest.TestCase):\n"
        "    def test_it(self):\n        self.assertEqual(1, 1)\n"
    ),
    "tests/app.test.js": 'require("node:test")("it", () => {});\n',
    "Makefile": (
        "all: build/hello\nbuild/hello: src/hello.c\n\tmkdir -p build\n\t$(CC) -o $@ $<\n"
        "clean:\n\trm -f build/hello\n"
    ),
    "package.json": '{"name": "project", "version": "1.0.0", "scripts": {"hello": "echo hello"}}\n',
    "run.sh": "#!/bin/sh\necho run\n",
}
GIT = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=main"]
# Not by Landlock alone, and said so in docs/confinement.md: /tmp and /dev/shm are not writable.
NOT_BY_LANDLOCK = re.compile(r"> /tmp/|multiprocessing")


def commands() -> list[str]:
    lines = DATA.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def make_project(folder: Path) -> Path:
    project = folder / "project"
    for name, text in FILES.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in ("library", "project"):
        (folder / name).mkdir(exist_ok=True)
        subprocess.run([*GIT, "-C", str(folder / name), "init", "-q"], check=True)
        subprocess.run([*GIT, "-C", str(folder / name), "add", "-A"], check=True)
        commit = ["commit", "-q", "--allow-empty", "-m", "first"]
        subprocess.run([*GIT, "-C", str(folder / name), *commit], check=True)
    subprocess.run(
        ["git", "clone", "-q", "--bare", str(project), str(folder / "remote.git")], check=True
    )
    hook = project / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\ntest -d .git || test -f .git\n")
    hook.chmod(0o755)
    return project


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    base = next(path for path in ("/srv", "/var/lib", str(Path.home())) if os.access(path, os.W_OK))
    found = Path(tempfile.mkdtemp(prefix="hermes-everyday-", dir=base))
    home = found / "person"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = n\n\temail = e@x\n")
    monkeypatch.setenv("HOME", str(home))
    yield found
    shutil.rmtree(found, ignore_errors=True)


def run_all(environment: LocalEnvironment) -> list[tuple[int | None, str]]:
    results = []
    for command in commands():
        done = environment.execute(command, timeout=120, cwd=environment.cwd)
        results.append((done.exit_code, done.stderr[-300:]))
    return results


@pytest.mark.parametrize("mechanism", ["bubblewrap", "landlock"])
def test_everyday_commands_end_as_outside(mechanism: str, folder: Path) -> None:
    require(mechanism)
    assert len(commands()) >= 150
    outside = LocalEnvironment(str(make_project(folder / "outside")))
    # The remote lies beside the project, and is written by `git push`.
    inside = make_project(folder / "inside")
    settings = Settings(write=(str(folder / "inside" / "remote.git"),))
    machine = ConfinedMachine(str(inside), settings, task="e", mechanisms=[mechanism])
    confined = ConfinedEnvironment(str(inside), settings, machine=machine)
    try:
        expected = run_all(outside)
        found = run_all(confined)
    finally:
        outside.cleanup()
        confined.cleanup()

    differences = [
        f"{command}: {ours[0]} instead of {theirs[0]}: {ours[1]}"
        for command, ours, theirs in zip(commands(), found, expected, strict=True)
        if ours[0] != theirs[0]
        and not (mechanism == "landlock" and NOT_BY_LANDLOCK.search(command))
    ]
    assert not differences, "\n".join(differences)
