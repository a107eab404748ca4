"""Result of the `terminal` tool: streams within limits, exit code and its meaning, notes, hints."""

from __future__ import annotations

import os
import re
import signal
from typing import TYPE_CHECKING

from hermes.core.entry import ToolResult
from hermes.environments.command_wait import wanted_input

if TYPE_CHECKING:
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.environments.command import CommandResult


_SIGNALS = {
    9: "killed (by SIGKILL: out of memory, or stopped from outside)",
    11: "crashed (segmentation fault)",
    6: "aborted (a failed assertion, or memory damaged)",
    7: "crashed (bus error)",
    8: "crashed (arithmetic error)",
    4: "crashed (illegal instruction)",
    2: "interrupted",
    13: "its reader went away (broken pipe)",
    15: "ended on request (SIGTERM)",
    24: "ran out of its CPU time limit",
    25: "wrote past the file size limit",
}
_GENERAL = {
    124: "timed out",
    126: "found, but not executable",
    127: "command not found",
}
# Exit codes that are answers, not failures, by program.
_ANSWERS: dict[str, dict[int, str]] = {
    "grep": {1: "no match"},
    "diff": {1: "the inputs differ"},
    "cmp": {1: "the files differ"},
    "test": {1: "the condition is false"},
    "[": {1: "the condition is false"},
    "[[": {1: "the condition is false"},
    "expr": {1: "the result is empty or 0"},
    "pgrep": {1: "no process matches"},
    "pkill": {1: "no process matches"},
    "which": {1: "not found"},
    "systemctl": {3: "the unit is not active"},
    "pytest": {1: "some tests failed", 5: "no tests were found"},
    "make": {2: "a rule failed"},
    "curl": {
        6: "the host name was not found",
        7: "no connection",
        22: "the server answered with an error",
        28: "timed out",
        60: "the certificate is not trusted",
    },
    "rsync": {23: "some files were not transferred", 24: "some files vanished meanwhile"},
    "ssh": {255: "the connection failed"},
    "shellcheck": {1: "it has remarks"},
    "read": {1: "nothing to read: standard input is at its end"},
}
_SAME = {
    "egrep": "grep", "fgrep": "grep", "zgrep": "grep", "rg": "grep", "ag": "grep", "ack": "grep",
    "git grep": "grep", "colordiff": "diff", "zdiff": "diff", "git diff": "diff",
}  # fmt: skip
_LAST = re.compile(r"(?:\|\||&&|[;|&\n])")
_WRAPPERS = frozenset({"sudo", "command", "time", "nice", "nohup", "env", "exec", "builtin", "!"})


def exit_meaning(code: int, command: str = "") -> str | None:
    """The meaning of a command's exit code; None if the number says it all."""
    if code == 0:
        return None
    if code < 0 or 128 < code < 128 + 65:
        number = -code if code < 0 else code - 128
        if number in _SIGNALS:
            return _SIGNALS[number]
        try:
            return f"ended by {signal.Signals(number).name}"
        except ValueError:
            # A number of the program's own.
            return None
    program = _program(command)
    return _ANSWERS.get(_SAME.get(program, program), {}).get(code) or _GENERAL.get(code)


def _program(command: str) -> str:
    """The program that most likely set the exit code of a command line."""
    words = _LAST.split(command.strip().rstrip(";&| \n"))[-1].split()
    while words and (words[0] in _WRAPPERS or re.fullmatch(r"[A-Za-z_]\w*=.*", words[0])):
        words = words[1:]
    if not words:
        return ""
    name = words[0].rpartition("/")[2]
    if name == "git" and len(words) > 1:
        return f"git {words[1]}"
    if re.fullmatch(r"python[\d.]*", name) and words[1:3] == ["-m", "pytest"]:
        return "pytest"
    return name


# Characters of each stream for the model; more of the end, which has the outcome.
SHOWN = 30_000
_MOST_TURNS = 60


def report(
    ctx: ToolContext, command: str, result: CommandResult, *, pty: bool, fed: bool = False
) -> ToolResult:
    """The result of the `terminal` tool; `fed` says that the command had a stdin."""
    notes = list(result.notes)
    data: dict[str, Any] = {"exit_code": result.exit_code}
    if result.ended in ("cancelled", "needs input", "lost") and result.exit_code < 0:
        del data["exit_code"]
    data.update(streams(ctx, result, notes))
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
        f"lost after {seconds}: the shell that ran it, or its guardian, is gone",
        "Its progress is not known; look before trying again.",
    )


def streams(
    ctx: ToolContext,
    result: CommandResult,
    notes: list[str],
    *,
    stdout: int = SHOWN,
    stderr: int = SHOWN,
) -> dict[str, Any]:
    """Both streams within so many characters each, and the artifact that has the whole."""
    out, err = result.stdout, result.stderr
    shown: dict[str, Any] = {"stdout": _cut(out, stdout)}
    if err:
        shown["stderr"] = _cut(err, stderr)
    turns = result.output.turns()
    if turns and result.ordered and turns.count(",") < _MOST_TURNS:
        shown["order"] = turns
    whole = len(out) <= stdout and len(err) <= stderr and not result.truncated
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
    """The handle of the artifact with the whole output; None without an artifact store."""
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


def _cut(text: str, most: int) -> str:
    """The beginning and the end of a text, in whole lines where it has any."""
    if len(text) <= most:
        return text
    first = most // 3
    head, tail = text[:first], text[-(most - first) :]
    at = head.rfind("\n")
    if at > first // 2:
        head = head[: at + 1]
    at = tail.find("\n")
    if 0 <= at < len(tail) // 2:
        tail = tail[at + 1 :]
    return f"{head}\n… {len(text) - len(head) - len(tail)} characters left out …\n{tail}"
