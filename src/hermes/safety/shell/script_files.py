"""Scripts that a command names: read from the workspace and judged by what is in them.

Whoever writes a script and then runs it gets the ruling that its lines would get. A script is
code that people keep, not a line typed for once, so that it is judged by what it is known to do:
variables that are set elsewhere and the project's own settings files are no reason to ask. A file
that is not there, too large or outside of the workspace is not looked at.
"""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING

from hermes.core.paths import is_below
from hermes.safety.shell.command import Command
from hermes.safety.shell.scope import ANYTHING, Scope, Stream, Value

if TYPE_CHECKING:
    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.verdict import Finding

_LARGEST = 256 * 1024
_HAND_WRITTEN = 48 * 1024
_DEEPEST = 4
_MOST_FILES = 60
_MOST_BYTES = 1024 * 1024
_REMEMBERED = 128
_SHELLS = frozenset((b"sh", b"bash", b"dash", b"zsh", b"ksh", b"mksh", b"ash"))

_Known = tuple["list[Finding]", list[list[str]], dict[str, str], list[str]]
_known: dict[tuple[object, ...], _Known] = {}


def run_file(
    path: str,
    command: Command,
    judge: Judge,
    *,
    kind: str = "",
    args: list[str],
    sourced: bool = False,
) -> Stream | None:
    """Judge a script file, and say what it would print; None when it can't be looked at.

    Args:
        path: As the command spells it.
        kind: `shell` or `python`; by its first line when left out.
        args: What the script is given.
        sourced: Whether it runs in this very shell, as with `source`.
    """
    scope = command.scope
    place = scope.absolute(path)
    content = _read(place, scope.root)
    if content is None or len(content) > _LARGEST or _is_generated(content):
        return None
    kind = kind or _kind(content, place)
    if not kind:
        return None
    digest = hashlib.sha256(content).digest()
    reading = judge.reading
    if (digest, scope.cwd, *args) in reading.seen:
        return ANYTHING
    reading.seen.add((digest, scope.cwd, *args))
    reading.paths[place] = None
    reading.files += 1
    reading.bytes += len(content)
    if scope.script >= _DEEPEST or reading.files > _MOST_FILES or reading.bytes > _MOST_BYTES:
        judge.blame("text.too-complex", command)
        return ANYTHING
    inner = scope if sourced else scope.copy()
    for name, word in command.assignments:
        inner.assign(name, Value([word.text]))
    key = (digest, kind, scope.cwd, scope.home, scope.root, scope.elevated, scope.script, *args)
    plain = not (sourced or inner.variables or inner.functions or scope.written or scope.links)
    known = _known.get(key) if plain else None
    if known is None:
        known = _judge(content.decode("utf-8", "replace"), kind, command, inner, args, judge)
        if plain:
            if len(_known) >= _REMEMBERED:
                _known.pop(next(iter(_known)), None)
            _known[key] = known
    _merge(known, path, command, judge)
    return ANYTHING


def source_of(path: str, command: Command) -> str | None:
    """The text of a script in another language, for those who know that language."""
    content = _read(command.scope.absolute(path), command.scope.root)
    if content is None or len(content) > _LARGEST:
        return None
    return content.decode("utf-8", "replace")


def _judge(
    text: str, kind: str, command: Command, scope: Scope, args: list[str], judge: Judge
) -> _Known:
    own = judge.apart(len(text))
    before = len(judge.reading.paths)
    saved = scope.script, scope.positional
    scope.script += 1
    if args or scope.positional is None:
        scope.positional = args
    try:
        if kind == "python":
            from hermes.safety.shell.code.python import judge_source

            inner = Command(command.words, scope, redirects=command.redirects)
            inner.memo["pure"] = "no"
            judge_source(text, inner, own)
        else:
            own.run_text(text, command.origin.vague(), scope, command.stdin)
    finally:
        scope.script, scope.positional = saved
    found = list(judge.reading.paths)[before:]
    return own.findings, [*own.commands, *own.inside], own.writes, found


def _merge(known: _Known, path: str, command: Command, judge: Judge) -> None:
    """Add what was found in a script, as found in the command that runs it."""
    findings, commands, writes, paths = known
    judge.reading.paths.update(dict.fromkeys(paths))
    for finding in findings:
        line = finding.command
        shown = line if path in line else f"{path}: {line}"
        judge.report(finding.rule, command.origin, shown, scope=command.scope, kind=finding.kind)
    judge.inside += commands
    for place, line in writes.items():
        judge.wrote(place, line if path in line else f"{path}: {line}", command.scope)


def _read(place: str, root: str) -> bytes | None:
    """The content of a regular file inside the workspace, up to one byte more than is judged."""
    if not is_below(place, root) or "\0" in place:
        return None
    try:
        # Never waits: what is no regular file is not read.
        handle = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode) or not _is_inside(place, root):
            return None
        content = os.read(handle, _LARGEST + 1)
        return None if b"\0" in content[:1024] else content
    except OSError:
        return None
    finally:
        os.close(handle)


def _is_inside(place: str, root: str) -> bool:
    return is_below(os.path.realpath(place), os.path.realpath(root))


def _is_generated(content: bytes) -> bool:
    """Whether a script is the long output of a tool for configuring builds."""
    return len(content) > _HAND_WRITTEN and b"Generated by GNU Autoconf" in content[:1000]


def _kind(content: bytes, place: str) -> str:
    """What a file is run by: its first line says, and a shell takes what has none."""
    if not content.startswith(b"#!"):
        return "python" if place.endswith(".py") else "shell"
    words = content[2:200].partition(b"\n")[0].split()
    names = [word.rpartition(b"/")[2] for word in words]
    if names[:1] == [b"env"]:
        names = [name for name in names[1:] if name[:1] != b"-" and b"=" not in name]
    name = names[0] if names else b""
    if name in _SHELLS:
        return "shell"
    return "python" if name.startswith((b"python", b"pypy")) else ""
