"""Fork bombs: commands that start copies of themselves without end."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Node

_ALWAYS = frozenset(
    ("true", ":", "((1))", "[ 1 ]", "[[ 1 ]]", "((;;))", "/bin/true", "[ true ]", "! false")
)
_PAUSES = frozenset(
    ("sleep", "wait", "read", "inotifywait", "break", "exit", "return", "nc", "usleep")
)
_MOST_NODES = 400
# Where a command may start, and what may stand before it there.
_COMMAND_STARTS = (
    r"(?:^|[;&|({\n]|\b(?:do|then|else)\b)[ \t]*"
    r"(?:(?:nohup|exec|setsid|bash|sh|zsh|dash|env|source|\.|python3?|perl|time)[ \t]+)*"
)
_AFTER = ("&&", "||")
_CONDITION = re.compile(r"\b(?:if|case|exit|return)\b|\[ |\[\[ |\btest ")


def is_fork_bomb(name: str, body: Node, raw: Callable[[Node], str]) -> bool:
    """Whether a function starts itself in a pipe, in the background, or more than once."""
    calls, piped, nested = 0, False, False
    for node in _nodes(body):
        if node.type == "command_name" and raw(node).strip("\"'\\") == name:
            calls += 1
            parent = node.parent
            while parent is not None and parent != body:
                if parent.type == "pipeline":
                    piped = True
                elif parent.type in ("command_substitution", "process_substitution"):
                    nested = True
                following = parent.next_sibling
                if following is not None and following.type == "&":
                    piped = True
                parent = parent.parent
    return calls > 0 and (piped or ((nested or calls > 1) and not _has_test(body)))


def _has_test(body: Node) -> bool:
    return any(
        node.type in ("if_statement", "case_statement", "test_command") for node in _nodes(body)
    )


def is_endless_spawn(loop: Node, raw: Callable[[Node], str]) -> bool:
    """Whether an endless loop starts something in the background without ever pausing."""
    if loop.type == "while_statement":
        condition = loop.child_by_field_name("condition")
        if condition is None or raw(condition).strip() not in _ALWAYS:
            return False
    elif "(;;)" not in raw(loop).replace(" ", ""):
        return False
    body = loop.child_by_field_name("body") or loop
    background = False
    for node in _nodes(body):
        if node.type == "&":
            background = True
        elif node.type == "command_name" and raw(node) in _PAUSES and not _is_background(node):
            return False
    return background


def starts_itself(text: str, path: str) -> bool:
    """Whether a script that this very command wrote starts copies of itself without end."""
    name = re.escape(posixpath.basename(path))
    own = (
        rf"[\"']?(?:\$0|\$\{{0\}}|\$\{{?BASH_SOURCE(?:\[0\]\}})?|(?:[\w./~-]*/)?{name})[\"']?"
        if name
        else r"[\"']?\$\{?0\}?[\"']?"
    )
    calls = list(re.finditer(rf"{_COMMAND_STARTS}{own}(?=[\s;&|)]|\Z)[^\n;&|]*(.{{0,2}})", text))
    beside = any(call.group(1)[:1] in ("&", "|") and call.group(1) not in _AFTER for call in calls)
    return beside or (len(calls) > 1 and not _CONDITION.search(text))


def _is_background(name: Node) -> bool:
    following = name.parent.next_sibling if name.parent is not None else None
    return following is not None and following.type == "&"


def _nodes(top: Node) -> list[Node]:
    found: list[Node] = []
    waiting = [top]
    while waiting and len(found) < _MOST_NODES:
        node = waiting.pop()
        found.append(node)
        waiting.extend(node.children)
    return found
