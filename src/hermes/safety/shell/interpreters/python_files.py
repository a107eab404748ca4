"""What Python source does to files: deletes, writes, reads, and what is opened for either."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from hermes.safety.shell.deleting import kind_of_delete
from hermes.safety.shell.opening import literal
from hermes.safety.shell.paths import is_credential, targets
from hermes.safety.shell.places import judge_write
from hermes.safety.shell.scope import HOLE
from hermes.safety.shell.written import remember_text

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.interpreters.python_tree import Tree
    from hermes.safety.shell.interpreters.python_values import Values
    from hermes.safety.shell.judge import Judge
    from hermes.safety.shell.word_building import Word

# What a shell puts into a source, as a name that Python can read.
HOLE_NAME = "hole_in_source"
_LISTING = re.compile(r"\b(?:listdir|scandir|walk|i?glob|rglob|iterdir)\b")


class PythonFiles:
    """The files of one source, reported by what happens to them."""

    def __init__(
        self, tree: Tree, text: str, command: Command, judge: Judge, values: Values
    ) -> None:
        self.tree = tree
        self.text = text
        self.command = command
        self.judge = judge
        self.scope = command.scope
        self.values = values
        # Files whose reading was looked at.
        self.reads: set[str] = set()
        # What was written to each file so far.
        self._texts: dict[str, str] = {}
        self._unused_calls: set[ast.expr] | None = None

    def word(self, node: ast.expr) -> Word:
        """The word that an expression stands for, as far as it is known."""
        text = self.values.text(node).replace(HOLE_NAME, HOLE)
        return literal(text, self.command)

    def delete(self, node: ast.expr, *, recursive: bool) -> None:
        """Report a delete by what it takes away."""
        word = self.word(node)
        if "glob" in ast.unparse(node):
            word.glob = True
        rule = kind_of_delete([word], self.scope, recursive=recursive)
        if rule is None and self._is_listed(node):
            rule = "delete.each"
        if rule:
            self.judge.blame(rule, self.command)
        judge_write(word, self.command.text, self.scope, self.judge)

    def _is_listed(self, node: ast.expr) -> bool:
        """Whether an expression is each of the files in a folder, one after the other."""
        return _LISTING.search(self.text) is not None and any(
            isinstance(inner, ast.Name) and inner.id in self.values.loops
            for inner in ast.walk(node)
        )

    def write(self, node: ast.expr) -> None:
        """Report a write by where it goes."""
        judge_write(self.word(node), self.command.text, self.scope, self.judge)

    def truncate(self, args: list[ast.expr]) -> None:
        """Report a file that is cut off."""
        self.write(args[0])
        self.judge.blame("delete.truncated", self.command)

    def write_all(self, nodes: list[ast.expr]) -> None:
        """Report each of several writes."""
        for node in nodes:
            self.write(node)

    def read(self, node: ast.expr) -> None:
        """Report the reading of a store of credentials."""
        text = self.values.text(node).replace(HOLE_NAME, HOLE)
        if text in self.reads:
            return
        self.reads.add(text)
        word = literal(text, self.command)
        if any(is_credential(path, self.scope) for path in targets(word, self.scope)):
            self.judge.blame("secrets.read", self.command)

    def open(self, call: ast.Call, args: list[ast.expr]) -> None:
        """Report what a file is opened for, and what it loses by that."""
        mode = args[1] if len(args) > 1 else None
        for keyword in call.keywords:
            if keyword.arg == "mode":
                mode = keyword.value
        text = self.values.text(mode) if mode is not None else "r"
        if any(letter in text for letter in "wax+" + HOLE):
            self.write(args[0])
            if "w" in text and not self.scope.script and call in self._unused():
                self.judge.blame("delete.emptied", self.command)
        else:
            self.read(args[0])

    def put(self, file: ast.expr, content: ast.expr) -> None:
        """Keep a text that is known to be written to a file, in case it is run afterwards."""
        opened = self._bound().get(file.id, file) if isinstance(file, ast.Name) else file
        append = False
        if isinstance(opened, ast.Call) and opened.args:
            modes = [*opened.args[1:2], *(k.value for k in opened.keywords if k.arg == "mode")]
            append = any("w" not in self.values.text(mode) for mode in modes)
            opened = opened.args[0]
        text = self.values.text(content).replace(HOLE_NAME, HOLE)
        path = self.values.text(opened)
        self._texts[path] = self._texts.get(path, "") + text
        remember_text(path, text if append else self._texts[path], self.scope, append=append)

    def _bound(self) -> dict[str, ast.expr]:
        """What names are set to, those of `with … as` among them."""
        return self.values.names | {
            item.optional_vars.id: item.context_expr
            for item in self.tree.of(ast.withitem)
            if isinstance(item.optional_vars, ast.Name)
        }

    def _unused(self) -> set[ast.expr]:
        """Calls whose result is let go, or used for nothing but to close it."""
        if self._unused_calls is not None:
            return self._unused_calls
        found: set[ast.expr] = set()
        for node in self.tree.of(ast.Expr):
            value = node.value
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
                found.add(value.func.value if _adds_nothing(value, value.func.attr) else value)
            else:
                found.add(value)
        closed = {id(part.value) for part in self.tree.of(ast.Attribute) if part.attr == "close"}
        used = {
            name.id
            for name in self.tree.of(ast.Name)
            if isinstance(name.ctx, ast.Load) and id(name) not in closed
        }
        found.update(value for name, value in self._bound().items() if name not in used)
        found.update(
            item.context_expr for item in self.tree.of(ast.withitem) if item.optional_vars is None
        )
        self._unused_calls = found
        return found


def _adds_nothing(call: ast.Call, method: str) -> bool:
    """Whether a method leaves a file as empty as it is: it is closed, or given no text."""
    if method == "write":
        return all(isinstance(arg, ast.Constant) and not arg.value for arg in call.args)
    return method == "close"
