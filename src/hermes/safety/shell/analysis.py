"""Entry of the analyser: the state and limits of one analysis, and `detect_dangerous_command`.

Each text that a shell would read goes through `Judge.run_text`, each command that it starts through
`run_command.run_simple`. Limits on depth and work are counted here, so that hostile nesting ends
with a
question instead of a hang. The text is analysed as written and as Unicode normalisation would
change it.
"""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache
from typing import TYPE_CHECKING

import hermes.safety.shell.walk as walk
from hermes.safety.shell.lexing import (
    Here,
    as_ascii,
    is_crowded,
    is_dense,
    is_merged,
    is_tangled,
    needs_preparing,
    prepare,
    split_pieces,
)
from hermes.safety.shell.normalise import normalise
from hermes.safety.shell.path_classes import is_null, lies_outside
from hermes.safety.shell.rules.table import RULES
from hermes.safety.shell.run_command import run_command, run_simple
from hermes.safety.shell.scope import (
    ANYTHING,
    HOLE,
    NOTHING,
    UNKNOWN_CHARS,
    UNSET,
    Origin,
    Scope,
    Stream,
    Word,
    joined,
    names,
)
from hermes.safety.shell.verdict import (
    ALWAYS,
    ASK,
    INSIDE,
    KIND_RANK,
    OUTSIDE,
    REFUSE,
    REMOTE,
    Finding,
    Verdict,
)
from hermes.safety.shell.walk import Walker
from hermes.safety.shell.words import expand

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

    from hermes.safety.shell.command import Command


_DEEPEST = 24
_TANGLED = 512
_MOST_FAILURES = 6
_MOST_STEPS = 15_000
_STEPS_OF_A_TEXT = 3
_MOST_FINDINGS = 200
_STAND_INS = re.compile(f"([{UNKNOWN_CHARS}])")


_ODD = re.compile("[^\t\n\x20-\x7e]")


class Reading:
    """What was read for one judgement; shared with those of the scripts inside it."""

    __slots__ = ("bytes", "files", "paths", "seen")

    def __init__(self) -> None:
        self.files = 0
        self.bytes = 0
        # In the order they were come upon.
        self.paths: dict[str, None] = {}
        self.seen: set[tuple[object, ...]] = set()


def is_plain(text: str) -> bool:
    """Whether a text is printable ASCII, tabs and newlines only: nothing to normalise."""
    return _ODD.search(text) is None


class Judge:
    """Collects findings while a command text is read the way a shell would."""

    def __init__(self, size: int) -> None:
        self.findings: list[Finding] = []
        self.commands: list[list[str]] = []
        # The same of the scripts that it runs.
        self.inside: list[list[str]] = []
        self.reading = Reading()
        # Every place on this machine that is written to, with the first command that does.
        self.writes: dict[str, str] = {}
        self.depth = 0
        # False from the first thing on that may change something.
        self.reads_only = True
        # How many texts and commands were started by others, and judged.
        self.opened = 0
        self._seen: dict[tuple[str, int, int], Finding] = {}
        # Nested texts are parsed again; this bounds the total, whatever the nesting.
        self._budget = 2 * size + 60_000
        self._most_steps = _MOST_STEPS
        self._steps = 0
        self._failures = 0

    def report(
        self,
        key: str,
        origin: Origin,
        command: str,
        *,
        scope: Scope | None = None,
        kind: str | None = None,
    ) -> None:
        """Add a finding; `kind` where it is not the rule's own."""
        rule = RULES[key]
        kind = kind or rule.kind
        severity = rule.severity
        if scope is not None and scope.elsewhere and kind != ALWAYS:
            kind = REMOTE
        spot = (key, origin.start, origin.end)
        known = self._seen.get(spot)
        if known is not None:
            known.kind = max(known.kind, kind, key=KIND_RANK.__getitem__)
            return
        if len(self.findings) >= _MOST_FINDINGS:
            return
        if severity == REFUSE and scope is not None and scope.container:
            # Inside a container it is the container's root that is lost, not this machine's.
            severity, kind = ASK, REMOTE
        finding = Finding(
            key,
            severity,
            (origin.start, origin.end),
            command.replace(HOLE, "…").replace(UNSET, "…"),
            rule.description,
            kind=kind,
            human_only=rule.human_only,
        )
        self._seen[spot] = finding
        self.findings.append(finding)

    def blame(self, key: str, command: Command, kind: str | None = None) -> None:
        """Add a finding about a simple command."""
        scope = command.scope
        if kind is None and RULES[key].kind == INSIDE and _is_outside(command.operands, scope):
            kind = OUTSIDE
        self.report(key, command.origin, command.text, scope=scope, kind=kind)

    def apart(self, size: int) -> Judge:
        """A judge for a script of its own, with limits of its own but for what it may read."""
        other = Judge(size)
        other.reading = self.reading
        other._most_steps *= 2
        other.depth = min(self.depth, _DEEPEST // 2)
        return other

    def wrote(self, path: str, command: str, scope: Scope) -> None:
        """Note a place that is written to; what can't be told where it is can't be noted."""
        if path.startswith("/") and not scope.elsewhere and not is_null(path):
            self.writes.setdefault(path, command)

    def run_text(
        self, text: str, origin: Origin, scope: Scope, stdin: Stream | None = None
    ) -> Stream:
        """Judge a shell text and say what it would print."""
        self._budget -= len(text)
        self._steps += _STEPS_OF_A_TEXT
        self.opened += 1
        if (
            self.depth >= _DEEPEST
            or self._budget < 0
            or (len(text) > _TANGLED and is_tangled(text))
        ):
            self.report("text.too-complex", origin, text[:80])
            return ANYTHING
        self.depth += 1
        try:
            if self.depth > 1 and not is_plain(text):
                self._as_shown(text, origin, scope.copy(), stdin)
            return run(text, origin, scope, stdin, self)
        finally:
            self.depth -= 1

    def _as_shown(self, text: str, origin: Origin, scope: Scope, stdin: Stream | None) -> None:
        """Judge an inner text as a normaliser reads it, where that is not as it is written."""
        pieces = _STAND_INS.split(text)
        if all(map(is_plain, pieces)):
            return
        shown = "".join(
            piece if piece in UNKNOWN_CHARS else normalise(piece)[0] for piece in pieces
        )
        if shown != text and self.step(_STEPS_OF_A_TEXT):
            own = self.apart(len(shown))
            own.depth = self.depth
            run(shown, origin.vague(), scope, stdin, own)
            for finding in own.findings:
                if not finding.rule.startswith("text."):
                    self.report(
                        finding.rule, origin, finding.command, scope=scope, kind=finding.kind
                    )

    def substitute(self, text: str, origin: Origin, scope: Scope, *, feeds: bool) -> Stream:
        """Judge an inner command and say what it would print."""
        stripped = text.strip()
        if not stripped:
            return NOTHING
        if stripped.startswith("<") and not stripped.startswith(("<<", "<(")):
            return walk.read_file(stripped[1:].strip(), origin, scope, self)
        inner = scope.copy()
        inner.follows = []
        inner.captured = True
        return self.run_text(text, origin, inner, ANYTHING if feeds else None)

    def scan(self, text: str, origin: Origin, scope: Scope) -> None:
        """Judge the substitutions inside text that is no command itself."""
        if "$" in text or "`" in text or "(" in text:
            walk.expand_inside(text, origin, scope, self)

    def too_large(self) -> None:
        """Note that something was not looked at to its end."""
        self.report("text.too-complex", Origin(0, 0), "")

    def may_fail(self) -> bool:
        """Count one more text with errors, which are slow to parse; False after too many."""
        self._failures += 1
        return self._failures <= _MOST_FAILURES

    def step(self, weight: int = 1) -> bool:
        """Count one more thing to look at; False when there were too many to go on."""
        self._steps += weight
        if self._steps > self._most_steps:
            self.too_large()
            return False
        return True

    def run_command(self, command: Command) -> Stream:
        """Judge a program with its words."""
        return run_command(command, self)


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


def _is_outside(words: list[Word], scope: Scope) -> bool:
    """Whether every operand of a command is a path outside the workspace."""
    return bool(words) and all(lies_outside(word, scope) for word in words)


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


_LONG = 1500
_WORD = re.compile(r"""(?:[A-Za-z0-9_./:=,+@%^*?~-]++|'[^'\n]*+'|"[^"$`\\\n]*+")++""")
_EXPANDED = re.compile(r"['\"*?~]")
# A program with plain or quoted words.
_PLAIN = re.compile(rf"([A-Za-z0-9_./-][A-Za-z0-9_./:,+@%^-]*+)(?: ++{_WORD.pattern}){{0,30}}\Z")
# The first words of which a grammar makes more than a program.
_GRAMMAR = names(
    "if then else elif fi for while until do done case esac select function time coproc in export "
    "declare typeset local readonly unset unsetenv"
)
_parser: Parser | None = None


def parse(text: str) -> Node:
    """The root of the syntax tree of an ASCII text."""
    global _parser
    if _parser is None:
        import tree_sitter
        import tree_sitter_bash

        _parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    return _parser.parse(text.encode("latin-1", "replace")).root_node


def run(text: str, origin: Origin, scope: Scope, stdin: Stream | None, judge: Judge) -> Stream:
    """Judge a text and say what it would print."""
    plain = _PLAIN.match(text)
    if plain and plain[1] not in _GRAMMAR:
        # Most commands are words side by side, and need no grammar.
        words: list[Word] = []
        for match in _WORD.finditer(text):
            raw, place = match[0], origin.at(match.start(), match.end())
            if _EXPANDED.search(raw):
                words += expand(raw, place, scope, judge)
            else:
                words.append(Word(raw, raw, place))
        return run_simple(words, [], [], scope, stdin, judge)
    if len(text) > _LONG:
        return _run_long(text, origin, scope, stdin, judge)
    heres: dict[int, Here] = {}
    if "\n" in text and is_merged(text):
        shown, heres, _ = prepare(text, simplify=True)
    elif needs_preparing(text):
        shown, heres, _ = prepare(text)
    else:
        shown = as_ascii(text)
    root = parse(shown)
    if root.has_error:
        if not judge.may_fail():
            judge.report("text.too-complex", origin, text[:80])
            return ANYTHING
        shown, heres, whole = prepare(text, simplify=True)
        root = parse(shown)
        if (root.has_error or not whole) and not (scope.script and HOLE in text):
            judge.report("text.unreadable", origin, text[:200])
    return Walker(text, origin, heres, judge).run(root, scope, stdin)


def _run_long(
    text: str, origin: Origin, scope: Scope, stdin: Stream | None, judge: Judge
) -> Stream:
    """The same for a text too long to be parsed at once."""
    shown, heres, whole = prepare(text, simplify=True)
    if not whole:
        judge.report("text.unreadable", origin, text[:200])
        return ANYTHING
    if is_crowded(shown, script=bool(scope.script)):
        judge.report("text.too-complex", origin, text[:80])
        return ANYTHING
    outputs = []
    body = shown[: len(shown.rstrip()) + 1]
    pieces = [(0, len(body))] if len(body) <= _LONG else split_pieces(body)
    for start, end in pieces:
        piece = shown[start:end]
        if is_dense(piece):
            judge.report("text.too-complex", origin.at(start, end), text[start : start + 80])
            return ANYTHING
        root = parse(piece)
        if root.has_error and not judge.may_fail():
            return ANYTHING
        if root.has_error:
            judge.report("text.unreadable", origin.at(start, end), text[start : start + 200])
        inside = {at - start: here for at, here in heres.items() if start <= at < end}
        walker = Walker(text[start:end], origin.at(start, end), inside, judge, start)
        outputs.append(walker.run(root, scope, stdin))
        if root.has_error:
            return ANYTHING
    return joined([output for output in outputs if output is not NOTHING])
