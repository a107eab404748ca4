"""Inline Python, read with `ast`: a call by a telling name asks.

Values are literals, f-strings, joins of them, and names that are set to one.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

from hermes.safety.shell.code.effects import SERVICE_VERBS, Call, Effects
from hermes.safety.shell.code.python_purity import is_pure, may_be_pure
from hermes.safety.shell.scope import ANYTHING, HOLE, UNSET, Stream, expand_home, names
from hermes.safety.shell.script_files import run_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command

Kinds: TypeAlias = "dict[type[ast.AST], list[Any]]"

# Functions by their full name.
_FUNCTIONS = {
    "tree": "shutil.rmtree os.removedirs distutils.dir_util.remove_tree",
    "one": "os.remove os.unlink",
    "run": "os.system os.popen subprocess.getoutput subprocess.getstatusoutput subprocess.run "
    "subprocess.call subprocess.check_call subprocess.check_output subprocess.Popen pty.spawn "
    "asyncio.create_subprocess_shell asyncio.create_subprocess_exec pexpect.run pexpect.spawn "
    "commands.getoutput platform.popen get_ipython().system",
    "write": "os.mkdir os.makedirs os.chown",
    "truncate": "os.truncate",
    "chmod": "os.chmod",
    "target": "os.rename os.replace os.renames shutil.move shutil.copy shutil.copy2 "
    "shutil.copyfile shutil.copytree os.symlink os.link urllib.request.urlretrieve",
    "open": "open io.open codecs.open",
    "kill": "os.kill os.killpg",
    "secret": "keyring.get_password keyring.get_credential netrc.netrc",
    "code": "exec eval builtins.exec builtins.eval",
}
_BY_NAME = {name: action for action, text in _FUNCTIONS.items() for name in text.split()}
# Methods of a path, which is their first argument, and of other objects.
_PATH_METHODS = {
    "unlink": "one",
    "write_text": "write",
    "write_bytes": "write",
    "touch": "write",
    "mkdir": "write",
    "read_text": "read",
    "read_bytes": "read",
    "open": "open",
    "rename": "target",
    "replace": "target",
    "rmtree": "tree",
}
_METHODS = {
    **dict.fromkeys(("execute", "executescript", "executemany"), "sql"),
    **dict.fromkeys(("kill", "terminate", "send_signal"), "kill"),
    **dict.fromkeys(
        names(
            "read readlines load fromfile loadtxt genfromtxt read_csv read_table read_json "
            "dotenv_values netrc getlines upload_file upload_from_filename add_file make_archive"
        ),
        "read",
    ),
    "system": "run",
    "exec_command": "elsewhere",
}
_PASS_THROUGH = names(
    "pathlib.Path pathlib.PosixPath pathlib.PurePath str os.fspath os.path.abspath "
    "os.path.realpath os.path.normpath shlex.quote shlex.split shlex.join os.path.expandvars"
)
_METHODS_THROUGH = names("resolve absolute expanduser as_posix strip encode decode")
_LISTS = names("glob iglob rglob listdir iterdir scandir walk")
_TELLING_WORD = re.compile(r"\b(?:os|subprocess|shutil|socket|exec|eval|__import__|ctypes|pty)\b")
_BLOCK_IN_LINE = re.compile(r"[;\n][ \t]*+(?=(?:for|while|if|with|try|def|class|async)\b)")
_READ_SOURCE = re.compile(r"(?:open|Path)\('([^']+)'[^)]*\)\.read(?:_text)?\(")
# A part that the shell fills in, as a name that Python can read.
_HOLE_NAME = "hole_in_source"
_LEAVES = frozenset((ast.Name, ast.Constant, ast.alias, ast.Pass))
_MARKS = frozenset(("ctx", "op"))
_STEPS_OF_A_SOURCE = 10
_LONGEST = 50_000
_MOST_NODES = 20_000
_MOST_NODES_OF_A_FILE = 150_000
_DEEPEST = 20


def judge_source(text: str, command: Command, judge: Judge) -> None:
    """Report the effects of a piece of Python."""
    if not judge.step(_STEPS_OF_A_SOURCE):
        return
    in_file = bool(command.scope.script)
    text = text.replace(HOLE, _HOLE_NAME).replace(UNSET, _HOLE_NAME)
    module = None if len(text) > _LONGEST and not in_file else parsed(text)
    if module is None:
        # A file with a syntax error does nothing at all; only another Python could run it.
        if not in_file or _TELLING_WORD.search(text):
            long = len(text) > _LONGEST
            judge.blame("text.too-complex" if long else "text.unreadable-code", command)
        return
    nodes, kinds = _by_class(module)
    if len(nodes) > (_MOST_NODES_OF_A_FILE if in_file else _MOST_NODES):
        judge.blame("text.too-complex", command)
        return
    if judge.reads_only and "pure" not in command.memo:
        # Once for each command: code that the source itself runs is part of it.
        command.memo["pure"] = (
            "yes" if may_be_pure(text) and is_pure(nodes, imported(kinds)) else "no"
        )
    _Source(kinds, text, command, judge).read()


def parsed(text: str) -> ast.Module | None:
    """The tree of a source, mended where a shell's quoting broke it; None when it is no Python."""
    import textwrap
    import warnings

    # `import os; for …` is no Python; the shell's quoting often costs the newline.
    repairs: tuple[Callable[[str], str], ...] = (
        str,
        lambda text: textwrap.dedent(text).strip(),
        lambda text: _BLOCK_IN_LINE.sub("\n", text),
    )
    for repair in repairs:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(repair(text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _by_class(module: ast.AST) -> tuple[list[ast.AST], Kinds]:
    """The nodes of a tree, also by class; `ast.walk` takes three times as long."""
    nodes = [module]
    kinds: Kinds = defaultdict(list)
    for node in nodes:
        kinds[node.__class__].append(node)
        if node.__class__ not in _LEAVES:
            for field in node._fields:
                value = getattr(node, field, None)
                if value.__class__ is list:
                    nodes += [item for item in value if isinstance(item, ast.AST)]
                elif field not in _MARKS and isinstance(value, ast.AST):
                    nodes.append(value)
    return nodes, kinds


def imported(kinds: Kinds) -> dict[str, str]:
    """The names that a source's imports bind, and the full name of each."""
    modules: dict[str, str] = {}
    for node in kinds[ast.Import]:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            modules[alias.asname or top] = alias.name if alias.asname else top
    for node in kinds[ast.ImportFrom]:
        for alias in node.names:
            modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return modules


class _Source:
    def __init__(self, kinds: Kinds, text: str, command: Command, judge: Judge) -> None:
        self.kinds = kinds
        self.text = text
        self.command = command
        self.judge = judge
        self.scope = command.scope
        self.effects = Effects(text, command, judge, "python")
        self.modules = imported(kinds)
        self.values: dict[str, ast.expr | None] = {}
        for node in kinds[ast.Assign]:
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self.values[target.id] = node.value
        for node in kinds[ast.withitem]:
            if isinstance(node.optional_vars, ast.Name):
                self.values[node.optional_vars.id] = node.context_expr
        for node in kinds[ast.For] + kinds[ast.comprehension]:
            for inner in ast.walk(node.target):
                if isinstance(inner, ast.Name):
                    self.values[inner.id] = None

    def read(self) -> None:
        named = [(call, self._dotted(call.func)) for call in self.kinds[ast.Call]]
        named.sort(key=lambda pair: (pair[0].lineno, pair[0].col_offset))
        called = {name.rpartition(".")[2] for _, name in named}
        if "exec" in called:
            called.add("eval")
        called -= {"socket", "Socket"}
        if "socket" not in self.text:
            called -= {"connect", "create_connection"}
        if "connect_ex" in called or "dup2" in called:
            called.add("connect")
        if any(_BY_NAME.get(name) == "run" for _, name in named):
            called.add("system")
        # Names by which imports are known elsewhere count in full.
        self.effects.text += "\n" + "".join(f"{name}(" for name in self.modules.values())
        self.effects.whole(called, self._paths())
        for call, name in named:
            if name == "os.chdir" and call.args:
                self.scope = self.effects.scope = self.scope.copy()
                self.scope.go(self.value(call.args[0]))
            self._call(call, name)
            self._handed_on(call)

    def _paths(self) -> Iterator[str]:
        below = "HOME" in self.text or "home()" in self.text or "expanduser" in self.text
        for node in self.kinds[ast.Constant]:
            if isinstance(node.value, str) and "." in node.value:
                path = expand_home(node.value, self.scope)
                yield self.scope.absolute(path)
                if below:
                    yield f"{self.scope.home}/{path.strip('/')}"

    def _call(self, call: ast.Call, name: str) -> None:
        owner, _, last = name.rpartition(".")
        action = _BY_NAME.get(name, "")
        if not action and name.startswith(("os.exec", "os.spawn", "os.posix_spawn")):
            action = "run"
        nodes = [arg.value if isinstance(arg, ast.Starred) else arg for arg in call.args]
        of_module = owner in self.modules.values() and owner != "pathlib.Path"
        if not action and isinstance(call.func, ast.Attribute) and not of_module:
            action = _METHODS.get(last, "")
            of_path = _PATH_METHODS.get(last, "")
            if of_path and (last != "replace" or len(nodes) == 1):
                action = of_path
                nodes = nodes if last == "rmtree" and nodes else [call.func.value, *nodes]
        elif not action and last in _METHODS:
            action = _METHODS[last]
        if not (action or last.startswith(SERVICE_VERBS)):
            return
        if action == "run":
            nodes = self._command(nodes, name)
        for keyword in call.keywords:
            if keyword.arg == "mode":
                nodes = [*nodes[:1], keyword.value, *nodes[1:]]
        args = [self.value(node) for node in nodes]
        written = [_written(node) for node in nodes]
        written += [f"{part.arg}={_written(part.value)}" for part in call.keywords]
        fed = [self.value(part.value) for part in call.keywords if part.arg == "input"]
        stdin = Stream(fed[0]) if fed and HOLE not in fed[0] else ANYTHING if fed else None
        known = Call(owner, last, args, written, stdin)
        if last.startswith(SERVICE_VERBS):
            self.effects.call(Call("", last, [], written))
        if action == "code":
            self._code(nodes)
        elif action == "secret":
            if args or last != "netrc" or "print" in self.text:
                self.effects.blame("secrets.printed")
        elif action == "elsewhere":
            scope = self.scope.copy()
            scope.elsewhere = True
            self.judge.run_text("".join(args[:1]), self.command.origin.vague(), scope)
        elif action:
            self.effects.act(action, known)

    def _command(self, nodes: list[ast.expr], name: str) -> list[ast.expr]:
        """The words of a program that is started."""
        if name.startswith(("os.exec", "os.spawn", "os.posix_spawn")):
            nodes = nodes[2 if name.startswith("os.spawn") else 1 :]
        elif name != "asyncio.create_subprocess_exec":
            nodes = nodes[:1]
        words: list[ast.expr] = []
        for node in nodes:
            if isinstance(node, ast.Name):
                node = self.values.get(node.id) or node
            words += node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
        return words

    def _handed_on(self, call: ast.Call) -> None:
        """`map(os.remove, files)`: the function is named here and called by someone else."""
        for node in (*call.args, *(keyword.value for keyword in call.keywords)):
            if isinstance(node, ast.Attribute | ast.Name):
                action = _BY_NAME.get(self._dotted(node))
                if action in ("one", "tree"):
                    self.effects.blame("delete.each")
                elif action == "run":
                    self.effects.blame("text.unknown-program")

    def _code(self, nodes: list[ast.expr]) -> None:
        """Code that is made by code: read where it is known."""
        for node in nodes[:1]:
            text = self.value(node)
            match = _READ_SOURCE.search(ast.unparse(node))
            if match:
                run_file(match[1], self.command, self.judge, kind="python", args=[])
            if HOLE not in text and _HOLE_NAME not in text and text != self.text:
                self.judge.depth += 1
                if self.judge.depth < _DEEPEST:
                    judge_source(text, self.command, self.judge)
                self.judge.depth -= 1

    def _dotted(self, node: ast.expr, depth: int = 0) -> str:
        """The full name of a function: `o.system` after `import os as o` is `os.system`."""
        if depth > _DEEPEST:
            return ""
        if isinstance(node, ast.Name):
            value = self.values.get(node.id)
            if (
                isinstance(value, ast.Attribute | ast.Name | ast.Call)
                and node.id not in self.modules
            ):
                return self._dotted(value, depth + 1) or node.id
            return self.modules.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            return f"{self._dotted(node.value, depth + 1)}.{node.attr}"
        if isinstance(node, ast.Call):
            name = self._dotted(node.func, depth + 1)
            if name in ("__import__", "importlib.import_module") and node.args:
                return self.value(node.args[0])
            if name == "getattr" and len(node.args) > 1:
                return f"{self._dotted(node.args[0], depth + 1)}.{self.value(node.args[1])}"
            return "pathlib.Path" if name in ("pathlib.Path", "Path") else f"{name}()"
        return self._dotted(node.value, depth + 1) if isinstance(node, ast.Subscript) else ""

    def value(self, node: ast.expr, depth: int = 0) -> str:
        """The string or path that an expression gives, with stand-ins for what is not constant."""
        deeper = depth + 1
        if depth > _DEEPEST:
            return HOLE
        if isinstance(node, ast.Constant):
            return (
                node.value.decode("latin-1") if isinstance(node.value, bytes) else str(node.value)
            )
        if isinstance(node, ast.Name):
            bound = self.values.get(node.id)
            return HOLE if bound is None else self.value(bound, deeper)
        if isinstance(node, ast.JoinedStr):
            return "".join(self.value(part, deeper) for part in node.values)
        if isinstance(node, ast.FormattedValue):
            return self.value(node.value, deeper)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return "-" + self.value(node.operand, deeper)
        if isinstance(node, ast.BinOp):
            left, right = self.value(node.left, deeper), self.value(node.right, deeper)
            if isinstance(node.op, ast.Mod) and "%s" in left:
                return left.replace("%s", right)
            joins = {ast.Add: left + right, ast.Div: posixpath.join(left, right)}
            return joins.get(type(node.op), HOLE)
        if isinstance(node, ast.Subscript):
            environment = self._dotted(node.value) == "os.environ"
            return self.scope.lookup(self.value(node.slice, deeper)).text if environment else HOLE
        if isinstance(node, ast.Attribute):
            if node.attr == "parent":
                return posixpath.dirname(self.value(node.value, deeper))
            return "python" if self._dotted(node) == "sys.executable" else HOLE
        return self._result(node, deeper) if isinstance(node, ast.Call) else HOLE

    def _result(self, node: ast.Call, depth: int) -> str:
        name = self._dotted(node.func)
        args = [self.value(arg, depth) for arg in node.args]
        if name in ("pathlib.Path.home", "Path.home"):
            return self.scope.home
        if name in ("os.getcwd", "pathlib.Path.cwd"):
            return self.scope.cwd
        if name == "os.path.expanduser" and args:
            return expand_home(args[0], self.scope)
        if name in ("os.getenv", "os.environ.get") and args:
            return self.scope.lookup(args[0]).text
        if name == "os.path.join" and args:
            return posixpath.join(*args)
        if name in _PASS_THROUGH:
            return posixpath.join(*args) if args else self.scope.cwd
        if not isinstance(node.func, ast.Attribute):
            return HOLE
        method, base = node.func.attr, self.value(node.func.value, depth)
        if method in _LISTS:
            return "*"
        if method in _METHODS_THROUGH:
            return expand_home(base, self.scope) if method == "expanduser" else base
        if method == "joinpath":
            return posixpath.join(base, *args)
        if method == "join" and node.args:
            items = node.args[0]
            if isinstance(items, ast.Name):
                items = self.values.get(items.id) or items
            if isinstance(items, ast.List | ast.Tuple):
                return base.join(self.value(part, depth) for part in items.elts)
        if method == "format":
            for arg in args:
                base = base.replace("{}", arg, 1)
            return base
        return HOLE


def _written(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return f"0o{node.value:o}" if node.value > 0o777 else str(node.value)
    return ast.unparse(node)
