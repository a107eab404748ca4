"""File effects of Python source, calls on services, and the origin of values (network, decoder,
environment).
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from hermes.safety.shell.code.service_calls import (
    LISTS_PROCESSES,
    SERVICE_VERBS,
    deletes_all,
    request_rule,
    service_rule,
)
from hermes.safety.shell.command import literal
from hermes.safety.shell.delete_targets import kind_of_delete
from hermes.safety.shell.file_flow import remember_text
from hermes.safety.shell.path_classes import is_credential, targets
from hermes.safety.shell.path_rules import judge_write
from hermes.safety.shell.scope import DECODED, ENVIRONMENT, HOLE, NETWORK, names

if TYPE_CHECKING:
    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.code.python_values import Tree, Values
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.words import Word


_CLIENTS = ("requests.", "httpx.", "aiohttp.", "urllib3.", "http.client.", "urllib.request.")
_FETCHES = names("urllib.urlopen urllib2.urlopen urlopen wget.download pip._vendor.requests.get")
_FETCHING_METHODS = names("recv recvfrom getresponse urlopen urlretrieve download_string")
_DECODERS = names(
    "b64decode standard_b64decode urlsafe_b64decode b32decode b16decode b85decode a85decode "
    "decodebytes fromhex unhexlify a2b_base64 a2b_hex decompress rot13"
)
_DECODING = names("codecs.decode marshal.loads pickle.loads dill.loads cloudpickle.loads")
_MOST_NODES = 400


class Origins:
    """What the expressions of one source are made from."""

    def __init__(self, tree: Tree, values: Values) -> None:
        self.values = values
        self._bound: dict[str, list[ast.expr]] = {}
        for node in tree.of(ast.Assign):
            for target in node.targets:
                self._bind(target, node.value)
        for item in tree.of(ast.withitem):
            if item.optional_vars is not None:
                self._bind(item.optional_vars, item.context_expr)
        for named in tree.of(ast.NamedExpr):
            self._bind(named.target, named.value)
        for added in tree.of(ast.AugAssign):
            self._bind(added.target, added.value)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._bound.setdefault(target.id, []).append(value)

    def bound(self, node: ast.expr) -> list[ast.expr]:
        """What a name was set to, in order."""
        return self._bound.get(node.id, []) if isinstance(node, ast.Name) else []

    def of(self, top: ast.expr) -> set[str]:
        """The tags of everything that an expression is made from."""
        found: set[str] = set()
        waiting: list[ast.AST] = [top]
        seen: set[str] = set()
        single: set[int] = set()
        for node in waiting:
            if len(waiting) > _MOST_NODES:
                break
            if isinstance(node, ast.Name):
                if node.id not in seen:
                    seen.add(node.id)
                    waiting += self._bound.get(node.id, ())
                    if self.values.modules.get(node.id) == "os.environ" and id(node) not in single:
                        found.add(ENVIRONMENT)
                continue
            if isinstance(node, ast.Call):
                found |= self._called(node)
            elif isinstance(node, ast.Subscript):
                single.add(id(node.value))
            elif isinstance(node, ast.Attribute):
                if node.attr == "get":
                    single.add(id(node.value))
                elif (
                    node.attr in ("environ", "environb")
                    and id(node) not in single
                    and self.values.dotted(node).startswith("os.environ")
                ):
                    found.add(ENVIRONMENT)
            waiting += ast.iter_child_nodes(node)
        return found

    def _called(self, call: ast.Call) -> set[str]:
        name = self.values.dotted(call.func)
        last = name.rpartition(".")[2] or getattr(call.func, "attr", "")
        if name.startswith(_CLIENTS) or name in _FETCHES or last in _FETCHING_METHODS:
            return {NETWORK}
        if last in _DECODERS or name in _DECODING:
            return {DECODED}
        if last == "decode" and any(
            isinstance(arg, ast.Constant) and arg.value in ("rot13", "rot_13", "hex", "base64")
            for arg in call.args
        ):
            return {DECODED}
        return set()


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


# Sources without any of these need no look at their calls.
_TELLING = (
    ".delete", ".batch_delete", ".drop", ".flush", ".terminate", ".destroy", ".purge", ".prune",
    ".deregister", ".kill", ".remove", ".truncate", "chmod(", "DELETE",
)  # fmt: skip
_SET_ID = re.compile(r"S_IS[UG]ID")


def judge_services(calls: list[ast.Call], text: str, command: Command, judge: Judge) -> None:
    """Report calls that destroy what a service keeps, kill by name or set the user on running."""
    if ".objects" in text and deletes_all(text):
        judge.blame("database.empty", command)
    if not any(word in text for word in _TELLING):
        return
    by_name = "process_iter" in text or "pids()" in text
    by_number = not by_name and "kill" in text and LISTS_PROCESSES.search(text) is not None
    for call in calls:
        func = call.func
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        kills = (by_name and name in ("kill", "terminate", "send_signal")) or (
            by_number and name in ("kill", "killpg") and call.args
        )
        if kills and not _asks(call):
            judge.blame("process.kill-by-name", command)
        elif name in ("chmod", "fchmod", "lchmod"):
            if any(_sets_id(node) for node in call.args):
                judge.blame("permissions.set-uid", command)
        elif name.startswith(SERVICE_VERBS):
            given = ", ".join(
                [
                    *(ast.unparse(node) for node in call.args),
                    *(f"{k.arg}={ast.unparse(k.value)}" for k in call.keywords),
                ]
            )
            rule = service_rule(name, given, text)
            if rule:
                judge.blame(rule, command)
    rule = request_rule(text)
    if rule:
        judge.blame(rule, command)


def _asks(call: ast.Call) -> bool:
    """Whether a signal only asks whether a process is there."""
    signal = call.args[-1] if call.args else None
    return isinstance(signal, ast.Constant) and signal.value == 0


def _sets_id(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and bool(node.value & 0o6000)
    return isinstance(node, ast.BinOp | ast.Attribute) and bool(_SET_ID.search(ast.unparse(node)))
