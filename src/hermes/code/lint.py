"""Linters and formatters of the project: the tables, and the rows that linters report."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec

from hermes.code import project
from hermes.code.project import Program
from hermes.core.entry import ToolResult
from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from hermes.code.project import Project
    from hermes.core.context import ToolContext
    from hermes.environments.command import CommandResult

_PY = (".py", ".pyi")
_JS = (".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".vue", ".svelte")
_SH = (".sh", ".bash")
_ESLINT = tuple(f"eslint.config.{end}" for end in ("js", "mjs", "cjs", "ts")) + tuple(
    f".eslintrc{end}" for end in ("", ".js", ".cjs", ".json", ".yml", ".yaml")
)
_PRETTIER = (".prettierrc", ".prettierrc.json", ".prettierrc.yaml", ".prettierrc.yml",
             "prettier.config.js", "prettier.config.mjs", 'package.json:"prettier"')  # fmt: skip
_BIOME = ("biome.json", "biome.jsonc")

LINTERS = (
    Program("ruff", _PY, ("ruff.toml", ".ruff.toml", r"pyproject.toml:^\[tool\.ruff"),
            "check --no-cache --output-format json {paths}", "check --no-cache --fix -q {paths}",
            default=True),
    Program("mypy", _PY, ("mypy.ini", ".mypy.ini", r"pyproject.toml:^\[tool\.mypy",
                          r"setup.cfg:^\[mypy"),
            "--no-pretty --no-error-summary --show-column-numbers --show-error-codes {paths}"),
    Program("pyright", _PY, ("pyrightconfig.json", r"pyproject.toml:^\[tool\.pyright"),
            "--outputjson {paths}"),
    Program("eslint", _JS, (*_ESLINT, 'package.json:"eslintConfig"'),
            "--format json {paths}", "--fix {paths}"),
    Program("biome", (*_JS, ".json"), _BIOME, "lint --reporter=github {paths}",
            "lint --write {paths}"),
    Program("shellcheck", _SH, (".shellcheckrc",), "-f json1 {files}", default=True),
    Program("clippy", (".rs",), ("Cargo.toml",), "clippy -q --message-format json",
            program="cargo"),
    Program("golangci-lint", (".go",), (".golangci.yml", ".golangci.yaml", ".golangci.toml"),
            "run {paths}"),
    Program("go vet", (".go",), ("go.mod",), "vet ./...", program="go"),
    Program("hadolint", ("Dockerfile", ".dockerfile"), (".hadolint.yaml", ".hadolint.yml"),
            "--no-color {files}", default=True),
    Program("yamllint", (".yaml", ".yml"), (".yamllint", ".yamllint.yaml", ".yamllint.yml"),
            "-f parsable {paths}"),
)  # fmt: skip

FORMATTERS = (
    Program("black", _PY, (r"pyproject.toml:^\[tool\.black",), "--diff -q {paths}", "-q {paths}"),
    Program("ruff", _PY, ("ruff.toml", ".ruff.toml", r"pyproject.toml:^\[tool\.ruff"),
            "format --no-cache --diff {paths}", "format --no-cache -q {paths}", default=True),
    Program("biome", (*_JS, ".json", ".css"), _BIOME, "format {paths}", "format --write {paths}"),
    Program("prettier", (*_JS, ".json", ".css", ".md", ".html", ".yaml", ".yml"), _PRETTIER,
            "--list-different {paths}", "--log-level warn --write {paths}"),
    Program("gofmt", (".go",), ("go.mod",), "-d {paths}", "-w {paths}", default=True),
    Program("rustfmt", (".rs",), ("Cargo.toml", "rustfmt.toml"), "--check {files}", "{files}",
            default=True),
    Program("shfmt", _SH, (".editorconfig",), "-d {paths}", "-w {paths}", default=True),
    Program("taplo", (".toml",), ("taplo.toml", ".taplo.toml"), "fmt --check {paths}",
            "fmt {paths}"),
)  # fmt: skip

_MOST_ROWS = 200
# `path:line:column: severity: message [rule]`, as compilers have it.
_LINE = re.compile(
    r"^(?P<file>[^\s:][^:]*):(?P<line>\d+)(?::(?P<column>\d+))?:? "
    r"(?:(?P<severity>error|warning|note|info)(?:: | ))?(?P<message>.+?)"
    r"(?:\s+[\[(](?P<rule>[\w@/.\-]+)[\])])?$",
    re.MULTILINE,
)
_GITHUB = re.compile(
    r"^::(?P<severity>error|warning|notice) title=(?P<rule>[^,]*),file=(?P<file>[^,]*),"
    r"line=(?P<line>\d+).*?::(?P<message>.*)$",
    re.MULTILINE,
)


class Row(msgspec.Struct, omit_defaults=True):
    """One remark of a linter."""

    file: str
    line: int
    message: str
    rule: str = ""
    fixable: bool = False
    tool: str = ""


def plan(
    ctx: ToolContext, table: Sequence[Program], paths: Sequence[str]
) -> tuple[Project, list[Program], list[str], list[str]]:
    """The project, the programs for some paths, these paths, and notes.

    Without paths the changed files of a git repository are meant, else the whole workspace.
    """
    there = project.look(ctx, table)
    wanted = list(paths) or list(there.changed) or ["."]
    programs, notes = there.choose(table, wanted)
    if not paths and there.changed:
        notes.append(f"the {len(there.changed)} changed files alone; name paths for others")
    return there, programs, wanted, notes


def lint(ctx: ToolContext, paths: Sequence[str], *, fix: bool, timeout: float) -> ToolResult:
    """Run the linters; their remarks as rows. With `fix`, mend first what they can mend."""
    there, programs, wanted, notes = plan(ctx, LINTERS, paths)
    if not programs:
        raise _nothing("linter", notes)
    data: dict[str, Any] = {}
    if fix:
        data = change(ctx, there, programs, wanted, timeout=timeout)
    rows: list[Row] = []
    for program in programs:
        ctx.progress(f"{program.name} …")
        command = project.command_line(there, program, program.command, wanted)
        result = project.run(ctx, command, timeout=timeout)
        remarks = list(_rows(program, result, ctx.workspace))
        if not remarks and result.exit_code not in (0, 1):
            notes.append(f"{program.name} failed ({result.exit_code}): {_tail(result)}")
        rows += remarks
    rows.sort(key=lambda row: (row.file, row.line))
    data["count"] = len(rows)
    data["remarks"] = [msgspec.to_builtins(row) for row in rows[:_MOST_ROWS]]
    data["linters"] = [program.name for program in programs]
    if len(rows) > _MOST_ROWS:
        notes.append(f"the first {_MOST_ROWS} of {len(rows)}; name paths for fewer")
    return ToolResult(data, notes=notes)


def format_files(
    ctx: ToolContext, paths: Sequence[str], *, check: bool, timeout: float
) -> ToolResult:
    """Format files; with `check`, say which would change and how."""
    there, programs, wanted, notes = plan(ctx, FORMATTERS, paths)
    if not programs:
        raise _nothing("formatter", notes)
    data: dict[str, Any] = {"formatters": [program.name for program in programs]}
    if not check:
        return ToolResult(
            {**data, **change(ctx, there, programs, wanted, timeout=timeout)}, notes=notes
        )
    texts = []
    for program in programs:
        command = project.command_line(there, program, program.command, wanted)
        result = project.run(ctx, command, timeout=timeout)
        if result.exit_code not in (0, 1):
            notes.append(f"{program.name} failed ({result.exit_code}): {_tail(result)}")
        texts.append(result.stdout.strip())
    text = "\n".join(filter(None, texts))
    return ToolResult({**data, "clean": not text, "diff": text}, notes=notes)


def change(
    ctx: ToolContext,
    there: Project,
    programs: Sequence[Program],
    paths: Sequence[str],
    *,
    timeout: float,
) -> dict[str, Any]:
    """Have programs change files, undoably; the diffs."""
    failures: list[str] = []

    def run() -> None:
        for program in programs:
            if not program.change:
                continue
            command = project.command_line(there, program, program.change, paths)
            result = project.run(ctx, command, timeout=timeout)
            if result.exit_code not in (0, 1):
                failures.append(f"{program.name} failed ({result.exit_code}): {_tail(result)}")

    with project.undoable(ctx) as unprotected:
        diffs = project.changes(ctx, _files(ctx, there, paths), run)
    shown = project.shown_diffs(diffs)
    if failures or unprotected:
        shown["remarks_on_change"] = [*failures, *unprotected]
    return shown


def commands(
    ctx: ToolContext, table: Sequence[Program], paths: Sequence[str], *, changes: bool
) -> Iterator[str]:
    """The commands that a call will run, for the gate."""
    there, programs, wanted, _ = plan(ctx, table, paths)
    for program in programs:
        if changes and program.change:
            yield project.command_line(there, program, program.change, wanted)
        yield project.command_line(there, program, program.command, wanted)


def _files(ctx: ToolContext, there: Project, paths: Sequence[str]) -> list[str]:
    """The files below some paths whose changes are shown."""
    from hermes.environments.for_task import environment_of

    if not any(path == "." or not os.path.splitext(path)[1] for path in paths):
        return list(paths)
    import shlex

    words = shlex.join(paths)
    if there.is_repository:
        command = f"git ls-files -co --exclude-standard -- {words}"
    else:
        command = f"find {words} -type f -not -path '*/.*' -not -path '*/node_modules/*'"
    listed = environment_of(ctx).execute(f"{command} | head -n 2000", 30, cwd=ctx.workspace)
    return listed.stdout.splitlines()


def _nothing(kind: str, notes: Sequence[str]) -> ToolError:
    said = f": {'; '.join(notes)}" if notes else ""
    names = ", ".join(one.name for one in (LINTERS if kind == "linter" else FORMATTERS))
    return ToolError(
        f"no {kind} for these files is installed{said}", hint=f"Install one of {names}."
    )


def _tail(result: CommandResult) -> str:
    lines = (result.stderr or result.stdout).strip().splitlines()
    return " ".join(lines[-3:])[:300]


# -- reports of linters -----------------------------------------------------------------------


def _rows(program: Program, result: CommandResult, workspace: str) -> Iterator[Row]:
    parse = _PARSERS.get(program.name, _from_lines)
    try:
        remarks = list(parse(result.stdout))
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        # Not its report but an error message.
        remarks = []
    for row in remarks:
        row.file = os.path.relpath(row.file, workspace) if os.path.isabs(row.file) else row.file
        row.tool = program.name
        yield row


def _from_lines(text: str) -> Iterator[Row]:
    for match in _LINE.finditer(text):
        if match["severity"] != "note":
            yield Row(match["file"], int(match["line"]), match["message"], match["rule"] or "")


def _from_github(text: str) -> Iterator[Row]:
    for match in _GITHUB.finditer(text):
        yield Row(match["file"], int(match["line"]), match["message"], match["rule"])


def _from_ruff(text: str) -> Iterator[Row]:
    for item in msgspec.json.decode(text):
        fix = (item.get("fix") or {}).get("applicability") == "safe"
        line = item["location"]["row"]
        yield Row(item["filename"], line, item["message"], item["code"] or "syntax", fixable=fix)


def _from_pyright(text: str) -> Iterator[Row]:
    for item in msgspec.json.decode(text)["generalDiagnostics"]:
        line = item["range"]["start"]["line"] + 1
        yield Row(item["file"], line, item["message"], item.get("rule", ""))


def _from_eslint(text: str) -> Iterator[Row]:
    for file in msgspec.json.decode(text):
        for item in file["messages"]:
            rule = item.get("ruleId") or "syntax"
            fix = "fix" in item
            yield Row(file["filePath"], item.get("line", 0), item["message"], rule, fixable=fix)


def _from_shellcheck(text: str) -> Iterator[Row]:
    for item in msgspec.json.decode(text)["comments"]:
        fix = item.get("fix") is not None
        yield Row(item["file"], item["line"], item["message"], f"SC{item['code']}", fixable=fix)


def _from_cargo(text: str) -> Iterator[Row]:
    for line in text.splitlines():
        message = msgspec.json.decode(line).get("message") or {}
        spans = [span for span in message.get("spans", ()) if span["is_primary"]]
        if spans:
            rule = (message.get("code") or {}).get("code", "")
            yield Row(spans[0]["file_name"], spans[0]["line_start"], message["message"], rule)


_PARSERS: dict[str, Callable[[str], Iterator[Row]]] = {
    "ruff": _from_ruff,
    "pyright": _from_pyright,
    "eslint": _from_eslint,
    "shellcheck": _from_shellcheck,
    "clippy": _from_cargo,
    "biome": _from_github,
}
