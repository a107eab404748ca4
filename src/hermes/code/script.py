"""Scripts: run a script of the model that may call tools, within limits.

On this machine it runs in a sandbox of its own: the workspace is writable, there is neither a home
nor a network. Where bubblewrap is missing it runs as confined as commands are; in a container or on
another host, where the task's commands run.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from hermes.code.script_calls import ScriptCalls
from hermes.code.script_channel import FileChannel, SocketChannel
from hermes.code.stubs import allowed_tools, javascript_stub, python_stub
from hermes.core.context import Cancellation
from hermes.core.entry import ToolResult
from hermes.core.errors import ConfigError, ToolError, UnavailableError
from hermes.environments.backends import BACKENDS
from hermes.environments.environment import Environment, SharedSettings
from hermes.environments.for_task import LOCAL, backend_name, environment_of, setting_of
from hermes.environments.terminal_result import exit_meaning, streams

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry
    from hermes.environments.command import CommandResult

    Language = Literal["python", "javascript"]

STDOUT, STDERR = 50_000, 10_000
_INSIDE = "/run/hermes-tools"


class Place(NamedTuple):
    """Where scripts of a task run."""

    environment: Environment
    # The folder for sockets, here and inside; empty where calls go through files.
    sockets: tuple[str, str] = ("", "")
    # By which mechanism scripts are confined; empty where they are not, or are elsewhere.
    confined: str = ""
    # What is not isolated.
    note: str = ""
    # Whether the environment is that of the task's commands, which ends with the task.
    borrowed: bool = False

    def close(self) -> None:
        """End everything that scripts started, and remove the folder for sockets."""
        if not self.borrowed:
            self.environment.cleanup()
        if self.sockets[0]:
            shutil.rmtree(os.path.dirname(self.sockets[0]), ignore_errors=True)


def tools_of(ctx: ToolContext) -> dict[str, ToolEntry]:
    """The tools that a script of this call may use."""
    runtime, offer = ctx.services.runtime, ctx.services.offer
    if runtime is None:
        return {}
    wanted = tuple(setting_of(ctx)("code.tools", ()))
    return allowed_tools(runtime.registry, wanted, None if offer is None else offer.reachable)


def place_of(ctx: ToolContext) -> Place:
    """The place of a task's scripts; made at its first script."""
    place: Place = ctx.task.keep("scripts", lambda: _make(ctx), Place.close)
    return place


def run_script(
    ctx: ToolContext, code: str, language: Language, *, timeout: float, most_calls: int
) -> ToolResult:
    """Run a script to its end, or stop it; what it printed, and the calls it made."""
    place, entries = place_of(ctx), tools_of(ctx)
    functions = {function: entry.name for function, entry in entries.items()}
    stop = Cancellation(ctx.cancellation)
    calls = ScriptCalls(ctx, functions, limit=most_calls, stop=stop)
    folder, inside = place.sockets
    channel = (
        SocketChannel(calls.serve, folder, inside)
        if folder
        else FileChannel(calls.serve, place.environment)
    )
    command, stdin = _program(place, code, language, channel.address, entries)
    try:
        result = place.environment.execute(
            command,
            timeout=timeout,
            cwd=ctx.workspace if folder else None,
            stdin=stdin,
            on_output=ctx.output if ctx.report is not None else None,
            cancellation=stop,
        )
        reason = stop.reason
    finally:
        calls.close()
        stop.close()
        channel.close()
    return _report(ctx, result, calls, place, reason)


def _report(
    ctx: ToolContext, result: CommandResult, calls: ScriptCalls, place: Place, reason: str
) -> ToolResult:
    notes = [*result.notes, *([place.note] if place.note else [])]
    shown = streams(ctx, result, notes, stdout=STDOUT, stderr=STDERR)
    shown["output"] = shown.pop("stdout")
    data: dict[str, Any] = {"output": shown.pop("output"), **shown}
    if result.exit_code > 0:
        data["exit_code"] = result.exit_code
        meaning = exit_meaning(result.exit_code)
        if meaning and result.ended == "exited":
            data["meaning"] = meaning
    if calls.made:
        data["calls"] = calls.made
    if result.background is not None:
        result.background.kill("its script has ended")
        notes.append("processes that the script had left running were stopped")
    if result.ended == "exited":
        return ToolResult(data, notes=notes)
    why = f"timed out after {result.duration:.0f} s" if result.timed_out else reason
    return ToolResult(
        data,
        error=f"the script was stopped: {why}",
        hint="What it had done until then stays done, and its output is kept.",
        notes=notes,
    )


# -- places ---------------------------------------------------------------------------------


def _make(ctx: ToolContext) -> Place:
    name = backend_name(ctx)
    if name not in (LOCAL, "sandbox"):
        return Place(environment_of(ctx), borrowed=True)
    missing = BACKENDS["sandbox"].missing() or _no_sandbox(os.path.realpath(ctx.workspace))
    if not missing:
        return _sandbox(ctx)
    from hermes.environments.confinement.confined_environment import ConfinedEnvironment

    local = _fresh(ctx, LOCAL)
    if not isinstance(local, ConfinedEnvironment):
        raise UnavailableError(f"scripts can't run here: {missing}")
    note = f"not isolated: {missing}"
    if local.mechanism:
        note = f"not in a sandbox ({missing}); confined by {local.mechanism}, with the network"
    return Place(local, local.machine.shared_folder(), local.mechanism, note)


def _sandbox(ctx: ToolContext) -> Place:
    from hermes.environments.confinement.machine import temporary_folder
    from hermes.environments.sandbox import sandbox_environment
    from hermes.environments.sandbox.sandbox_environment import SandboxEnvironment

    setting = setting_of(ctx)
    # Nobody else may pass the folder above; the one below is all that the sandbox sees.
    folder = os.path.join(temporary_folder(), "sockets")
    os.mkdir(folder, 0o755)
    os.chmod(folder, 0o755)
    environment = SandboxEnvironment(
        ctx.workspace,
        shared=_settings(ctx),
        binds=[*setting("terminal.sandbox.binds", []), f"{folder}:{_INSIDE}"],
        memory=setting("terminal.sandbox.memory", sandbox_environment.MEMORY),
        pids=setting("terminal.sandbox.pids", sandbox_environment.PIDS),
    )
    return Place(environment, (folder, _INSIDE), "bubblewrap")


def _fresh(ctx: ToolContext, name: str) -> Environment:
    return BACKENDS[name].make(ctx.workspace, setting_of(ctx), _settings(ctx))


def _settings(ctx: ToolContext) -> SharedSettings:
    setting = setting_of(ctx)
    return SharedSettings(
        task=f"{ctx.task_id}/scripts",
        workspace=os.path.realpath(ctx.workspace),
        pass_env=setting("terminal.pass_env", ()),
        idle_seconds=60.0 * setting("terminal.idle_minutes", 0),
    )


@lru_cache(maxsize=16)
def _no_sandbox(workspace: str) -> str:
    """Why scripts of a workspace can't run in a sandbox; empty where they can."""
    from hermes.environments.confinement.machine import obstacle
    from hermes.environments.sandbox.bwrap import check_workspace

    try:
        check_workspace(workspace)
    except ConfigError as error:
        return str(error)
    reason = obstacle("bubblewrap")
    return f"bubblewrap does not work here: {reason}" if reason else ""


# -- programs -------------------------------------------------------------------------------


def _program(
    place: Place,
    code: str,
    language: Language,
    address: Mapping[str, str],
    entries: Mapping[str, ToolEntry],
) -> tuple[str, str]:
    """Command and standard input that run a script."""
    if language == "javascript":
        return _node_program(code, address, entries)
    client = f"{_text('python_client.py')}\n\n{python_stub(entries)}\n"
    given = {"SCRIPT": code, "CLIENT": client, "CHANNEL": dict(address)}
    python = shlex.quote(_python(place))
    start = (
        "import sys; sys.path[:1] = []; i = sys.stdin.buffer; g = eval(i.readline()); "
        "exec(i.read(), g)"
    )
    return f"exec {python} -c '{start}'", f"{given!r}\n{_text('python_main.py')}"


def _node_program(
    code: str, address: Mapping[str, str], entries: Mapping[str, ToolEntry]
) -> tuple[str, str]:
    from urllib.parse import quote

    from hermes.core.json_text import to_json

    head = f"const CHANNEL = {to_json(dict(address))}, TOOLS = {to_json(javascript_stub(entries))};"
    client = quote(f"{head}\n{_text('node_client.mjs')}", safe="")
    start = "exec node --input-type=module --import"
    return f"{start} data:text/javascript,{client} -", code


def _python(place: Place) -> str:
    """The interpreter: the workspace's own virtual environment, or this program's Python."""
    if not place.sockets[0]:
        return "python3"
    own = _environment_python(os.path.realpath(place.environment.cwd))
    if own:
        return own
    return os.path.realpath(sys.executable) if place.sockets[1] == _INSIDE else "python3"


@lru_cache(maxsize=16)
def _environment_python(workspace: str) -> str:
    """The Python of a virtual environment in the workspace, if its base exists in a sandbox too."""
    for name in (".venv", "venv"):
        path = os.path.join(workspace, name, "bin", "python")
        real = os.path.realpath(path)
        visible = (workspace, "/usr", "/opt", os.path.realpath(sys.base_prefix))
        if os.access(path, os.X_OK) and real.startswith(tuple(f"{root}/" for root in visible)):
            return path
    return ""


@lru_cache(maxsize=8)
def _text(name: str) -> str:
    path = os.path.join(os.path.dirname(__file__), "script_side", name)
    with open(path, encoding="utf-8") as file:
        return file.read()


def check_language(language: str) -> None:
    """Raise `ToolError` for a language that can't run here."""
    if language == "javascript" and shutil.which("node") is None:
        raise ToolError("Node.js is not installed", hint="Write the script in Python.")
