"""Verdicts that are used again within a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hermes.safety.shell.verdict_cache as verdict_cache
from hermes.safety.shell import verdict_on

if TYPE_CHECKING:
    from pathlib import Path


def test_a_command_that_was_just_judged_is_not_judged_again(tmp_path: Path) -> None:
    cwd = str(tmp_path)
    verdict = verdict_cache.judge_now("ls -la | wc -l", cwd=cwd, home=None, workspace=cwd)
    assert verdict_on("ls -la | wc -l", cwd=cwd) is verdict
    assert (
        verdict_cache.judge_now("ls -la | wc -l", cwd=cwd, home=None, workspace=cwd) is not verdict
    )


def test_the_same_text_in_another_folder_is_another_command(tmp_path: Path) -> None:
    cwd = str(tmp_path)
    verdict = verdict_cache.judge_now("cat notes.txt", cwd=cwd, home=None, workspace=cwd)
    assert verdict_on("cat notes.txt", cwd=f"{cwd}/sub") is not verdict


def test_what_depends_on_a_script_is_found_out_anew(tmp_path: Path) -> None:
    script = tmp_path / "look.sh"
    script.write_text("ls\n")
    cwd = str(tmp_path)
    assert (
        verdict_cache.judge_now("sh look.sh", cwd=cwd, home=None, workspace=cwd).action == "allow"
    )
    script.write_text("rm -rf ~\n")
    assert verdict_on("sh look.sh", cwd=cwd).action == "refuse"


def test_only_so_many_are_kept(tmp_path: Path) -> None:
    cwd = str(tmp_path)
    for number in range(200):
        verdict_cache.judge_now(f"echo {number}", cwd=cwd, home=None, workspace=cwd)
    assert len(verdict_cache._verdicts) <= 64


def test_a_verdict_from_before_there_was_a_script_is_forgotten(tmp_path: Path) -> None:
    cwd = str(tmp_path)
    verdict_cache.judge_now("sh send.sh", cwd=cwd, home=None, workspace=cwd)
    (tmp_path / "send.sh").write_text("rm -rf ~\n")
    verdict_cache.judge_now("sh send.sh", cwd=cwd, home=None, workspace=cwd)
    assert verdict_on("sh send.sh", cwd=cwd).action == "refuse"
