"""Hooks and settings of git repositories are not written by file tools."""

from __future__ import annotations

import pytest

from hermes.safety.paths.guards import find_guard

HOME = "/home/dev"


def guard(path: str, mode: str) -> str | None:
    return find_guard(path.strip("/").split("/"), mode, home=HOME)


@pytest.mark.parametrize(
    "path",
    [
        "/home/dev/app/.git/hooks/pre-commit",
        "/home/dev/app/.git/hooks",
        "/home/dev/app/.git/config",
        "/home/dev/app/.GIT/Config",
        "/srv/app.git/hooks/post-receive",
        "/home/dev/app/.git/modules/lib/hooks/x",
        "/home/dev/app/.git/modules/lib/config",
        "/home/dev/app/.git/worktrees/a/config.worktree",
        "/home/dev/app/.hermes/plugins/x.py",
    ],
)
def test_what_git_or_hermes_would_run_can_be_read_and_not_written(path: str) -> None:
    assert guard(path, "write")
    assert guard(path, "read") is None


@pytest.mark.parametrize(
    "path",
    [
        "/home/dev/app/.git/info/exclude",
        "/home/dev/app/.github/config",
        "/home/dev/app/hooks/pre-commit",
        "/home/dev/app/config",
        "/home/dev/app/.gitignore",
        "/home/dev/app/.hermes/notes.md",
    ],
)
def test_ordinary_files_of_a_project_stay_open(path: str) -> None:
    assert guard(path, "write") is None
