"""The entry: judge a command text, as given and as a normaliser would read it."""

from __future__ import annotations

import posixpath
from functools import lru_cache

from hermes.safety.shell.judge import Judge
from hermes.safety.shell.normalise import is_plain, normalise
from hermes.safety.shell.origin import Origin
from hermes.safety.shell.scope import Scope
from hermes.safety.shell.verdict import Finding, Verdict

_LONGEST = 500_000


def detect_dangerous_command(
    command: str, *, cwd: str | None = None, home: str | None = None, workspace: str | None = None
) -> Verdict:
    """Say whether a shell command may run: `.action` is "allow", "ask" or "refuse".

    Args:
        command: The text that a shell would be given.
        cwd: Directory it would start in; a project somewhere in home when left out.
        home: Home directory of the user; the one of this process when left out.
        workspace: Folder whose scripts are read when the command runs them; `cwd` when left out,
            and without that none are.
    """
    base, start, root = _places(cwd, _home() if home is None else home, workspace or cwd)
    judge = Judge(len(command))
    if len(command) > _LONGEST:
        judge.report("text.too-complex", Origin(0, len(command)), command[:80])
        return Verdict(judge.findings, judge.commands)
    if is_plain(command):
        judge.run_text(command, Origin(0, len(command)), Scope(start, base, root=root))
        return _verdict(judge)
    if "\0" in command:
        judge.report("text.hidden-characters", Origin(0, len(command)), command[:200])
    shown, where = normalise(command)
    given = _as_given(command)
    judge.run_text(given, Origin(0, len(command)), Scope(start, base, root=root))
    if shown != given:
        second = Judge(len(shown))
        second.run_text(shown, Origin(0, len(shown)), Scope(start, base, root=root))
        _merge(judge.findings, second.findings, where, len(command))
        judge.commands += second.commands
        judge.inside += second.inside
        judge.reading.paths.update(second.reading.paths)
        judge.writes = {**second.writes, **judge.writes}
        judge.reads_only = judge.reads_only and second.reads_only
    return _verdict(judge)


@lru_cache(maxsize=16)
def _places(cwd: str | None, home: str, workspace: str | None) -> tuple[str, str, str]:
    """Home, the directory to start in and the folder whose scripts are read, without detours."""
    base = posixpath.normpath(home)
    start = posixpath.normpath(cwd) if cwd else posixpath.join(base, "projects", "workspace")
    return base, start, posixpath.normpath(workspace) if workspace else ""


def _verdict(judge: Judge) -> Verdict:
    # What was found to be dangerous is not known to be harmless; reading a secret changes nothing.
    harmless = all(finding.rule.startswith("secrets.") for finding in judge.findings)
    return Verdict(
        judge.findings,
        judge.commands,
        inside=judge.inside,
        scripts=list(judge.reading.paths),
        reads_only=judge.reads_only and harmless,
        writes=judge.writes,
    )


def _home() -> str:
    import os

    return os.path.expanduser("~")


def _as_given(command: str) -> str:
    """The text without what stands for unknown parts inside the judge, and without NUL."""
    return "".join(
        "?" if "\ue000" <= char <= "\ue0ff" else char for char in command if char != "\0"
    )


def _merge(findings: list[Finding], more: list[Finding], where: list[int], size: int) -> None:
    """Add what only the normalised text shows, with its spans in the given text."""
    known = {finding.rule for finding in findings}
    for finding in more:
        # Look-alikes of brackets in ordinary prose break the syntax; that alone is no reason.
        if finding.rule in known or finding.rule in ("text.unreadable", "text.unknown-program"):
            continue
        start, end = finding.span
        first = where[start] if start < len(where) else size
        last = where[end - 1] + 1 if 0 < end <= len(where) else size
        finding.span = (first, last)
        findings.append(finding)
