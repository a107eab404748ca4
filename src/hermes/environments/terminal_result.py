"""Result of the `terminal` tool: streams within limits, exit code, notes, hints."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.result import ToolResult
from hermes.environments.exit_codes import exit_meaning
from hermes.environments.input_wait import wanted_input

if TYPE_CHECKING:
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.environments.command import CommandResult

# How many characters of each stream the model sees; more of the end, where the outcome is.
SHOWN = 30_000
_HEAD = SHOWN // 3
_MOST_TURNS = 60


def report(
    ctx: ToolContext, command: str, result: CommandResult, *, pty: bool, fed: bool = False
) -> ToolResult:
    """The answer of the terminal tool; `fed` says that the command was given something to read."""
    notes = list(result.notes)
    data: dict[str, Any] = {"exit_code": result.exit_code}
    if result.ended in ("cancelled", "needs input", "lost") and result.exit_code < 0:
        del data["exit_code"]
    data.update(_streams(ctx, result, notes))
    meaning = exit_meaning(result.exit_code, command) if result.ended == "exited" else None
    if meaning:
        data["meaning"] = meaning
    data["cwd"] = result.cwd
    data["duration_seconds"] = round(result.duration, 3 if result.duration < 1 else 1)
    if result.background is not None:
        data["process"] = result.background.name
        if result.background_pids:
            data["background_pids"] = list(result.background_pids)
            notes.append(
                f"still running: pid {', '.join(map(str, result.background_pids))}, as process "
                f"{result.background.name}; it ends with the task"
            )
    if result.ended in ("exited", "timeout") and not pty:
        wanted = wanted_input(
            command,
            result.output.merged,
            stdout=result.stdout,
            failed=result.exit_code != 0,
            fed=fed,
            stopped=result.ended == "timeout",
        )
        if wanted:
            notes.append(f"needs input: {wanted} (give stdin, or pty=true and process write)")
    if result.ended == "exited":
        return ToolResult(data, notes=notes)
    error, hint = _trouble(result)
    return ToolResult(data, error=error, hint=hint, notes=notes)


def _trouble(result: CommandResult) -> tuple[str, str]:
    seconds = f"{result.duration:.1f} s"
    if result.ended == "timeout":
        return (
            f"timed out after {seconds}; it and everything it started was stopped",
            "What it had done until then stays done. Allow more time, or use background=true.",
        )
    if result.ended == "cancelled":
        return (
            f"cancelled after {seconds}; it and everything it started was stopped",
            "What it had done until then stays done; look before going on.",
        )
    if result.ended == "needs input":
        asked = result.prompt or "it reads from the terminal, and asks nothing"
        if result.background is not None:
            return (
                f"needs input: {asked}",
                f"Answer with process write, name {result.background.name}; or process kill.",
            )
        return (
            f"needs input: {asked}",
            "It was stopped. Use an option that answers beforehand, stdin, or pty=true.",
        )
    return (
        f"lost after {seconds}: what ran it, or watched over it, is gone",
        "Nobody knows how far it came; look before trying again.",
    )


def _streams(ctx: ToolContext, result: CommandResult, notes: list[str]) -> dict[str, Any]:
    stdout, stderr = result.stdout, result.stderr
    shown: dict[str, Any] = {"stdout": _cut(stdout)}
    if stderr:
        shown["stderr"] = _cut(stderr)
    turns = result.output.turns()
    if turns and result.ordered and turns.count(",") < _MOST_TURNS:
        shown["order"] = turns
    whole = len(stdout) <= SHOWN and len(stderr) <= SHOWN and not result.truncated
    if not whole:
        shown["output_bytes"] = result.output.total
        handle = _kept(ctx, result)
        if handle:
            shown["artifact"] = handle
            notes.append(f"output was cut; read_artifact {handle} has the rest")
        else:
            notes.append("output was cut; write it to a file to see the rest")
    elif result.spill is not None:
        os.unlink(result.spill)
    return shown


def _kept(ctx: ToolContext, result: CommandResult) -> str | None:
    """The handle of the whole output; None where large results are not kept."""
    artifacts = ctx.services.artifacts
    if artifacts is None:
        if result.spill is not None:
            os.unlink(result.spill)
        return None
    if result.spill is not None:
        return str(artifacts.adopt(result.spill, source=ctx.source))
    text = result.output.merged
    runtime = ctx.services.runtime
    shown = runtime.redactor.redact(text) if runtime is not None else text
    return str(artifacts.put(shown, source=ctx.source))


def _cut(text: str) -> str:
    """The beginning and the end of a text, in whole lines where it has any."""
    if len(text) <= SHOWN:
        return text
    head, tail = text[:_HEAD], text[-(SHOWN - _HEAD) :]
    at = head.rfind("\n")
    if at > _HEAD // 2:
        head = head[: at + 1]
    at = tail.find("\n")
    if 0 <= at < len(tail) // 2:
        tail = tail[at + 1 :]
    return f"{head}\n… {len(text) - len(head) - len(tail)} characters left out …\n{tail}"
