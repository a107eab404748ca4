"""`execute_code`: run a script of the model that may call tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from hermes.core import ToolContext, ToolError, ToolResult, tool
from hermes.core.schema import Field

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_DESCRIPTION = """\
Run a script that may call tools. Use it instead of many calls: loops, filters, counts over files \
and results. Only what it prints comes back, and the value of its last expression.

Python: `from hermes_tools import read_file`; results are dicts and lists, a failed call raises \
ToolError. Several at once: threads, or `await hermes_tools.aio.read_file(…)`. JavaScript: \
`await hermes_tools.read_file({path})`. No network but through tools. Large results: \
`hermes_tools.artifact(handle)`."""


def functions(offered: frozenset[str]) -> dict[str, Any]:
    """The description with the functions that there are now."""
    from hermes.code.stubs import allowed_tools, signature
    from hermes.core.config import Config
    from hermes.core.registry import registry

    entries = allowed_tools(registry, tuple(Config.load().get("code.tools")), offered or None)
    lines = [signature(name, entry) for name, entry in entries.items()]
    return {"description": "\n".join([_DESCRIPTION, "", "Functions:", *lines])}


def _judged(arguments: Mapping[str, Any], ctx: ToolContext) -> Iterator[tuple[Any, ...]]:
    """The script as a command for the gate; its calls to tools are judged one by one."""
    from hermes.code.script import place_of

    program = "node -" if arguments["language"] == "javascript" else "python3 -"
    end = "END_OF_SCRIPT"
    while end in arguments["code"]:
        end += "_"
    text = f"{program} <<'{end}'\n{arguments['code']}\n{end}"
    yield "execute", text, ctx.workspace, place_of(ctx).confined, None


@tool(
    toolset="code",
    description=_DESCRIPTION,
    permissions=["code:execute"],
    effect="execute",
    acts=_judged,
    aliases=["code_execute", "run_code", "python"],
    emoji="🐍",
    max_result_size_chars=100_000,
    dynamic_schema_overrides=functions,
    tags=[
        "script", "python code", "javascript", "loop over files", "many calls", "batch",
        "count", "compute", "calculate", "process results", "program", "automation",
    ],
)  # fmt: skip
def execute_code(
    ctx: ToolContext,
    code: str,
    language: Literal["python", "javascript"] = "python",
    timeout: Annotated[float, Field(gt=0, le=3600)] | None = None,
) -> ToolResult:
    """Run a script that may call tools.

    Args:
        code: The script.
        language: What it is written in.
        timeout: Seconds until it is stopped; 300 by default.
    """
    from hermes.code.script import check_language, place_of, run_script
    from hermes.environments.for_task import setting_of
    from hermes.files.command_undo import protected

    if not code.strip():
        raise ToolError("there is no script")
    check_language(language)
    setting = setting_of(ctx)
    limit = setting("code.timeout_seconds", 300.0)
    most = setting("code.max_calls", 50)
    if not place_of(ctx).sockets[0]:
        # Its files are not on this machine.
        return run_script(ctx, code, language, timeout=timeout or limit, most_calls=most)
    with protected(ctx, cwd=ctx.workspace) as unprotected:
        result = run_script(ctx, code, language, timeout=timeout or limit, most_calls=most)
    result.notes.extend(unprotected)
    return result
