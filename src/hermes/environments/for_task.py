"""Environment, disk and gate text of a task: the configured backend, made at its first command."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING

from hermes.core.paths import find_program
from hermes.environments.disk.local_disk import LocalDisk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.core.context import ToolContext
    from hermes.environments.backends import Setting
    from hermes.environments.background import Restarts
    from hermes.environments.confinement import ConfinedEnvironment
    from hermes.environments.disk.protocol import Disk
    from hermes.environments.environment import Environment

# Environment variable that overrides the setting.
VARIABLE = "HERMES_TERMINAL_ENV"
LOCAL = "local"
_KEY = "environment"
_local_disk = LocalDisk()
_MAX_CHECKED = 20_000
_CHECK_SECONDS = 5.0
# Words without any character that has a meaning to a shell.
_WORDS = re.compile(r"[\w./+:,@%=\- \t]*", re.ASCII)
_KEYWORD = re.compile(
    r"\s*(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|select|function|coproc|time)\b"
)
_PREFIX = re.compile(r"^[^\n]*?: (?=line \d+: )", re.MULTILINE)


def environment_of(ctx: ToolContext) -> Environment:
    """The environment of a call's task; made now if there is none."""
    return existing_environment(ctx) or ctx.task.keep(
        _KEY, lambda: _make(ctx, backend_name(ctx)), lambda environment: environment.cleanup()
    )


def local_environment(ctx: ToolContext) -> ConfinedEnvironment:
    """The environment of a task on this machine, for programs that run nowhere else."""
    from hermes.environments.confinement import ConfinedEnvironment

    if backend_name(ctx) == LOCAL:
        environment = environment_of(ctx)
    else:
        environment = ctx.task.keep(LOCAL, lambda: _make(ctx, LOCAL), lambda kept: kept.cleanup())
    assert isinstance(environment, ConfinedEnvironment)
    return environment


def answer_host_questions(ctx: ToolContext, environment: ConfinedEnvironment, command: str) -> None:
    """Ask the person of this call about hosts that its command wants to reach."""
    from hermes.core.context import ApprovalRequest, Ruling
    from hermes.runtime.waits import Ask
    from hermes.safety.approvals import host_grant

    runtime = ctx.services.runtime
    assert environment.machine.guardian  # starts the proxy, where there is one
    if environment.machine.proxy is None or runtime is None:
        return

    def ask(host: str) -> bool:
        reason = f"let commands reach {host} (terminal.confine.network is `hosts`)"
        ruling = Ruling("ask", reason=reason, rule="network:host", grants=(host_grant(host),))
        if runtime.policy.approved(ruling, ctx):
            return True
        if ctx.approver is None:
            return False
        request = ApprovalRequest(
            ctx.tool,
            {"host": host, "command": command},
            reason=reason,
            rule=ruling.rule,
            human_only=True,
            call_id=ctx.call_id,
            front_door=ctx.front_door,
            agent_path=ctx.agent_path,
        )
        answer = Ask(ctx.approver, request, ctx.cancellation).sync(runtime)  # type: ignore[arg-type]
        if answer in ("session", "always"):
            runtime.policy.remember(ruling, answer, ctx)
        return answer is True or answer in ("once", "session", "always")

    environment.machine.proxy.answer_by(ask)


def existing_environment(ctx: ToolContext) -> Environment | None:
    """The environment of a call's task, if it has run a command yet."""
    environment: Environment | None = ctx.task.kept(_KEY)
    return environment


def confinement_of(ctx: ToolContext) -> str:
    """The mechanism that confines the commands of a call's task; empty where none does."""
    from hermes.environments.confinement.confined_environment import ConfinedEnvironment

    environment = environment_of(ctx) if backend_name(ctx) == LOCAL else None
    return environment.mechanism if isinstance(environment, ConfinedEnvironment) else ""


def record_cwd(ctx: ToolContext, environment: Environment) -> None:
    """Record the working directory of the next command in the task, by its workspace name."""
    ctx.task.cwd = environment.workspace_name(environment.cwd)


def restarts_of(ctx: ToolContext) -> Restarts:
    """The restart policies of a call's task."""
    from hermes.environments.background import Restarts

    restarts: Restarts = ctx.task.keep("restarts", Restarts, Restarts.close)
    return restarts


def _make(ctx: ToolContext, name: str) -> Environment:
    from hermes.environments.backends import backend
    from hermes.environments.environment import SharedSettings

    setting = setting_of(ctx)
    shared = SharedSettings(
        env=ctx.task.env,
        task=ctx.task_id,
        workspace=os.path.realpath(ctx.workspace),
        pass_env=setting("terminal.pass_env", ()),
        ansi=setting("terminal.ansi", False),
        idle_seconds=60.0 * setting("terminal.idle_minutes", 0),
    )
    return backend(name).make(ctx.workspace, setting, shared)


def setting_of(ctx: ToolContext) -> Setting:
    """A function that reads a setting by name, with a default for unknown names."""
    from hermes.core.config import DEFAULTS

    app = ctx.services.app
    return lambda name, default: (
        default if app is None or name not in DEFAULTS else app.config.get(name)
    )


def backend_name(ctx: ToolContext) -> str:
    """The name of the backend: from the environment variable, else from the settings."""
    name = os.environ.get(VARIABLE)
    if name:
        return name
    app = ctx.services.app
    return LOCAL if app is None else str(app.config.get("terminal.env_type"))


def disk_of(ctx: ToolContext) -> Disk:
    """The disk with the files of a task."""
    if backend_name(ctx) == LOCAL:
        # File tools need no environment here.
        return _local_disk
    return environment_of(ctx).disk


def gate_text(
    ctx: ToolContext,
    command: str,
    *,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
) -> str:
    """Shell text for the gate: the command with the functions, aliases and variables it runs with.

    Its stdin is part of the text too.
    """
    environment = existing_environment(ctx)
    definitions = environment.definitions if environment is not None else ""
    if not (definitions or env or stdin or ctx.task.env):
        return command
    lines = [definitions] if definitions else []
    used = {
        name: value
        for name, value in ctx.task.env.items()
        # A variable that is not used can't change the verdict.
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


def syntax_error(command: str) -> str:
    """The shell's message on a command that no shell can parse; empty for all others.

    Such a command does nothing, so there is nothing to approve either.
    """
    if len(command) > _MAX_CHECKED or "\0" in command:
        return ""
    if _WORDS.fullmatch(command) and not _KEYWORD.match(command):
        return ""
    from hermes.safety.placeholders.format import START
    from hermes.safety.shell.analysis import parse
    from hermes.safety.shell.lexing import as_ascii

    if START in command:
        # The handler gets a value in its place, and that may parse.
        return ""
    return _bash_error(command) if parse(as_ascii(command)).has_error else ""


def _bash_error(command: str) -> str:
    """The message of `bash -n`; empty if it accepts the command, or there is no bash."""
    import subprocess

    bash = find_program("bash")
    if bash is None:
        return ""
    try:
        checked = subprocess.run(
            # A command may switch extended globs on by itself.
            [bash, "--norc", "-O", "extglob", "-n"],
            input=command.encode("utf-8", "surrogateescape"),
            capture_output=True,
            env={},
            cwd="/",
            timeout=_CHECK_SECONDS,
            check=False,
        )
    except (OSError, UnicodeEncodeError, subprocess.TimeoutExpired):
        return ""
    if checked.returncode == 0:
        return ""
    errors = _PREFIX.sub("", checked.stderr.decode("utf-8", "replace"))
    return "; ".join(errors.splitlines())[:500]
