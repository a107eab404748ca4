"""The project's own tools: which linters, formatters and test runners it has, and running them.

One look at the workspace, by a command in the task's environment, finds the configuration files,
the installed programs (virtual environment, `node_modules`, `PATH`) and the changed files.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.environments.for_task import backend_name, confinement_of, disk_of, environment_of
from hermes.text.diff import short_diff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.environments.command import CommandResult

_LOOK_SECONDS = 30.0
_FOLDERS = (".venv/bin", "venv/bin", "node_modules/.bin")
# Files that are compared before and after a change.
_MOST_COMPARED = 2_000
_DIFF = 4_000
_MOST_DIFFS = 20


class Program(NamedTuple):
    """A linter, formatter or test runner.

    `markers` are the files that configure it, each as FILE or FILE:REGEX. `command` has the
    arguments behind the program, `{paths}` among them. `default` programs are used without a
    marker, if the project configures no other for the same files.
    """

    name: str
    suffixes: tuple[str, ...]
    markers: tuple[str, ...]
    command: str
    # Changes files: a linter that mends, a formatter.
    change: str = ""
    default: bool = False
    # The program to look for, where it has another name.
    program: str = ""

    @property
    def executable(self) -> str:
        return self.program or self.name


class Project(NamedTuple):
    """What a workspace has: markers, programs with their paths, changed files."""

    markers: frozenset[str]
    programs: dict[str, str]
    changed: tuple[str, ...]
    is_repository: bool

    def choose(
        self, table: Iterable[Program], paths: Sequence[str]
    ) -> tuple[list[Program], list[str]]:
        """The programs for some files, and notes on those that are configured and not installed."""
        wanted = [one for one in table if _covers(one, paths)]
        configured = [one for one in wanted if self.markers.intersection(one.markers)]
        taken = {suffix for one in configured for suffix in one.suffixes}
        chosen = [
            *configured,
            *(one for one in wanted if one.default and one not in configured
              and not taken.intersection(one.suffixes)),
        ]  # fmt: skip
        present = [one for one in chosen if one.executable in self.programs]
        missing = [one.name for one in configured if one.executable not in self.programs]
        notes = [f"{name} is configured here and not installed" for name in missing]
        return present, notes


def look(ctx: ToolContext, table: Sequence[Program]) -> Project:
    """Look at the workspace for everything that a table of programs needs to know."""
    markers = sorted({marker for one in table for marker in one.markers})
    programs = sorted({one.executable for one in table})
    lines = ['m() { [ -e "$1" ] || return; [ -z "$2" ] || grep -qE "$2" "$1" && echo "m $3"; }']
    for marker in markers:
        name, _, pattern = marker.partition(":")
        lines.append(f"m {shlex.quote(name)} {shlex.quote(pattern)} {shlex.quote(marker)}")
    folders = " ".join(f'"$PWD/{folder}"' for folder in _FOLDERS)
    lines += [
        f"for p in {' '.join(programs)}; do f=",
        f'for d in {folders}; do [ -x "$d/$p" ] && f=$d/$p && break; done',
        '[ -n "$f" ] || f=$(command -v "$p") || continue; echo "p $p $f"; done',
        "g='git -c core.fsmonitor=false -c core.quotepath=false'",
        "if $g rev-parse --git-dir >/dev/null 2>&1; then echo r",
        (
            "{ $g diff --name-only --relative --no-ext-diff HEAD 2>/dev/null; "
            "$g ls-files -o --exclude-standard; } | sort -u | sed 's/^/c /'; fi; true"
        ),
    ]
    result = environment_of(ctx).execute("\n".join(lines), _LOOK_SECONDS, cwd=ctx.workspace)
    if result.ended != "exited":
        raise ToolError("looking at the project took too long", hint="Name paths.")
    found: dict[str, list[str]] = {"m": [], "p": [], "r": [], "c": []}
    for line in result.stdout.splitlines():
        kind, _, rest = line.partition(" ")
        found.setdefault(kind, []).append(rest)
    return Project(
        frozenset(found["m"]),
        {name: path for name, _, path in (line.partition(" ") for line in found["p"])},
        tuple(found["c"]),
        bool(found["r"]),
    )


def command_line(project: Project, program: Program, arguments: str, paths: Sequence[str]) -> str:
    """The shell command of a program, for some of the files it covers.

    `{files}` takes files alone: folders are searched for those that the program covers.
    """
    mine = [path for path in paths if _covers(program, [path])]
    words = shlex.join([path if not path.startswith("-") else f"./{path}" for path in mine])
    start = shlex.quote(project.programs[program.executable])
    if "{files}" not in arguments:
        return f"{start} {arguments.replace('{paths}', words)}"
    names = " -o ".join(f"-name {shlex.quote('*' + suffix)}" for suffix in program.suffixes)
    return (
        f"find {words} -type f \\( {names} \\) -not -path '*/.*/*' -not -path '*/node_modules/*' "
        f"-print0 | xargs -0 -r {start} {arguments.replace('{files}', '').strip()}"
    )


def judged(ctx: ToolContext, commands: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    """Commands of the project's tools for the gate."""
    confined = confinement_of(ctx)
    for command in commands:
        yield "execute", command, ctx.workspace, confined, None


def run(ctx: ToolContext, command: str, *, timeout: float) -> CommandResult:
    """Run one of the project's tools in the task's environment."""
    return environment_of(ctx).execute(
        command,
        timeout=timeout,
        cwd=ctx.workspace,
        on_output=ctx.output if ctx.report is not None else None,
        cancellation=ctx.cancellation,
    )


def undoable(ctx: ToolContext) -> AbstractContextManager[list[str]]:
    """Makes what a command changes undoable, where its files are on this machine."""
    from contextlib import nullcontext

    from hermes.files.command_undo import protected

    if backend_name(ctx) not in ("local", "sandbox"):
        return nullcontext([])
    return protected(ctx, cwd=ctx.workspace)


def changes(ctx: ToolContext, paths: Sequence[str], change: Callable[[], None]) -> dict[str, str]:
    """Run `change`; the diffs of the files that it changed, by path."""
    disk = disk_of(ctx)

    def contents() -> dict[str, str]:
        texts = {}
        for path in paths[:_MOST_COMPARED]:
            whole = os.path.join(ctx.workspace, path)
            try:
                texts[path] = disk.read(whole).decode("utf-8", "replace")
            except (OSError, ToolError):
                continue
        return texts

    before = contents()
    change()
    after = contents()
    return {
        path: short_diff(before[path], after[path], path, limit=_DIFF)
        for path in before
        if path in after and before[path] != after[path]
    }


def shown_diffs(diffs: dict[str, str]) -> dict[str, Any]:
    """Diffs for a result, the first ones in full."""
    shown: dict[str, Any] = {"changed": list(diffs)}
    if diffs:
        shown["diff"] = "\n".join(list(diffs.values())[:_MOST_DIFFS])
    return shown


def _covers(program: Program, paths: Sequence[str]) -> bool:
    """Whether a program is for any of some files; for folders always."""
    if not program.suffixes or not paths:
        return True
    return any(path.endswith(program.suffixes) or not os.path.splitext(path)[1] for path in paths)
