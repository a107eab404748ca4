"""Constant values in Python source: strings, paths, the names behind imports."""

from __future__ import annotations

import ast
import base64
import binascii
import posixpath
from typing import TYPE_CHECKING

from hermes.safety.shell.scope import HOLE
from hermes.safety.shell.tables import names

if TYPE_CHECKING:
    from hermes.safety.shell.interpreters.python_tree import Tree
    from hermes.safety.shell.scope import Scope

_DEEPEST = 20
_HOME_CALLS = frozenset(("pathlib.Path.home", "Path.home"))
_PASS_THROUGH = names(
    "pathlib.Path pathlib.PosixPath pathlib.PurePath str os.fspath os.path.abspath "
    "os.path.realpath "
    "os.path.normpath bytes shlex.quote os.fsencode os.path.expandvars"
)
_METHODS_THROUGH = names("resolve absolute expanduser as_posix strip encode decode")


class Values:
    """What names stand for in one source, as far as that is constant."""

    def __init__(self, tree: Tree, scope: Scope) -> None:
        self.scope = scope
        self.modules = imported(tree)
        self.names: dict[str, ast.expr] = {
            target.id: node.value
            for node in tree.of(ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        targets = [loop.target for loop in tree.of(ast.For)]
        targets += [loop.target for loop in tree.of(ast.comprehension)]
        self.loops = {
            inner.id
            for target in targets
            for inner in ((target,) if isinstance(target, ast.Name) else ast.walk(target))
            if isinstance(inner, ast.Name)
        }

    def dotted(self, node: ast.expr, depth: int = 0) -> str:
        """The full name of a function: `o.system` after `import os as o` is `os.system`."""
        if depth > _DEEPEST:
            return ""
        if isinstance(node, ast.Name):
            if node.id in self.modules:
                return self.modules[node.id]
            value = self.names.get(node.id)
            if isinstance(value, ast.Attribute | ast.Name | ast.Call) and node.id not in self.loops:
                return self.dotted(value, depth + 1) or node.id
            return node.id
        if isinstance(node, ast.Attribute):
            return f"{self.dotted(node.value, depth + 1)}.{node.attr}"
        if isinstance(node, ast.Call):
            name = self.dotted(node.func, depth + 1)
            if name in ("__import__", "importlib.import_module") and node.args:
                return self.text(node.args[0]) or ""
            if name == "getattr" and len(node.args) > 1:
                return f"{self.dotted(node.args[0], depth + 1)}.{self.text(node.args[1]) or ''}"
            if name in ("pathlib.Path", "Path"):
                return "pathlib.Path"
            return f"{name}()"
        if isinstance(node, ast.Subscript):
            return self.dotted(node.value, depth + 1)
        return ""

    def arguments(self, node: ast.expr) -> list[str] | None:
        """What a script is given, where an expression is `sys.argv` from some position on."""
        given = self.scope.positional
        if given is None or not isinstance(node, ast.Subscript):
            return None
        cut = node.slice
        if not isinstance(cut, ast.Slice) or self.dotted(node.value) != "sys.argv":
            return None
        start = self.text(cut.lower) if cut.lower is not None else ""
        return given[int(start) - 1 :] if start.isdigit() and start != "0" else None

    def text(self, node: ast.expr, depth: int = 0) -> str:
        """The string or path that an expression gives, with stand-ins for what is not constant."""
        if depth > _DEEPEST:
            return HOLE
        deeper = depth + 1
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bytes):
                return node.value.decode("latin-1")
            return str(node.value)
        if isinstance(node, ast.Name):
            value = self.names.get(node.id)
            if value is None or node.id in self.loops:
                return HOLE
            return self.text(value, deeper)
        if isinstance(node, ast.JoinedStr):
            return "".join(self.text(part, deeper) for part in node.values)
        if isinstance(node, ast.FormattedValue):
            return self.text(node.value, deeper)
        if isinstance(node, ast.BinOp):
            return self._binary(node, deeper)
        if isinstance(node, ast.Subscript):
            owner = self.dotted(node.value)
            if owner == "os.environ":
                return self.scope.lookup(self.text(node.slice, deeper)).text
            if owner == "sys.argv" and self.scope.positional is not None:
                number = self.text(node.slice, deeper)
                return self.scope.lookup(number).text if number.isdigit() else HOLE
            return self._sliced(node, deeper)
        if isinstance(node, ast.Call):
            return self._call(node, deeper)
        if isinstance(node, ast.Attribute) and node.attr == "parent":
            return posixpath.dirname(self.text(node.value, deeper))
        return HOLE

    def _binary(self, node: ast.BinOp, depth: int) -> str:
        left, right = self.text(node.left, depth), self.text(node.right, depth)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Div):
            return posixpath.join(left, right)
        if isinstance(node.op, ast.Mod):
            return left.replace("%s", right) if "%s" in left else HOLE
        return HOLE

    def _sliced(self, node: ast.Subscript, depth: int) -> str:
        text = self.text(node.value, depth)
        cut = node.slice
        if isinstance(cut, ast.Slice) and cut.lower is None and cut.upper is None:
            step = cut.step
            if isinstance(step, ast.UnaryOp) and isinstance(step.operand, ast.Constant):
                return text[::-1]
        return HOLE

    def _call(self, node: ast.Call, depth: int) -> str:
        name = self.dotted(node.func)
        args = node.args
        if name in _HOME_CALLS:
            return self.scope.home
        if name in ("os.getcwd", "pathlib.Path.cwd"):
            return self.scope.cwd
        if name == "chr" and args and isinstance(args[0], ast.Constant):
            return (
                chr(args[0].value)
                if isinstance(args[0].value, int) and args[0].value < 0x110000
                else HOLE
            )
        if name in ("os.path.expanduser",) and args:
            return expand_home(self.text(args[0], depth), self.scope)
        if name in ("os.getenv", "os.environ.get") and args:
            return self.scope.lookup(self.text(args[0], depth)).text
        if name == "os.path.join" and args:
            return posixpath.join(*(self.text(arg, depth) for arg in args))
        if name in ("base64.b64decode", "base64.standard_b64decode") and args:
            try:
                return base64.b64decode(self.text(args[0], depth)).decode("utf-8", "replace")
            except (binascii.Error, ValueError):
                return HOLE
        if name in ("bytes.fromhex", "binascii.unhexlify") and args:
            try:
                return bytes.fromhex(self.text(args[0], depth)).decode("utf-8", "replace")
            except ValueError:
                return HOLE
        if name in _PASS_THROUGH:
            return self.text(args[0], depth) if args else self.scope.cwd
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func, depth)
        return HOLE

    def _listed(self, node: ast.expr) -> list[ast.expr] | None:
        """The items of a list that is spelled out, here or where its name is set."""
        if isinstance(node, ast.Name) and node.id not in self.loops:
            node = self.names.get(node.id, node)
        return node.elts if isinstance(node, ast.List | ast.Tuple) else None

    def _method(self, node: ast.Call, func: ast.Attribute, depth: int) -> str:
        if func.attr in _METHODS_THROUGH:
            text = self.text(func.value, depth)
            return expand_home(text, self.scope) if func.attr == "expanduser" else text
        if func.attr == "joinpath":
            return posixpath.join(
                self.text(func.value, depth), *(self.text(a, depth) for a in node.args)
            )
        given = self.arguments(node.args[0]) if func.attr == "join" and node.args else None
        if given is not None:
            return self.text(func.value, depth).join(given)
        listed = self._listed(node.args[0]) if func.attr == "join" and node.args else None
        if listed is not None:
            return self.text(func.value, depth).join(self.text(part, depth) for part in listed)
        if func.attr == "replace" and len(node.args) == 2:
            old, new = (self.text(arg, depth) for arg in node.args)
            return self.text(func.value, depth).replace(old, new)
        if func.attr == "format":
            text = self.text(func.value, depth)
            for arg in node.args:
                text = text.replace("{}", self.text(arg, depth), 1)
            return text
        return HOLE


def imported(tree: Tree) -> dict[str, str]:
    """The names that a source's imports bind, and what each of them is in full."""
    found: dict[str, str] = {}
    for node in tree.of(ast.Import):
        for alias in node.names:
            if alias.asname:
                found[alias.asname] = alias.name
            else:
                top = alias.name.partition(".")[0]
                found[top] = top
    for part in tree.of(ast.ImportFrom):
        for alias in part.names:
            found[alias.asname or alias.name] = f"{part.module}.{alias.name}"
    return found


def expand_home(text: str, scope: Scope) -> str:
    """A path with its leading `~` replaced."""
    return scope.home + text[1:] if text == "~" or text.startswith("~/") else text
