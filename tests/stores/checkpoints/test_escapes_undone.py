"""Commands that try everything, confined: the workspace is the same after undo, times included."""

from __future__ import annotations

import os

from tests.environments.confinement.conftest import require
from tests.environments.confinement.test_escapes import Outside, commands, outside, prepare
from tests.stores.checkpoints.test_kinds import exact

from hermes.environments.confinement import ConfinedEnvironment, ConfinedMachine, Settings
from hermes.stores.checkpoints import Author, Checkpoints

__all__ = ["outside"]


def test_the_workspace_is_the_same_after_undo_of_every_command(outside: Outside) -> None:
    require("bubblewrap")
    work = outside.workspace
    prepare(work)
    os.link(work / "a.txt", work / "b.txt")
    machine = ConfinedMachine(str(work), Settings(), task="undone", mechanisms=["bubblewrap"])
    environment = ConfinedEnvironment(str(work), Settings(), machine=machine)
    changing, failures = 0, []
    with Checkpoints() as store:
        try:
            environment.execute("true", timeout=20)
            outside.begin()
            before = exact(work)
            for number, template in enumerate(commands()):
                command = outside.command(template, number)
                author = Author("s", f"turn{number}", f"call{number}", "terminal")
                snapshot = store.snapshot(str(work), author)
                environment.execute(command, timeout=20, cwd=str(work))
                store.after_command(snapshot)
                if exact(work) == before:
                    continue
                changing += 1
                report = store.undo(turn=author.turn, below=str(work))
                after = exact(work)
                if report.left or after != before:
                    names = {*before, *after}
                    wrong = [name for name in names if before.get(name) != after.get(name)]
                    failures.append(f"{command}: {report.left[:2]} {wrong[:4]}")
                    before = after
        finally:
            environment.cleanup()
    assert changing >= 60
    assert not failures, "\n".join(failures)
