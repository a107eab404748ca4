"""The calls in Python source that do something to the machine."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from hermes.safety.shell.deleting import kind_of_delete
from hermes.safety.shell.interpreters import sql
from hermes.safety.shell.interpreters.python_purity import is_pure, may_be_pure
from hermes.safety.shell.interpreters.python_values import Values
from hermes.safety.shell.opening import literal, run_words
from hermes.safety.shell.paths import is_credential, targets
from hermes.safety.shell.places import judge_write
from hermes.safety.shell.scope import HOLE, UNSET
from hermes.safety.shell.tables import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.command import Command
    from hermes.safety.shell.judge import Judge
    from hermes.safety.shell.words import Word

_DELETE_ONE = frozenset(("os.remove", "os.unlink"))
_DELETE_TREE = names(
    "shutil.rmtree os.removedirs distutils.dir_util.remove_tree "
    "setuptools.distutils.dir_util.remove_tree"
)
_RUN_TEXT = names(
    "os.system os.popen subprocess.getoutput subprocess.getstatusoutput commands.getoutput "
    "popen2.popen2 "
    "asyncio.create_subprocess_shell pexpect.run pexpect.spawn platform.popen os.popen2 os.popen3 "
    "get_ipython().system"
)
_RUN_LIST = names(
    "subprocess.run subprocess.call subprocess.check_call subprocess.check_output "
    "subprocess.Popen pty.spawn "
    "sh.Command"
)
_RUN_ARGUMENTS = frozenset(("asyncio.create_subprocess_exec",))
_WRITE_FIRST = names("os.truncate os.mkdir os.makedirs os.chmod os.chown")
_WRITE_SECOND = names(
    "os.rename os.replace os.renames shutil.move shutil.copy shutil.copy2 shutil.copyfile "
    "shutil.copytree "
    "os.symlink os.link urllib.request.urlretrieve"
)
_COPIES = names(
    "shutil.copy shutil.copy2 shutil.copyfile shutil.copytree os.symlink os.link "
    "urllib.request.urlretrieve"
)
_NETWORK = names(
    "urllib.request.urlopen urllib.urlopen urllib2.urlopen requests.get requests.post requests.put "
    "requests.request httpx.get httpx.post httpx.put aiohttp.request http.client.HTTPSConnection "
    "http.client.HTTPConnection urllib3.request"
)
_MOST_NODES = 20_000
_LEAVES = frozenset((ast.Name, ast.Constant, ast.alias, ast.Pass))
_NO_NODES = frozenset((int, str, type(None), ast.Load, ast.Store, float, bool))
_HOLE_NAME = "hole_in_source"
_BLOCK_IN_LINE = re.compile(r"[;\n]\s*(?=(?:for|while|if|with|try|def|class|async)\b)")


def judge_source(text: str, command: Command, judge: Judge) -> None:
    """Report what a piece of Python would do."""
    readable = text.replace(HOLE, _HOLE_NAME).replace(UNSET, _HOLE_NAME)
    tree = _parsed(readable)
    if tree is None:
        judge.blame("text.unreadable-code", command)
        return
    nodes = _nodes(tree)
    if len(nodes) > _MOST_NODES:
        judge.blame("text.too-complex", command)
        return
    if judge.reads_only and "pure" not in command.memo:
        # Once for each command: code that the source itself runs is part of it.
        command.memo["pure"] = "yes" if may_be_pure(readable) and is_pure(nodes) else "no"
    _Reader(nodes, readable, command, judge).read()


def _nodes(tree: ast.AST) -> list[ast.AST]:
    """Every node, as `ast.walk` gives them but for the marks that say only load or store."""
    found = [tree]
    for node in found:
        if node.__class__ in _LEAVES:
            continue
        for value in node.__dict__.values():
            kind = value.__class__
            if kind is list:
                found += [item for item in value if item.__class__ not in _NO_NODES]
            elif kind not in _NO_NODES and isinstance(value, ast.AST):
                found.append(value)
    return found


def _parsed(text: str) -> ast.Module | None:
    import textwrap
    import warnings

    # `import os; for …` is no Python; the shell's quoting often costs the newline.
    for attempt in (text, textwrap.dedent(text).strip(), _BLOCK_IN_LINE.sub("\n", text)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(attempt)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


class _Reader:
    def __init__(self, nodes: list[ast.AST], text: str, command: Command, judge: Judge) -> None:
        self.nodes = nodes
        self.text = text
        self.command = command
        self.judge = judge
        self.scope = command.scope
        self.values = Values(nodes, command.scope)

    def read(self) -> None:
        calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        called = [(call, self.values.dotted(call.func)) for call in calls]
        names = {name for _, name in called}
        if "os.chdir" in names:
            self._change_directory(calls)
        connects = (
            any(name.endswith((".connect", ".connect_ex")) for name in names)
            and "socket" in self.text
        )
        if connects and (names & (_RUN_LIST | _RUN_TEXT) or "os.dup2" in names):
            self.judge.blame("network.reverse-shell", self.command)
        elif any(name.endswith((".bind", ".listen")) for name in names) and "socket" in self.text:
            self.judge.blame("network.listener", self.command)
        if any(name.endswith(("HTTPServer", "TCPServer", "http.server.test")) for name in names):
            self.judge.blame("network.listener", self.command)
        if "fork" in self.text:
            self._forks()
        for call, name in called:
            self._call(call, name)
            self._handed_on(call)

    def _handed_on(self, call: ast.Call) -> None:
        """`map(os.remove, files)`: the function is named here and called by someone else."""
        for node in [*call.args, *(keyword.value for keyword in call.keywords)]:
            if isinstance(node, ast.Attribute | ast.Name):
                name = self.values.dotted(node)
                if name in _DELETE_ONE or name in _DELETE_TREE:
                    self.judge.blame("delete.each", self.command)
                elif name in _RUN_TEXT or name in _RUN_LIST:
                    self.judge.blame("text.unknown-program", self.command)

    def _change_directory(self, calls: list[ast.Call]) -> None:
        self.scope = self.scope.copy()
        self.values.scope = self.scope
        for call in calls:
            if self.values.dotted(call.func) == "os.chdir" and call.args:
                self.scope.go(self.values.text(call.args[0]))

    def _forks(self) -> None:
        for node in self.nodes:
            if isinstance(node, ast.While | ast.For | ast.ListComp | ast.GeneratorExp) and any(
                isinstance(inner, ast.Call) and self.values.dotted(inner.func) == "os.fork"
                for inner in ast.walk(node)
            ):
                self.judge.blame("process.fork-bomb", self.command)

    def _word(self, node: ast.expr) -> Word:
        text = self.values.text(node).replace(_HOLE_NAME, HOLE)
        return literal(text, self.command)

    def _call(self, call: ast.Call, name: str) -> None:
        args = call.args
        if args and isinstance(args[0], ast.Starred):
            args = [ast.Constant(HOLE)]
        handler = self._named(name)
        if handler is not None:
            if args:
                handler(args)
            return
        if name in ("exec", "eval", "compile", "builtins.exec", "builtins.eval"):
            self._code(args)
        elif name in _NETWORK:
            if any(
                "os.environ" in ast.unparse(part)
                for part in [*args, *(k.value for k in call.keywords)]
            ):
                self.judge.blame("secrets.sent", self.command)
        elif name in ("open", "io.open", "codecs.open") and args:
            self._open(call, args)
        elif (
            name in ("os.kill", "os.killpg") and args and self.values.text(args[0]) in ("-1", HOLE)
        ):
            if not isinstance(args[0], ast.Call):
                self.judge.blame("process.kill-all", self.command)
        elif isinstance(call.func, ast.Attribute):
            self._method(call, call.func, args)

    def _named(self, name: str) -> Callable[[list[ast.expr]], None] | None:
        if name in _DELETE_ONE:
            return lambda args: self._delete(args[0], recursive=False)
        if name in _DELETE_TREE:
            return lambda args: self._delete(args[0], recursive=True)
        if name in _RUN_TEXT:
            return lambda args: self._shell(args[0])
        if name in _RUN_LIST:
            return lambda args: self._program(args[0])
        if name in _RUN_ARGUMENTS or name.startswith("os.spawn"):
            start = 1 if name.startswith("os.spawn") else 0
            return lambda args: self._arguments(args[start:])
        if name.startswith(("os.exec", "os.posix_spawn")):
            return lambda args: self._arguments(args[1:])
        if name in _WRITE_FIRST:
            return lambda args: self._write(args[0])
        if name in _WRITE_SECOND:
            first = 1 if name in _COPIES else 0
            return lambda args: self._write_all(args[first:2])
        return None

    def _delete(self, node: ast.expr, *, recursive: bool) -> None:
        word = self._word(node)
        if "glob" in ast.unparse(node):
            word.glob = True
        rule = kind_of_delete([word], self.scope, recursive=recursive)
        if rule:
            self.judge.blame(rule, self.command)
        judge_write(word, self.command.text, self.scope, self.judge)

    def _shell(self, node: ast.expr) -> None:
        word = self._word(node)
        self.judge.run_text(word.text, self.command.origin.vague(), self.scope.copy())

    def _program(self, node: ast.expr) -> None:
        if isinstance(node, ast.Name) and node.id in self.values.names:
            node = self.values.names[node.id]
        if isinstance(node, ast.List | ast.Tuple):
            self._arguments(list(node.elts))
        elif (
            isinstance(node, ast.Call)
            and self.values.dotted(node.func) == "shlex.split"
            and node.args
        ):
            self._shell(node.args[0])
        else:
            self._shell(node)

    def _arguments(self, nodes: list[ast.expr]) -> None:
        flat: list[ast.expr] = []
        for node in nodes:
            flat.extend(node.elts if isinstance(node, ast.List | ast.Tuple) else [node])
        words = [self._word(node) for node in flat]
        # A Python that starts itself is not a program of unknown name.
        if flat and ast.unparse(flat[0]) == "sys.executable":
            words[0] = literal("python", self.command)
        for word, node in zip(words, flat, strict=False):
            if isinstance(node, ast.Starred):
                word.text = HOLE
        run_words(words, self.command, self.judge, scope=self.scope.copy())

    def _write(self, node: ast.expr) -> None:
        judge_write(self._word(node), self.command.text, self.scope, self.judge)

    def _write_all(self, nodes: list[ast.expr]) -> None:
        for node in nodes:
            self._write(node)

    def _read(self, node: ast.expr) -> None:
        word = self._word(node)
        if any(is_credential(path, self.scope) for path in targets(word, self.scope)):
            self.judge.blame("secrets.read", self.command)

    def _open(self, call: ast.Call, args: list[ast.expr]) -> None:
        mode = args[1] if len(args) > 1 else None
        for keyword in call.keywords:
            if keyword.arg == "mode":
                mode = keyword.value
        text = self.values.text(mode) if mode is not None else "r"
        if any(letter in text for letter in "wax+" + HOLE):
            self._write(args[0])
        else:
            self._read(args[0])

    def _code(self, args: list[ast.expr]) -> None:
        if not args:
            return
        source = ast.unparse(args[0])
        text = self.values.text(args[0])
        if any(
            word in source for word in ("urlopen", "requests.", "httpx.", "recv(", "http.client")
        ) or any(
            word in source
            for word in ("b64decode", "fromhex", "unhexlify", "decompress", "rot13", "loads")
        ):
            self.judge.blame("remote-code.pipe", self.command)
        if HOLE not in text and _HOLE_NAME not in text and text != self.text:
            self.judge.depth += 1
            if self.judge.depth < 24:
                judge_source(text, self.command, self.judge)
            self.judge.depth -= 1

    def _method(self, call: ast.Call, func: ast.Attribute, args: list[ast.expr]) -> None:
        attr = func.attr
        if attr == "unlink":
            self._delete(func.value, recursive=False)
        elif attr in ("write_text", "write_bytes", "touch", "mkdir"):
            self._write(func.value)
        elif attr in ("read_text", "read_bytes"):
            self._read(func.value)
        elif attr == "open" and self.values.text(func.value) != HOLE:
            self._open(call, [func.value, *args])
        elif attr in ("rename", "replace") and len(args) == 1:
            self._write(args[0])
        elif attr in ("execute", "executescript", "executemany") and args:
            sql.judge_statements(self.values.text(args[0]), self.command, self.judge)
        elif attr == "rmtree":
            self._delete(args[0] if args else func.value, recursive=True)
        elif attr in ("drop_all", "dropDatabase", "drop_database"):
            self.judge.blame("database.drop", self.command)
