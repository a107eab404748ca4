"""Code tools: the project's own linters, formatters and test runners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from hermes.core import ToolContext, ToolResult, tool
from hermes.core.schema import Field

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

Seconds = Annotated[float, Field(gt=0, le=3600)]


def _judged_lint(arguments: Mapping[str, Any], ctx: ToolContext) -> Iterator[tuple[Any, ...]]:
    from hermes.code import lint, project

    fix, paths = arguments["fix"], arguments.get("paths") or []
    yield from project.judged(ctx, lint.commands(ctx, lint.LINTERS, paths, changes=fix))


def _judged_format(arguments: Mapping[str, Any], ctx: ToolContext) -> Iterator[tuple[Any, ...]]:
    from hermes.code import lint, project

    changes, paths = not arguments["check"], arguments.get("paths") or []
    yield from project.judged(ctx, lint.commands(ctx, lint.FORMATTERS, paths, changes=changes))


def _judged_test(arguments: Mapping[str, Any], ctx: ToolContext) -> Iterator[tuple[Any, ...]]:
    from hermes.code import project, test_run

    _, command, _ = test_run.plan(
        ctx,
        arguments.get("runner"),
        arguments.get("paths") or [],
        arguments.get("name"),
        arguments["select"],
    )
    yield from project.judged(ctx, [command])


@tool(
    toolset="code",
    permissions=["code:execute"],
    effect="execute",
    acts=_judged_lint,
    aliases=["lint"],
    emoji="🧹",
    tags=[
        "ruff", "mypy", "eslint", "shellcheck", "type check", "static analysis", "style errors",
        "code quality", "warnings", "unused imports",
    ],
)  # fmt: skip
def code_lint(
    ctx: ToolContext, paths: list[str] | None = None, fix: bool = False, timeout: Seconds = 120
) -> ToolResult:
    """Check code with the project's own linters.

    Args:
        paths: Files or folders; the changed files by default.
        fix: Mend first what can be mended; undo takes it back.
        timeout: Seconds for each linter.
    """
    from hermes.code.lint import lint

    return lint(ctx, paths or [], fix=fix, timeout=timeout)


@tool(
    toolset="code",
    permissions=["code:execute"],
    effect="execute",
    acts=_judged_format,
    aliases=["format_code"],
    emoji="📐",
    tags=["black", "prettier", "gofmt", "rustfmt", "shfmt", "indent", "code style", "reformat"],
)
def code_format(
    ctx: ToolContext, paths: list[str] | None = None, check: bool = False, timeout: Seconds = 120
) -> ToolResult:
    """Format code with the project's own formatters; returns the diff.

    Args:
        paths: Files or folders; the changed files by default.
        check: Change nothing, show what would change.
        timeout: Seconds for each formatter.
    """
    from hermes.code.lint import format_files

    return format_files(ctx, paths or [], check=check, timeout=timeout)


@tool(
    toolset="code",
    permissions=["code:execute"],
    effect="execute",
    acts=_judged_test,
    aliases=["run_tests"],
    emoji="🧪",
    tags=[
        "pytest", "unittest", "jest", "vitest", "go test", "cargo test", "test suite",
        "failing tests", "unit tests", "regression",
    ],
)  # fmt: skip
def code_test(
    ctx: ToolContext,
    paths: list[str] | None = None,
    name: str | None = None,
    select: Literal["all", "failed", "changed"] = "all",
    runner: str | None = None,
    timeout: Seconds = 600,
) -> ToolResult:
    """Run the project's tests; returns counts, and where and why each failure happened.

    Args:
        paths: Test files or folders.
        name: Only tests whose name has this.
        select: The last failed ones, or those of changed files.
        runner: Such as pytest, jest, go test; found by itself.
        timeout: Seconds until it is stopped.
    """
    from hermes.code.test_run import run_tests

    return run_tests(ctx, runner, paths or [], name, select, timeout=timeout)
