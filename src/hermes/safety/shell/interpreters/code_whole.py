"""What a source of many languages does as a whole, by all the names and texts in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import hermes.safety.shell.interpreters.code_names as known
from hermes.safety.shell.interpreters.code_origins import EVALUATES, sends_environment
from hermes.safety.shell.interpreters.code_tokens import HOME_MARK
from hermes.safety.shell.interpreters.python_values import expand_home
from hermes.safety.shell.interpreters.service_calls import (
    LISTS_PROCESSES,
    deletes_all,
    request_rule,
)
from hermes.safety.shell.paths import is_startup

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.interpreters.code_origins import CodeOrigins
    from hermes.safety.shell.interpreters.code_tokens import Token
    from hermes.safety.shell.judge import Judge
    from hermes.safety.shell.scope import Scope

# Of those that run text, the ones whose name hardly anything else has.
_EVALUATES = EVALUATES - {"setTimeout", "assert", "evaluate"}
_FORKS = re.compile(
    r"\bfork\s+while\s+fork|while\s*\(?\s*(?:1|true)\s*\)?\s*(?:\{|do)?[^}]*\bfork\b|"
    r"fork\s+while\s+1|\bloop\s*(?:\{|do)\s*fork|"
    r"(?:while\s*\(\s*(?:1|true)\s*\)|for\s*\(\s*;\s*;\s*\))[^}]*\b(?:fork|spawn)\w*\("
)
_LOOPBACK = re.compile(r"[\"'](?:127\.\d+\.\d+\.\d+|localhost|\[?::1\]?)(?::\d+)?[\"']")
_ALL_ADDRESSES = re.compile(r"[\"'](?:0\.0\.0\.0|\[?::\]?|\*)(?::\d+)?[\"']")
# A shell is told to kill what the code puts behind it.
_KILLS = re.compile(r"['\"`](?:/bin/)?kill(?: -(?!0)\w+)* ?(?:['\"$#]|\$\{|#\{)")
_TAKES = re.compile(r"[rR]ead|[eE]xist|\bstat|slurp|[lL]ines|copy|[gG]et_?[cC]ontents")
# A hidden file below home, and a word for writing.
_DOTTED = re.compile(r"['\"](?:~|/home/\w+|/Users/\w+|/root)/\.")
_PUTS = re.compile(
    r"[wW]rite|[aA]ppend|\bsink\(|\bcat\([^)]*\bfile\s*=|\bdump|\bdput|put_contents|>>|<<\s*['\"]|"
    r"[fF]printf|spurt|['\"](?:w|a|wb|ab|wt|at|w\+|a\+)['\"]"
)


def judge_whole(
    text: str,
    tokens: list[Token],
    names: set[str],
    origins: CodeOrigins,
    command: Command,
    judge: Judge,
) -> None:
    """Report what a source does by everything that it names: `names` are the parts of all names."""

    def blame(rule: str) -> None:
        judge.blame(rule, command)

    connects = bool(names & known.CONNECT)
    runs = names & known.RUN - {"$", "run", "shell", "cmd"} or (
        "sh" in text and names & {"pipe", "dup2", "open", "fdopen", "exec", "reopen"}
    )
    if connects and (runs or "Command::new" in text):
        blame("network.reverse-shell")
    if ("fork" in text or "spawn" in text) and _FORKS.search(text):
        blame("process.fork-bomb")
    if names & _EVALUATES and (connects or origins.any):
        blame("remote-code.pipe")
    if names & known.LISTEN and _listens(text, names):
        blame("network.listener")
    lowered = text.lower()
    if "env" in lowered and sends_environment(text):
        blame("secrets.sent")
    if ("delete" in lowered or "destroy" in lowered) and deletes_all(text):
        blame("database.empty")
    rule = request_rule(text) if "delete" in lowered else None
    if rule:
        blame(rule)
    if "kill" in text and _KILLS.search(text) and LISTS_PROCESSES.search(text):
        blame("process.kill-by-name")
    writes = ("/." in text or HOME_MARK in text) and _PUTS.search(text)
    if writes and _starts_later(text, tokens, command.scope):
        blame("persist.startup-file")


def _starts_later(text: str, tokens: list[Token], scope: Scope) -> bool:
    """Whether a start-up file is named in a source that writes, however it does that."""
    below = f"{scope.home}/" if HOME_MARK in text and not _TAKES.search(text) else ""
    if not below and not _DOTTED.search(text):
        return False
    for kind, token in tokens:
        if kind == "string" and "." in token:
            path = expand_home(token[1:-1], scope)
            if below and path.startswith((".", "/.")):
                path = below + path.lstrip("/")
            if is_startup(scope.absolute(path), scope):
                return True
    return False


def _listens(text: str, names: set[str]) -> bool:
    """Whether others can reach what is listened on; a server alone listens to nobody."""
    if "createServer" in names and "listen" not in names:
        return False
    return not _LOOPBACK.search(text) or _ALL_ADDRESSES.search(text) is not None
