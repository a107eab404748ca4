"""Which `read` of a shell text would read our standard input: nobody feeds it from elsewhere.

A shell that finds its input at its end goes on as if an empty line had been typed, and says nothing
of that; `read -p` does not even print its question. So the text itself is looked at, and only what
is sure to run: not what a condition, a function or a `case` may leave out.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

_WORTH_IT = re.compile(r"\b(?:read|select|mapfile|readarray)\b")
_READERS = frozenset({"read", "mapfile", "readarray"})
_LONGEST = 20_000
# What follows these may well not run.
_TESTS = frozenset({"test_command", "negated_command"})
_FEEDS = frozenset({"herestring_redirect", "heredoc_redirect"})
# The options of `read` that take a value.
_VALUED = "adinNptu"


def unfed_read(command: str) -> str | None:
    """The question of the first such `read`, or its text where it has none; None without one."""
    if len(command) > _LONGEST or not _WORTH_IT.search(command):
        return None
    from hermes.safety.shell.lexing import as_ascii
    from hermes.safety.shell.parse import parse

    root = parse(as_ascii(command))
    if root.has_error:
        return None
    for node in _reads(root):
        if node.type == "for_statement":
            return "select, which asks for a number"
        return _asked(node, command)
    return None


def _reads(node: Node) -> Iterator[Node]:
    """The statements below a node that would read what it reads, in the order they run in."""
    kind = node.type
    if kind in ("function_definition", "case_statement", "process_substitution"):
        return
    if kind == "redirected_statement" and any(map(_feeds, node.children)):
        return
    if kind == "command":
        if _name(node) in _READERS and not any(map(_feeds, node.children)):
            yield node
        return
    if kind == "for_statement" and node.children[0].type == "select":
        yield node
    if kind == "if_statement":
        # The condition alone: what is before `then`.
        for child in node.children:
            if child.type == "then":
                return
            yield from _reads(child)
        return
    first = True
    for child in node.named_children:
        if kind == "pipeline" and not first:
            return
        if kind == "list" and not first and node.named_children[0].type in _TESTS:
            return
        yield from _reads(child)
        first = False


def _feeds(node: Node) -> bool:
    if node.type in _FEEDS:
        return True
    if node.type != "file_redirect":
        return False
    first = node.children[0]
    # Another file than standard input (`3<f`) feeds nothing to it.
    if first.type == "file_descriptor" and first.text != b"0":
        return False
    return any(child.type in ("<", "<&", "<>") for child in node.children)


def _name(node: Node) -> str:
    for child in node.children:
        if child.type == "command_name":
            return (child.text or b"").decode("latin-1")
    return ""


def _asked(node: Node, command: str) -> str | None:
    """What a `read` asks; None when it reads another file, or only looks whether there is input."""
    text = command[node.start_byte : node.end_byte]
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    while words and words.pop(0) not in _READERS:
        # Variables for it alone stand before.
        continue
    prompt = ""
    while words and words[0].startswith("-") and words[0] != "--":
        option = words.pop(0)
        at = next((i for i, letter in enumerate(option) if i and letter in _VALUED), 0)
        if not at:
            continue
        value = option[at + 1 :] or (words.pop(0) if words else "")
        if option[at] == "u" and value != "0":
            return None
        if option[at] == "t" and not value.strip("0."):
            return None
        if option[at] == "p":
            prompt = value
    return prompt.strip() or f"`{text[:100]}` found standard input closed"
