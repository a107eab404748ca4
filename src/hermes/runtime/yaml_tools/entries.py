"""Registry entries of YAML tools: handlers that send the request or run the command."""

from __future__ import annotations

import os
from functools import cache

from hermes.core.availability import Requirement
from hermes.core.entry import ToolEntry, ToolResult
from hermes.core.errors import ToolError
from hermes.runtime.yaml_tools.spec import CommandSpec, HttpSpec

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.protocols import SecretRedactor
    from hermes.runtime.yaml_tools.spec import Definition


def entry_for(definition: Definition, path: str) -> ToolEntry:
    """The registry's view of one tool of the file at `path`."""
    spec = definition.spec
    handler: HttpHandler | CommandHandler
    check = None
    is_async = True
    if isinstance(spec, HttpSpec):
        handler = HttpHandler(definition, spec)
        requires_env = spec.auth.names
        alone = spec.method not in ("GET", "HEAD")
    else:
        handler = CommandHandler(definition, spec)
        is_async = False
        requires_env = ()
        alone = True
        if os.path.basename(spec.program) == spec.program:
            check = _program(spec.program)
    return ToolEntry(
        definition.name,
        definition.toolset,
        definition.schema(),
        handler,
        invoke=handler,
        is_async=is_async,
        check_fn=check,
        requires_env=requires_env,
        description=definition.description,
        permissions=_permissions(definition),
        effect=definition.effect,
        acts=handler.acts,
        concurrency="exclusive" if alone else "parallel",
        timeout_seconds=definition.timeout_seconds,
        tags=definition.tags,
        origin="yaml",
        owner=path,
        module=__name__,
    )


@cache
def _program(name: str) -> Requirement:
    # One for all versions of a tool: what was found out of a check is remembered by the check.
    return Requirement(programs=(name,))


def _permissions(definition: Definition) -> tuple[str, ...]:
    """Permissions beyond those implied by its effects."""
    if definition.effect == "message":
        return ("message:send",)
    spec = definition.spec
    sends = isinstance(spec, HttpSpec) and spec.method not in ("GET", "HEAD")
    return ("network:send",) if sends else ()


class HttpHandler:
    """Carries out the calls of one `http_wrapper`."""

    __slots__ = ("_parameters", "_spec")

    def __init__(self, definition: Definition, spec: HttpSpec) -> None:
        self._parameters = definition.parameters
        self._spec = spec

    def acts(self, arguments: Mapping[str, Any], context: ToolContext) -> list[tuple[str, str]]:  # noqa: ARG002
        """The address that a call would reach, for the gate."""
        from hermes.runtime.yaml_tools.http_messages import build_url

        try:
            return [("fetch", build_url(self._spec, self._parameters, arguments))]
        except ToolError:
            # The call itself will say what is wrong, and send nothing.
            return [("fetch", self._spec.origin)]

    async def __call__(self, arguments: dict[str, Any], context: ToolContext) -> Any:
        """Send the request; the part of the answer that the file asks for."""
        from hermes.runtime.yaml_tools.http_client import send
        from hermes.runtime.yaml_tools.http_messages import answer, build_request, failure

        request = build_request(self._spec, self._parameters, arguments)
        redact = _redaction(context, request.secrets)
        got = await send(request, redact)
        if 200 <= got.status < 300:
            return answer(got.status, got.body, self._spec.response, redact)
        return failure(got.what, got.status, got.body, redact)


class CommandHandler:
    """Carries out the calls of one `command`."""

    __slots__ = ("_parameters", "_spec")

    def __init__(self, definition: Definition, spec: CommandSpec) -> None:
        self._parameters = definition.parameters
        self._spec = spec

    def acts(self, arguments: Mapping[str, Any], context: ToolContext) -> list[tuple[Any, ...]]:
        """The command of a call in shell syntax, its folder and confinement, for the gate."""
        import shlex

        from hermes.runtime.yaml_tools.template import build_argv

        spec = self._spec
        try:
            argv = build_argv(spec, self._parameters, arguments)
        except ToolError:
            # The call itself will say what is wrong, and run nothing.
            argv = [spec.program]
        command = shlex.join(argv)
        if spec.workdir:
            folder = os.path.join(context.workspace, os.path.expanduser(spec.workdir))
            command = f"cd {shlex.quote(folder)} && {command}"
        programs = context.services.programs
        limits = programs.limits(context, argv) if programs is not None else ()
        return [("execute", command, context.workspace, *limits)]

    def __call__(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Run the program; its output and exit code."""
        from hermes.runtime.child_process import child_environment
        from hermes.runtime.yaml_tools.template import build_argv

        spec = self._spec
        argv = build_argv(spec, self._parameters, arguments)
        folder = _folder(context.workspace, spec.workdir)
        env = child_environment(spec.env, context.task.env)
        _redaction(context, [env[name] for name in spec.env if name in env and _is_secret(name)])
        ended = context.service("programs").run(context, argv, cwd=folder, env=env)
        context.check_cancelled()
        written: dict[str, Any] = {
            "exit_code": ended.exit_code,
            "stdout": ended.stdout,
            "stderr": ended.stderr,
        }
        if ended.ended == "exited" and ended.exit_code == 0:
            return ToolResult(written, notes=ended.notes)
        how = _how(ended.exit_code) if ended.ended == "exited" else _STOPPED[ended.ended]
        return ToolResult(error=f"{spec.program} {how}", notes=ended.notes, **written)


# How a program ended that did not end by itself.
_STOPPED = {
    "needs input": "asked for input, which it can't get here",
    "lost": "was killed from outside",
}


def _folder(workspace: str, workdir: str) -> str:
    folder = os.path.join(workspace, os.path.expanduser(workdir))
    if not os.path.isdir(folder):
        raise ToolError(f"the folder {folder} is not there")
    return folder


def _how(exit_code: int) -> str:
    import signal

    try:
        return f"was ended by {signal.Signals(exit_code - 128).name}"
    except ValueError:
        return f"ended with exit code {exit_code}"


def _is_secret(name: str) -> bool:
    from hermes.safety.redaction.secret_names import kind_of

    return kind_of(name) is not None


def _redaction(context: ToolContext, secrets: Any) -> Callable[[str], str]:
    """Have the runtime mask these values from now on; the function that does."""
    from hermes.safety.redaction import Redactor

    runtime = context.services.runtime
    redactor: SecretRedactor = runtime.redactor if runtime is not None else Redactor()
    for secret in secrets:
        redactor.add(secret)
    return redactor.redact
