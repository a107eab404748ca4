"""Python source as its syntax tree, with the nodes laid out by kind.

A page of source has a thousand nodes, and each question is about one kind of them: sorted once,
nobody walks the tree again.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing import Any

Kind = TypeVar("Kind", bound=ast.AST)

_LEAVES = frozenset((ast.Name, ast.Constant, ast.alias, ast.Pass))
_NO_NODES = frozenset((int, str, type(None), float, bool))
# Marks and plain values: which operator, whether a name is read or bound.
_NO_FIELDS = frozenset(("ctx", "op", "ops", "attr", "type_ignores", "kind", "conversion", "level"))
_FIELDS: dict[type, tuple[str, ...]] = {}
_BLOCK_IN_LINE = re.compile(r"[;\n]\s*(?=(?:for|while|if|with|try|def|class|async)\b)")


class Tree:
    """The nodes of one source but for marks such as load or store."""

    __slots__ = ("kinds", "size")

    def __init__(self, kinds: dict[type, list[Any]], size: int) -> None:
        self.kinds = kinds
        self.size = size

    def of(self, kind: type[Kind]) -> list[Kind]:
        """All nodes of a kind, the outer before the inner."""
        return self.kinds.get(kind, [])


def parsed(text: str) -> ast.Module | None:
    """The tree of a source, mended where a shell's quoting broke it; None when it is no Python."""
    import textwrap
    import warnings

    # `import os; for …` is no Python; the shell's quoting often costs the newline.
    for repair in (str, lambda text: textwrap.dedent(text).strip(), _on_lines):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(repair(text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def by_kind(top: ast.AST, most: int) -> Tree:
    """The nodes of a tree; those of a larger one are cut off a little past `most`."""
    found: list[Any] = [top]
    kinds: dict[type, list[Any]] = {}
    for node in found:
        kind = node.__class__
        if kind in kinds:
            kinds[kind].append(node)
        else:
            kinds[kind] = [node]
        if kind in _LEAVES:
            continue
        # The two commonest that hold others, without a look at what their fields hold.
        if kind is ast.Attribute:
            found.append(node.value)
            continue
        if kind is ast.Call:
            found.append(node.func)
            found += node.args
            found += node.keywords
        else:
            _add_children(node, kind, found)
        if len(found) > most:
            break
    return Tree(kinds, len(found))


def _add_children(node: ast.AST, kind: type[ast.AST], found: list[Any]) -> None:
    fields = _FIELDS.get(kind)
    if fields is None:
        fields = _FIELDS[kind] = tuple(name for name in kind._fields if name not in _NO_FIELDS)
    for name in fields:
        value: Any = getattr(node, name, None)
        if value.__class__ is list:
            found += [item for item in value if item.__class__ not in _NO_NODES]
        elif value.__class__ not in _NO_NODES:
            found.append(value)


def _on_lines(text: str) -> str:
    return _BLOCK_IN_LINE.sub("\n", text)
