"""The last commit is read, and a repository makes nothing run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.files.remote_disk import far_disk

from hermes.core import ToolError
from hermes.files.compare.content_diff import committed


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub/file").write_bytes(b"one\n\xff\0")
    (folder / ":odd *[name").write_text("odd")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "First")
    return folder


def test_the_committed_bytes_are_given(repository: Path) -> None:
    (repository / "sub/file").write_text("two")

    assert committed(str(repository / "sub/file")) == b"one\n\xff\0"
    assert committed(str(repository / ":odd *[name")) == b"odd"


def test_a_file_that_is_not_in_the_commit_is_nothing(repository: Path) -> None:
    (repository / "new").write_text("")

    assert committed(str(repository / "new")) is None


def test_on_another_machine_its_own_git_is_asked(repository: Path, tmp_path: Path) -> None:
    (repository / "sub/file").write_text("two")
    far = far_disk().run

    assert committed(str(repository / "sub/file"), far=far) == b"one\n\xff\0"
    assert committed(str(repository / ":odd *[name"), far=far) == b"odd"
    assert committed(str(repository / "new"), far=far) is None
    with pytest.raises(ToolError, match="not a git repository"):
        committed(str(tmp_path / "file"), far=far)


def test_no_repository_and_no_commit_are_said(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="not a git repository"):
        committed(str(tmp_path / "file"))

    git(tmp_path, "init", "-q")
    with pytest.raises(ToolError, match="no commit"):
        committed(str(tmp_path / "file"))


def test_nothing_that_a_repository_names_is_run(repository: Path, tmp_path: Path) -> None:
    trap = f"touch {tmp_path}/sprung"
    for name in ("core.pager", "core.fsmonitor", "core.sshCommand", "diff.trap.textconv",
                 "filter.trap.smudge", "diff.external", "alias.cat-file", "core.editor"):  # fmt: skip
        git(repository, "config", name, trap if name != "alias.cat-file" else f"!{trap}")
    (repository / ".gitattributes").write_text("* diff=trap filter=trap\n")
    hooks = repository / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "pre-commit", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\n{trap}\n")
        (hooks / name).chmod(0o755)

    assert committed(str(repository / "sub/file"))
    assert not (tmp_path / "sprung").exists()


def test_the_environment_of_the_caller_is_not_used(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {tmp_path}/sprung")
    monkeypatch.setenv("HOME", os.devnull)

    assert committed(str(repository / "sub/file"))
    assert not (tmp_path / "sprung").exists()


def test_waiting_for_git_can_be_stopped(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "bin"
    slow.mkdir()
    (slow / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (slow / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow}:{os.environ['PATH']}")

    def check() -> None:
        raise ToolError("stop")

    with pytest.raises(ToolError, match="stop"):
        committed(str(repository / "sub/file"), check)
