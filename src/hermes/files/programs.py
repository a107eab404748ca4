"""Programs that tools start without a shell: confined, and undoable like commands of `terminal`."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from typing import TYPE_CHECKING

from hermes.environments.for_task import answer_host_questions, local_environment
from hermes.files.command_undo import coverage, protected

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.environments.command import CommandResult


class TaskPrograms:
    """Programs of other tools, such as YAML tools: confined and undoable like commands."""

    def limits(self, context: ToolContext, argv: Sequence[str]) -> tuple[Any, ...]:
        """The last fields of its `CallEffect`: confinement, no reason to leave it, undo."""
        environment = local_environment(context)
        outside = environment.runs_outside(shlex.join(argv))
        return "" if outside else environment.mechanism, None, coverage

    def run(
        self, context: ToolContext, argv: Sequence[str], *, cwd: str, env: Mapping[str, str]
    ) -> CommandResult:
        """Run a program to its end; whatever it leaves running is ended."""
        environment = local_environment(context)
        outside = environment.runs_outside(shlex.join(argv))
        answer_host_questions(context, environment, shlex.join(argv))
        with (
            protected(context, cwd=cwd) as unprotected,
            environment.outside() if outside else nullcontext(),
        ):
            result = environment.run_program(
                argv, cwd=cwd, env=env, cancellation=context.cancellation
            )
        result.notes.extend(unprotected)
        return result


PROGRAMS = TaskPrograms()
