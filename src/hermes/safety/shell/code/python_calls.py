"""Calls in Python source that affect the machine, files and services."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import hermes.safety.shell.code.sql as sql
from hermes.safety.shell.code.python_effects import HOLE_NAME, Origins, PythonFiles, judge_services
from hermes.safety.shell.code.python_purity import is_pure, may_be_pure
from hermes.safety.shell.code.python_values import (
    BUILTINS,
    COPIES,
    DELETE_ONE,
    DELETE_TREE,
    HANDED_ON,
    NETWORK,
    PRINTED,
    READERS,
    RUN_ARGUMENTS,
    RUN_LIST,
    RUN_TEXT,
    SENDERS,
    TELLING_NAMES,
    TELLING_STARTS,
    UNPICKLES,
    WRITE_FIRST,
    WRITE_SECOND,
    Values,
    by_kind,
    parsed,
)
from hermes.safety.shell.code.service_calls import is_near
from hermes.safety.shell.command import literal, run_words
from hermes.safety.shell.file_flow import code_at, fetch, is_unread
from hermes.safety.shell.scope import ANYTHING, DECODED, ENVIRONMENT, HOLE, UNSET, Stream
from hermes.safety.shell.scope import NETWORK as NETWORK_TAG
from hermes.safety.shell.script_files import run_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.code.python_values import Tree
    from hermes.safety.shell.command import Command


_SERVERS = ("HTTPServer", "TCPServer", "UDPServer", "http.server.test")
# A source without any of these opens nothing.
_TELLING = ("Server", "server", "bind", "listen")
_SERVING = (".accept", ".serve_forever", ".recvfrom", "http.server.test", ".handle_request")


def opens_port(called: list[tuple[ast.Call, str]], text: str, values: Values) -> bool:
    """Whether one of these calls listens on an address that others can reach."""
    if not any(word in text for word in _TELLING):
        return False
    serves = any(name.endswith(_SERVING) for _, name in called) or "accept" in text
    for call, name in called:
        if name.endswith(_SERVERS) or (name.endswith(".bind") and "socket" in text):
            if not _is_private(call, values, serves=serves):
                return True
        elif name.endswith(".listen") and "socket" in text and "bind" not in text:
            return True
    return False


def _is_private(call: ast.Call, values: Values, *, serves: bool) -> bool:
    """Whether an address is of this machine alone: loopback, a file, a port that nobody knows."""
    if not call.args:
        return False
    address = call.args[0]
    if isinstance(address, ast.Name):
        address = values.names.get(address.id, address)
    if not isinstance(address, ast.Tuple) or len(address.elts) < 2:
        return values.text(address).startswith(("/", "./"))
    host, port = (values.text(part) for part in address.elts[:2])
    if host.startswith("127.") or host in ("localhost", "::1"):
        return True
    # A port of the system's choosing, asked for and let go again: somebody looks for a free one.
    return port == "0" and not serves


_STEPS_OF_A_SOURCE = 10
_LONGEST = 50_000
_MOST_NODES = 20_000
_MOST_NODES_OF_A_FILE = 150_000
_TELLING_WORD = re.compile(r"\b(?:os|subprocess|shutil|socket|exec|eval|__import__|ctypes|pty)\b")
_READ_SOURCE = re.compile(r"(?:open|Path)\('([^']+)'[^)]*\)\.read(?:_text)?\(")
_OWN_FILE = re.compile(r"__file__|sys\.argv\[0\]")
# Words without which nothing in a source comes from elsewhere.
_FROM_ELSEWHERE = (
    "url", "requests", "httpx", "aiohttp", "http.client", "recv", "decode", "decompress", "hex",
    "rot", "loads", "environ", "wget",
)  # fmt: skip
_UNREAD = frozenset((NETWORK_TAG, DECODED))
_NAMED = frozenset((ast.Attribute, ast.Name))


def judge_source(text: str, command: Command, judge: Judge) -> None:
    """Report what a piece of Python would do."""
    if not judge.step(_STEPS_OF_A_SOURCE):
        return
    if len(text) > _LONGEST and not command.scope.script:
        judge.blame("text.too-complex", command)
        return
    readable = text.replace(HOLE, HOLE_NAME).replace(UNSET, HOLE_NAME)
    module = parsed(readable)
    if module is None:
        # A file with a mistake in it does nothing at all; only another Python could run it.
        if not command.scope.script or _TELLING_WORD.search(readable):
            judge.blame("text.unreadable-code", command)
        return
    most = _MOST_NODES_OF_A_FILE if command.scope.script else _MOST_NODES
    tree = by_kind(module, most)
    if tree.size > most:
        judge.blame("text.too-complex", command)
        return
    if judge.reads_only and "pure" not in command.memo:
        # Once for each command: code that the source itself runs is part of it.
        command.memo["pure"] = "yes" if may_be_pure(readable) and is_pure(tree) else "no"
    _Reader(tree, readable, command, judge).read()


class _Reader:
    def __init__(self, tree: Tree, text: str, command: Command, judge: Judge) -> None:
        self.tree = tree
        self.text = text
        self.command = command
        self.judge = judge
        self.scope = command.scope
        # What the program that is started next reads.
        self.fed: Stream | None = None
        self.values = Values(tree, command.scope)
        self.files = PythonFiles(tree, text, command, judge, self.values)
        elsewhere = any(word in text for word in _FROM_ELSEWHERE)
        self.origins = Origins(tree, self.values) if elsewhere else None

    def read(self) -> None:
        calls = self.tree.of(ast.Call)
        called = [
            (call, self.values.dotted(call.func)) for call in calls if self._may_matter(call.func)
        ]
        if "write" in self.text:
            # What a file is filled with has to be known before it is run.
            called.sort(key=lambda pair: (pair[0].lineno, pair[0].col_offset))
        names = {name for _, name in called}
        if "os.chdir" in names:
            self._change_directory(calls)
        connects = (
            any(name.endswith((".connect", ".connect_ex", "create_connection")) for name in names)
            and "socket" in self.text
        )
        if connects and (names & (RUN_LIST | RUN_TEXT) or "os.dup2" in names):
            self.judge.blame("network.reverse-shell", self.command)
        elif not self.scope.script and opens_port(called, self.text, self.values):
            self.judge.blame("network.listener", self.command)
        if "fork" in self.text or "__file__" in self.text or "sys.argv[0]" in self.text:
            self._forks()
        for call, name in called:
            self._call(call, name)
        if self._hands_on():
            for call in calls:
                self._handed_on(call)
        if not self.scope.script:
            judge_services(calls, self.text, self.command, self.judge)

    def _may_matter(self, func: ast.expr) -> bool:
        """Whether a function could be one of the tables', by the last part of its name."""
        if func.__class__ is ast.Attribute:
            attr: str = func.attr
            return attr in TELLING_NAMES or attr.startswith(TELLING_STARTS)
        if func.__class__ is ast.Name:
            name: str = func.id
            return name in BUILTINS or name in self.values.modules or name in self.values.names
        return True

    def _hands_on(self) -> bool:
        """Whether a function that matters is named at all, by whatever name."""
        named = {node.attr for node in self.tree.of(ast.Attribute)}
        named.update(name.rpartition(".")[2] for name in self.values.modules.values())
        return not HANDED_ON.isdisjoint(named) or "getattr" in self.text

    def _handed_on(self, call: ast.Call) -> None:
        """`map(os.remove, files)`: the function is named here and called by someone else."""
        given = call.args
        if call.keywords:
            given = [*given, *[keyword.value for keyword in call.keywords]]
        for node in given:
            if node.__class__ in _NAMED and self._may_matter(node):
                name = self.values.dotted(node)
                if name in DELETE_ONE or name in DELETE_TREE:
                    self.judge.blame("delete.each", self.command)
                elif name in RUN_TEXT or name in RUN_LIST:
                    self.judge.blame("text.unknown-program", self.command)

    def _change_directory(self, calls: list[ast.Call]) -> None:
        self.scope = self.scope.copy()
        self.values.scope = self.scope
        for call in calls:
            if self.values.dotted(call.func) == "os.chdir" and call.args:
                self.scope.go(self.values.text(call.args[0]))

    def _forks(self) -> None:
        for kind in (ast.While, ast.For, ast.ListComp, ast.GeneratorExp):
            for node in self.tree.of(kind):
                if any(
                    isinstance(inner, ast.Call) and self._copies_itself(inner)
                    for inner in ast.walk(node)
                ):
                    self.judge.blame("process.fork-bomb", self.command)

    def _copies_itself(self, call: ast.Call) -> bool:
        name = self.values.dotted(call.func)
        if name == "os.fork":
            return True
        return name in ("subprocess.Popen", "os.system", "os.spawnl", "os.popen") and bool(
            _OWN_FILE.search(ast.unparse(call))
        )

    def _sends(self, call: ast.Call) -> None:
        """Report the whole environment on its way to another machine."""
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if (
            not self.scope.script
            and any(ENVIRONMENT in self._origins(part) for part in given)
            and not is_near("", self.text)
        ):
            self.judge.blame("secrets.sent", self.command)

    def _keeps(self, file: ast.expr) -> None:
        """Note what was fetched into a file, in case the text runs it afterwards."""
        for opened in (file, *self.origins.bound(file)) if self.origins is not None else ():
            if isinstance(opened, ast.Call) and opened.args:
                path = self.values.text(opened.args[0])
                if HOLE not in path:
                    fetch(path, self.scope)

    def _origins(self, node: ast.expr) -> set[str]:
        return self.origins.of(node) if self.origins is not None else set()

    def _unread(self, nodes: list[ast.expr]) -> None:
        """Report what is started with text that nobody has read."""
        if self.origins is not None and any(self.origins.of(node) & _UNREAD for node in nodes):
            self.judge.blame("remote-code.pipe", self.command)

    def _call(self, call: ast.Call, name: str) -> None:
        args = call.args
        if args and isinstance(args[0], ast.Starred):
            args = [ast.Constant(HOLE)]
        handler = self._named(name)
        if handler is not None:
            self.fed = None
            if name in RUN_LIST and call.keywords:
                self._feeds(call)
            elif name == "urllib.request.urlretrieve" and len(args) > 1:
                fetch(self.values.text(args[1]), self.scope)
            if args:
                handler(args)
            return
        if name in ("exec", "eval", "compile", "builtins.exec", "builtins.eval"):
            self._code(args)
        elif name in NETWORK:
            self._sends(call)
        elif name in ("open", "io.open", "codecs.open") and args:
            self.files.open(call, args)
        elif (
            name in ("os.kill", "os.killpg") and args and self.values.text(args[0]) in ("-1", HOLE)
        ):
            if not isinstance(args[0], ast.Call):
                self.judge.blame("process.kill-all", self.command)
        elif name in UNPICKLES and args:
            if NETWORK_TAG in self._origins(args[0]):
                self.judge.blame("remote-code.pipe", self.command)
        elif name == "runpy.run_path" and args:
            if is_unread(code_at(self.values.text(args[0]), self.scope)):
                self.judge.blame("remote-code.downloaded", self.command)
        elif name in ("glob.glob", "glob.iglob") and args:
            # The names alone are no secret.
            if "open(" in self.text or "read" in self.text:
                self.files.read(args[0])
        elif name in PRINTED and (args or name != "netrc.netrc" or "print" in self.text):
            self.judge.blame("secrets.printed", self.command)
        elif isinstance(call.func, ast.Attribute):
            self._method(call, call.func, args)
        elif args and name.rpartition(".")[2] in READERS:
            self.files.read(args[0])

    def _feeds(self, call: ast.Call) -> None:
        """Note the text that a program is given to read, unless nobody has read it."""
        given = [word.value for word in call.keywords if word.arg == "input"]
        self._unread(given)
        for node in given:
            text = self.values.text(node).replace(HOLE_NAME, HOLE)
            self.fed = ANYTHING if HOLE in text else Stream(text)

    def _named(self, name: str) -> Callable[[list[ast.expr]], None] | None:
        if name in DELETE_ONE:
            return lambda args: self.files.delete(args[0], recursive=False)
        if name in DELETE_TREE:
            return lambda args: self.files.delete(args[0], recursive=True)
        if name in RUN_TEXT:
            return lambda args: self._shell(args[0])
        if name in RUN_LIST:
            return lambda args: self._program(args[0])
        if name in RUN_ARGUMENTS or name.startswith("os.spawn"):
            start = 1 if name.startswith("os.spawn") else 0
            return lambda args: self._arguments(args[start:])
        if name.startswith(("os.exec", "os.posix_spawn")):
            return lambda args: self._arguments(args[1:])
        if name == "os.truncate":
            return self.files.truncate
        if name in WRITE_FIRST:
            return lambda args: self.files.write(args[0])
        if name in WRITE_SECOND:
            first = 1 if name in COPIES else 0
            return lambda args: self.files.write_all(args[first:2])
        return None

    def _shell(self, node: ast.expr) -> None:
        self._unread([node])
        word = self.files.word(node)
        self.judge.run_text(word.text, self.command.origin.vague(), self.scope.copy(), self.fed)

    def _elsewhere(self, node: ast.expr) -> None:
        """A command for the machine at the other end of a connection."""
        scope = self.scope.copy()
        scope.elsewhere = True
        self.judge.run_text(self.files.word(node).text, self.command.origin.vague(), scope)

    def _program(self, node: ast.expr) -> None:
        if isinstance(node, ast.Name) and node.id in self.values.names:
            node = self.values.names[node.id]
        given = self.values.arguments(node)
        if given is not None:
            self._arguments([ast.Constant(word) for word in given])
        elif isinstance(node, ast.List | ast.Tuple):
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
            given = self.values.arguments(node.value if isinstance(node, ast.Starred) else node)
            if given is not None:
                flat.extend(ast.Constant(word) for word in given)
            else:
                flat.extend(node.elts if isinstance(node, ast.List | ast.Tuple) else [node])
        words = [self.files.word(node) for node in flat]
        # A Python that starts itself is not a program of unknown name.
        if flat and ast.unparse(flat[0]) == "sys.executable":
            words[0] = literal("python", self.command)
        for word, node in zip(words, flat, strict=False):
            if isinstance(node, ast.Starred):
                word.text = HOLE
        run_words(words, self.command, self.judge, scope=self.scope.copy(), stdin=self.fed)

    def _code(self, args: list[ast.expr]) -> None:
        if not args:
            return
        source = ast.unparse(args[0])
        text = self.values.text(args[0])
        named = _READ_SOURCE.search(source)
        if named and is_unread(code_at(named.group(1), self.scope)):
            self.judge.blame("remote-code.downloaded", self.command)
        elif named:
            run_file(named.group(1), self.command, self.judge, kind="python", args=[])
        if self._origins(args[0]) & _UNREAD:
            self.judge.blame("remote-code.pipe", self.command)
        if HOLE not in text and HOLE_NAME not in text and text != self.text:
            self.judge.depth += 1
            if self.judge.depth < 24:
                judge_source(text, self.command, self.judge)
            self.judge.depth -= 1

    def _method(self, call: ast.Call, func: ast.Attribute, args: list[ast.expr]) -> None:
        attr = func.attr
        if attr == "unlink":
            self.files.delete(func.value, recursive=False)
        elif attr in ("write_text", "write_bytes", "touch", "mkdir"):
            self.files.write(func.value)
            if args and NETWORK_TAG in self._origins(args[0]):
                fetch(self.values.text(func.value), self.scope)
            elif args and attr[:5] == "write":
                self.files.put(func.value, args[0])
            empty = [isinstance(arg, ast.Constant) and not arg.value for arg in args]
            if empty == [True] and not self.scope.script:
                self.judge.blame("delete.emptied", self.command)
        elif attr in ("read_text", "read_bytes"):
            self.files.read(func.value)
        elif attr in READERS and args:
            self.files.read(args[0])
        elif attr in SENDERS:
            self._sends(call)
        elif attr == "write" and args:
            if NETWORK_TAG in self._origins(args[0]):
                self._keeps(func.value)
            else:
                self.files.put(func.value, args[0])
        elif attr == "open" and self.values.text(func.value) != HOLE:
            self.files.open(call, [func.value, *args])
        elif attr in ("rename", "replace") and len(args) == 1:
            self.files.write(args[0])
        elif attr in ("execute", "executescript", "executemany") and args:
            sql.judge_statements(self.values.text(args[0]), self.command, self.judge)
        elif attr == "rmtree":
            self.files.delete(args[0] if args else func.value, recursive=True)
        elif attr in ("system", "popen", "execl", "execv") and "ctypes" in self.text and args:
            self._shell(args[0])
        elif args and (
            attr == "exec_command" or (attr in ("run", "sudo") and "fabric" in self.text)
        ):
            self._elsewhere(args[0])
