"""Python source as a syntax tree: nodes by type, constant values, names behind imports; names of
dangerous functions.
"""

from __future__ import annotations

import ast
import base64
import binascii
import posixpath
import re
from typing import TYPE_CHECKING, TypeVar

from hermes.safety.shell.scope import HOLE, expand_home, names

if TYPE_CHECKING:
    from typing import Any

    from hermes.safety.shell.scope import Scope


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


DELETE_ONE = frozenset(("os.remove", "os.unlink"))
DELETE_TREE = names(
    "shutil.rmtree os.removedirs distutils.dir_util.remove_tree "
    "setuptools.distutils.dir_util.remove_tree"
)
RUN_TEXT = names(
    "os.system os.popen subprocess.getoutput subprocess.getstatusoutput commands.getoutput "
    "popen2.popen2 "
    "asyncio.create_subprocess_shell pexpect.run pexpect.spawn platform.popen os.popen2 os.popen3 "
    "get_ipython().system"
)
RUN_LIST = names(
    "subprocess.run subprocess.call subprocess.check_call subprocess.check_output "
    "subprocess.Popen pty.spawn "
    "sh.Command"
)
RUN_ARGUMENTS = frozenset(("asyncio.create_subprocess_exec",))
WRITE_FIRST = names("os.truncate os.mkdir os.makedirs os.chmod os.chown")
WRITE_SECOND = names(
    "os.rename os.replace os.renames shutil.move shutil.copy shutil.copy2 shutil.copyfile "
    "shutil.copytree "
    "os.symlink os.link urllib.request.urlretrieve"
)
COPIES = names(
    "shutil.copy shutil.copy2 shutil.copyfile shutil.copytree os.symlink os.link "
    "urllib.request.urlretrieve"
)
NETWORK = names(
    "urllib.request.urlopen urllib.urlopen urllib2.urlopen requests.get requests.post requests.put "
    "requests.request requests.patch httpx.get httpx.post httpx.put httpx.patch httpx.request "
    "aiohttp.request http.client.HTTPSConnection "
    "http.client.HTTPConnection urllib3.request"
)
BUILTINS = names("open exec eval compile")
# Functions that take in the file whose name they are given.
READERS = names(
    "read readlines load fromfile loadtxt genfromtxt read_csv read_table read_json dotenv_values "
    "netrc getlines upload_file upload_from_filename add_file make_archive"
)
# Methods of connections and clients that carry what they are given away.
SENDERS = names("send sendall sendto request post put patch sendmail send_message putrequest")
PRINTED = names("keyring.get_password keyring.get_credential netrc.netrc")
UNPICKLES = names("pickle.loads pickle.load marshal.loads dill.loads cloudpickle.loads")
METHODS = names(
    "unlink write_text write_bytes touch mkdir read_text read_bytes open rename replace execute "
    "executescript executemany rmtree write get_password get_credential loads run_path netrc glob "
    "iglob exec_command sudo"
)
WATCHED = names(
    "exec eval open connect connect_ex create_connection bind listen dup2 chdir fork kill killpg "
    "HTTPServer TCPServer ThreadingHTTPServer ThreadingTCPServer test"
)
TELLING_NAMES = (
    METHODS
    | READERS
    | SENDERS
    | WATCHED
    | frozenset(
        name.rpartition(".")[2]
        for table in (
            DELETE_ONE,
            DELETE_TREE,
            RUN_TEXT,
            RUN_LIST,
            RUN_ARGUMENTS,
            WRITE_FIRST,
            WRITE_SECOND,
            NETWORK,
        )
        for name in table
    )
)
# By these a function may be known that is named where others call it.
HANDED_ON = frozenset(
    name.rpartition(".")[2]
    for table in (DELETE_ONE, DELETE_TREE, RUN_TEXT, RUN_LIST)
    for name in table
)
TELLING_STARTS = ("exec", "spawn", "posix_spawn")


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
