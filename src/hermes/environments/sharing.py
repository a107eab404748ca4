"""What every environment is given, whatever its kind."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Shared:
    """Whose an environment is, what its commands may see of ours, how their output is kept.

    Args:
        env: The task's variables, which commands change; None takes one away.
        task: The task, for people and for labels.
        workspace: The task's folder by the name that file tools know. Where it is not mounted, the
            folder that commands begin in stands for it.
        passed: Names of our own variables that commands may see besides the usual ones.
        spill_folder: Where output is kept that is too much for memory; else with temporary files.
        ansi: Leave colours and other escapes in what commands print.
        idle_seconds: After so long without use, end what can be made again; 0 is never.
    """

    __slots__ = ("ansi", "env", "idle_seconds", "passed", "spill_folder", "task", "workspace")

    def __init__(
        self,
        *,
        env: dict[str, str | None] | None = None,
        task: str = "main",
        workspace: str = "",
        passed: Sequence[str] = (),
        spill_folder: str | None = None,
        ansi: bool = False,
        idle_seconds: float = 0.0,
    ) -> None:
        self.env = {} if env is None else env
        self.task = task
        self.workspace = workspace
        self.passed = tuple(passed)
        self.spill_folder = spill_folder
        self.ansi = ansi
        self.idle_seconds = idle_seconds

    def passed_on(self) -> dict[str, str]:
        """Those of our own variables that are named, as they are now."""
        return {name: os.environ[name] for name in self.passed if name in os.environ}

    def named(self, place: str, begin: str) -> str:
        """A place where commands begin in `begin`, by the workspace's name where it lies in that.

        The root of a system is nobody's workspace.
        """
        if not self.workspace or begin.strip("/") == "" or not inside(place, begin):
            return place
        return moved(place, begin, self.workspace)


def inside(place: str, folder: str) -> bool:
    """Whether a place is a folder or lies in it."""
    return bool(folder) and (place == folder or place.startswith(f"{folder.rstrip('/')}/"))


def moved(place: str, folder: str, target: str) -> str:
    """The place in `target` that one in `folder` stands for."""
    rest = place[len(folder.rstrip("/")) :]
    return f"{target.rstrip('/')}{rest}" or "/"
