"""What the gate has to judge: not a command's text alone, but all that decides what it does."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.core.context import ToolContext


def judged(
    ctx: ToolContext,
    command: str,
    *,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
) -> str:
    """A shell text that does what the command will: with the variables, functions and aliases that
    earlier commands left, with those of this call, and with what it is given to read."""
    from hermes.environments.tasks import environment_so_far

    so_far = environment_so_far(ctx)
    definitions = so_far.definitions if so_far is not None else ""
    if not (definitions or env or stdin or ctx.task.env):
        return command
    lines = [definitions] if definitions else []
    used = {
        name: value
        for name, value in ctx.task.env.items()
        # What the gate does not see used can't change what it sees.
        if value is not None and (name in command or name in definitions)
    }
    lines += [f"{name}={shlex.quote(value)}" for name, value in used.items()]
    lines += [
        f"export {name}={shlex.quote(value)}"
        for name, value in (env or {}).items()
        if isinstance(name, str) and isinstance(value, str)
    ]
    if stdin:
        command = f"printf %s {shlex.quote(stdin)} | {{\n{command}\n}}"
    return "\n".join([*lines, command])
