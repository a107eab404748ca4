"""What runs beside a task's commands: names, limits, and which are forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.errors import ToolError
from hermes.environments.background import MAX_BACKGROUND
from hermes.environments.host.host_environment import LocalEnvironment


def test_of_those_that_ended_the_newest_are_kept(tmp_path: Path) -> None:
    local = LocalEnvironment(str(tmp_path))
    for _ in range(MAX_BACKGROUND + 3):
        local.start("true").wait(20)
    known = [one.name for one in local.processes()]
    local.cleanup()

    assert known[-1] == f"p{MAX_BACKGROUND + 3}"
    assert len(known) <= MAX_BACKGROUND + 1
    assert "p1" not in known


def test_no_more_than_so_many_run_at_once_and_each_name_once(tmp_path: Path) -> None:
    local = LocalEnvironment(str(tmp_path))
    try:
        for _ in range(MAX_BACKGROUND - 1):
            local.start("sleep 3111")
        local.start("sleep 3111", name="web")
        with pytest.raises(ToolError, match=f"{MAX_BACKGROUND} commands run in the background"):
            local.start("true")
        local.processes()[0].kill("the test")
        assert local.processes()[0].wait(20)
        with pytest.raises(ToolError, match="web runs already"):
            local.start("true", name="web")
        assert local.start("true").wait(20)
    finally:
        local.cleanup()
