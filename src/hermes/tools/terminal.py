"""Terminal tools: run commands in the task's shell, manage background processes."""

from __future__ import annotations

import re
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from hermes.core import ToolContext, ToolError, ToolResult, tool
from hermes.core.schema import Field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from hermes.core.protocols import Coverage, UndoCoverage
    from hermes.environments.background import Background
    from hermes.environments.confinement import ConfinedEnvironment

_DAY = 86_400
# As much of what was typed into a process as is judged together with what comes next.
_TYPED = 16_000
# Keys whose effect depends on the program (history, completion, editing, but not Enter, Ctrl-C and
# Ctrl-D), and lines that editors, pagers and debuggers give to a shell.
_UNREAD = re.compile(
    r"[\x00-\x02\x05-\x09\x0b\x0c\x0e-\x1f\x7f]|^\s*(?:[:\\]?!|shell\b)", re.MULTILINE
)

Action = Literal[
    "list", "status", "log", "wait", "ports",
    "start", "write", "submit", "close", "signal", "kill", "detach",
]  # fmt: skip


def _judged(arguments: Mapping[str, Any], ctx: ToolContext) -> Iterator[tuple[Any, ...]]:
    """The command text for the gate, with everything that affects it, and the working directory."""
    from hermes.environments.for_task import gate_text, syntax_error

    command = arguments["command"]
    error = syntax_error(command)
    if error:
        raise ToolError(f"the shell can't read this, and nothing ran: {error}", hint="Correct it.")
    text = gate_text(ctx, command, env=arguments.get("env"), stdin=arguments.get("stdin"))
    yield "execute", text, _folder(arguments, ctx), *_confinement(arguments, ctx), _undo(ctx)


def _judged_process(arguments: Mapping[str, Any], ctx: ToolContext) -> Iterator[tuple[Any, ...]]:
    action = arguments["action"]
    if action == "start" and arguments.get("command"):
        yield from _judged(arguments, ctx)
    elif action in ("write", "submit") and arguments.get("data"):
        yield _typing(arguments, ctx)
    elif action in ("signal", "kill", "close", "detach"):
        # Only what belongs to the task can be named, so nothing else can be meant.
        yield "execute", "true"


def _typing(arguments: Mapping[str, Any], ctx: ToolContext) -> tuple[str | None, ...]:
    """Text for the gate: the program with all input so far and this."""
    from hermes.environments import process_actions
    from hermes.environments.for_task import existing_environment, gate_text

    try:
        command_process = process_actions.find(existing_environment(ctx), arguments.get("name"))
    except ToolError:
        # The tool will say that there is none.
        return "execute", "true"
    before, data = ctx.task.typed.get(command_process.name, ""), arguments["data"]
    # The history is compacted by the same function; by then another question may stand there.
    over = before.rstrip("\n").endswith(data.rstrip("\n"))
    if not over and process_actions.types_secret(command_process):
        _keep_secret(ctx, before.rpartition("\n")[2], data)
    # Pieces of a line are harmless; the line need not be.
    return (
        "execute",
        gate_text(ctx, command_process.command, stdin=before + data),
        command_process.cwd,
        *_typed_confinement(ctx, command_process, data),
    )


def _keep_secret(ctx: ToolContext, begun: str, typed: str) -> None:
    """Redact the answer to a hidden prompt (a password) in logs and results from now on.

    That is the first line; it may have been typed in pieces.
    """
    runtime = ctx.services.runtime
    first = typed.strip().partition("\n")[0].strip()
    for value in {first, begun + first}:
        # A mere word or a small number would be masked wherever it is used.
        common = (value.isalpha() and len(value) < 12) or (value.isdecimal() and len(value) < 6)
        if runtime is not None and value and not common:
            runtime.redactor.add(value)


def _confinement(arguments: Mapping[str, Any], ctx: ToolContext) -> tuple[str, str | None]:
    """How the operating system confines a command, and why it is to run without that."""
    environment = _confined(ctx)
    if environment is None:
        return "", None
    if environment.runs_outside(arguments["command"]):
        return "", None
    if arguments.get("outside"):
        return "", str(arguments.get("reason") or "")
    return environment.mechanism, None


def _confined(ctx: ToolContext) -> ConfinedEnvironment | None:
    """The environment of a task whose commands are confined; None for any other."""
    from hermes.environments.confinement import ConfinedEnvironment
    from hermes.environments.for_task import backend_name, environment_of

    environment = environment_of(ctx) if backend_name(ctx) == "local" else None
    if isinstance(environment, ConfinedEnvironment) and environment.mechanism:
        return environment
    return None


@contextmanager
def _outside(ctx: ToolContext, command: str, outside: bool) -> Iterator[None]:
    """Run a command without confinement where that was asked for, or allowed for good."""
    from hermes.environments.for_task import answer_host_questions

    environment = _confined(ctx)
    if environment is not None and (outside or environment.runs_outside(command)):
        with environment.outside():
            yield
        return
    if environment is not None and environment.machine.settings.network == "hosts":
        answer_host_questions(ctx, environment, command)
    yield


def _typed_confinement(
    ctx: ToolContext, command_process: Background, data: str
) -> tuple[str | None, ...]:
    """What is typed has the limits of its program; without any, keys that no rule reads ask."""
    from hermes.environments.for_task import backend_name

    environment = _confined(ctx)
    if environment is not None and environment.confines(command_process):
        return environment.mechanism, None
    unread = command_process.on_terminal and _UNREAD.search(data)
    if unread and backend_name(ctx) == "local":
        return "", f"control keys or an escape to a shell, typed into {command_process.name}"
    return ()


def _folder(arguments: Mapping[str, Any], ctx: ToolContext) -> str:
    import os

    workdir = arguments.get("workdir")
    if not workdir:
        return os.path.normpath(ctx.cwd)
    return os.path.normpath(os.path.join(ctx.cwd, os.path.expanduser(workdir)))


@tool(
    toolset="system",
    permissions=["terminal:execute"],
    effect="execute",
    acts=_judged,
    aliases=["bash", "shell", "run_command", "execute_command", "run_terminal_command"],
    emoji="💻",
    max_result_size_chars=100_000,
    tags=[
        "run a command", "command line", "console", "cmd", "script", "execute", "install packages",
        "build", "compile", "git", "npm", "pip", "make", "docker", "server", "background",
    ],
)  # fmt: skip
def terminal(
    ctx: ToolContext,
    command: str,
    timeout: Annotated[float, Field(gt=0, le=_DAY)] = 180,
    workdir: str | None = None,
    background: bool = False,
    pty: bool = False,
    env: dict[str, str] | None = None,
    stdin: str | None = None,
    outside: Annotated[bool, Field(hidden=True)] = False,
    reason: Annotated[str, Field(hidden=True)] = "",  # noqa: ARG001 - shown by the gate
) -> ToolResult:
    """Run a shell command. Working directory and exported variables stay for the next one.

    Args:
        command: For bash; several lines are fine.
        timeout: Seconds until it is stopped.
        workdir: Directory for this command only.
        background: Return at once; look after it with process.
        pty: Run in a terminal, for programs that ask; answer with process write.
        env: More variables, for this command only.
        stdin: Text to read; otherwise standard input is closed.
    """
    from hermes.environments.for_task import environment_of, record_cwd
    from hermes.environments.process_actions import described
    from hermes.environments.terminal_result import report

    if not command.strip():
        raise ToolError("there is no command")
    environment = environment_of(ctx)
    folder = _folder({"workdir": workdir}, ctx)
    if background:
        start = partial(environment.start, command, cwd=workdir, env=env, stdin=stdin, pty=pty)
        with _outside(ctx, command, outside):
            started, unprotected = _start(ctx, folder, start)
        return ToolResult({**described(started), "output": started.recent()}, notes=unprotected)
    with _protect(ctx, folder) as unprotected, _outside(ctx, command, outside):
        result = environment.execute(
            command,
            timeout=timeout,
            cwd=workdir,
            env=env,
            stdin=stdin,
            pty=pty,
            on_output=ctx.output if ctx.report is not None else None,
            cancellation=ctx.cancellation,
        )
    result.notes.extend(unprotected)
    record_cwd(ctx, environment)
    return report(ctx, command, result, pty=pty, fed=stdin is not None)


@tool(
    toolset="system",
    permissions=["terminal:execute"],
    effect="execute",
    reads_when={"action": ["list", "status", "log", "wait", "ports"]},
    acts=_judged_process,
    aliases=["process_manager"],
    emoji="⚙️",
    max_result_size_chars=100_000,
    tags=[
        "background job", "server log", "kill", "stop", "running", "port", "listening", "daemon",
        "answer a prompt", "type into", "wait for", "output of", "send keys", "jobs",
    ],
)  # fmt: skip
def process(
    ctx: ToolContext,
    action: Action,
    name: str | None = None,
    command: str | None = None,
    data: str | None = None,
    offset: Annotated[int, Field(ge=0)] | None = None,
    tail: Annotated[int, Field(ge=1, le=1000)] | None = None,
    grep: str | None = None,
    pattern: str | None = None,
    timeout: Annotated[float, Field(gt=0, le=_DAY)] = 60,
    signal: str = "TERM",
    workdir: str | None = None,
    env: dict[str, str] | None = None,
    pty: bool = False,
    restart: Literal["no", "on-failure"] = "no",
    max_restarts: Annotated[int, Field(ge=1, le=100)] = 5,
) -> ToolResult:
    """Look after background processes of this task.

    Args:
        action: submit is write with Enter, close ends the input, detach has it outlive the task.
        name: Name or pid; for start, its new name.
        command: For start.
        data: For write and submit.
        offset: For log, byte to start at.
        tail: For log, the last lines.
        grep: For log, a regular expression.
        pattern: For wait, until output matches, not until it ends.
        timeout: For wait, seconds.
        signal: For signal, such as INT or HUP.
        workdir: For start.
        env: For start.
        pty: For start, in a terminal.
        restart: For start.
        max_restarts: In a row.
    """
    from hermes.environments import process_actions
    from hermes.environments.for_task import environment_of, existing_environment, restarts_of

    if action == "start":
        if not command or not command.strip():
            raise ToolError("start needs a command")
        start = partial(environment_of(ctx).start, command, env=env, pty=pty)

        def begin(*, name: str, cwd: str | None = workdir) -> Background:
            with _outside(ctx, command, outside=False):
                return start(name=name, cwd=cwd)

        folder = _folder({"workdir": workdir}, ctx)
        started, unprotected = _start(ctx, folder, partial(begin, name=name or ""))
        if restart == "on-failure":
            again = partial(begin, cwd=started.cwd, name=started.name)
            restarts_of(ctx).watch(started, again, most=max_restarts)
        shown = {**process_actions.described(started), "output": started.recent()}
        return ToolResult(shown, notes=unprotected)
    environment = existing_environment(ctx)
    if action == "list":
        listed = environment.processes() if environment is not None else []
        return ToolResult(
            {
                "processes": [
                    process_actions.described(command_process) for command_process in listed
                ]
            }
        )
    if action == "ports" and name is None:
        running = (
            [
                command_process
                for command_process in environment.processes()
                if command_process.state == "running"
            ]
            if environment
            else []
        )
        return ToolResult({"ports": process_actions.ports(running)})
    command_process = process_actions.find(environment, name)
    if action == "ports":
        return ToolResult({"ports": process_actions.ports([command_process])})
    if action == "log":
        return ToolResult(process_actions.log(command_process, offset=offset, tail=tail, grep=grep))
    if action == "wait":
        return ToolResult(
            process_actions.wait(ctx, command_process, pattern=pattern, timeout=timeout)
        )
    if action in ("write", "submit"):
        if data is None:
            raise ToolError(f"{action} needs data")
        with _protect(ctx, command_process.cwd):
            answer = process_actions.typed(command_process, data, enter=action == "submit")
        typed = (
            ctx.task.typed.get(command_process.name, "")
            + data
            + ("\n" if action == "submit" else "")
        )
        ctx.task.typed[command_process.name] = typed[-_TYPED:]
        return ToolResult(answer)
    if action == "close":
        command_process.close_input()
        command_process.wait(0.3)
    elif action == "signal":
        command_process.signal(process_actions.signal_number(signal))
        command_process.wait(0.3)
    elif action == "kill":
        restarts_of(ctx).stop(command_process.name)
        command_process.kill("process kill")
        command_process.wait(5.0)
    elif action == "detach":
        command_process.detach()
    return ToolResult(
        {
            **process_actions.described(command_process, full=True),
            **restarts_of(ctx).shown(command_process.name),
        }
    )


def _undo(ctx: ToolContext) -> UndoCoverage | None:
    """What undo would restore after a command; None where the files are on another machine."""
    from hermes.environments.for_task import backend_name

    return _coverage if backend_name(ctx) in ("local", "sandbox") else None


def _coverage(paths: Sequence[str], context: ToolContext, *, cwd: str = "") -> Coverage:
    from hermes.files.command_undo import coverage

    return coverage(paths, context, cwd=cwd)


def _start(
    ctx: ToolContext, folder: str, start: Callable[[], Background]
) -> tuple[Background, list[str]]:
    """Start a background command whose changes can be undone; notes on those that can't."""
    notes: list[str] = []
    if _undo(ctx) is None:
        started = start()
    else:
        from hermes.files.command_undo import start_protected

        started, notes = start_protected(ctx, start, cwd=folder)
    started.wait(0.3)
    return started, notes


def _protect(ctx: ToolContext, folder: str) -> AbstractContextManager[list[str]]:
    """Makes the changes of a command undoable; notes on those that are not."""
    from hermes.environments.for_task import backend_name
    from hermes.files.command_undo import protected

    if backend_name(ctx) not in ("local", "sandbox"):
        # Its files are not on this machine.
        return nullcontext([])
    return protected(ctx, cwd=folder)
