"""Python source that provably changes nothing: it computes, reads and prints.

Only what is listed may be imported, called or named; everything else counts as a change.
"""

from __future__ import annotations

import ast
import re
import sys
from typing import TYPE_CHECKING

from hermes.safety.shell.code.python_values import imported
from hermes.safety.shell.scope import names

if TYPE_CHECKING:
    from hermes.safety.shell.code.python_values import Tree

_BUILTINS = names(
    "print len str int float bool complex repr sorted sum min max range enumerate zip list dict "
    "set frozenset tuple abs round hex oct bin ord chr isinstance format any all divmod pow "
    "reversed map filter bytes bytearray hash id iter next exit quit ascii slice"
)
# A module, and what of it may be used; a star stands for all of it.
_MODULES = {
    "json": names("loads load dumps JSONDecodeError"),
    "math": names("*"),
    "cmath": names("*"),
    "re": names("*"),
    "string": names("*"),
    "textwrap": names("*"),
    "statistics": names("*"),
    "datetime": names("*"),
    "calendar": names("*"),
    "decimal": names("*"),
    "fractions": names("*"),
    "itertools": names("*"),
    "collections": names("Counter defaultdict OrderedDict deque namedtuple ChainMap"),
    "functools": names("reduce"),
    "unicodedata": names("*"),
    "hashlib": names("md5 sha1 sha224 sha256 sha384 sha512 blake2b blake2s"),
    "base64": names("b64encode b64decode urlsafe_b64encode urlsafe_b64decode b32encode b32decode"),
    "binascii": names("hexlify unhexlify crc32"),
    "struct": names("pack unpack calcsize"),
    "platform": names("*"),
    "time": names("time strftime gmtime localtime monotonic perf_counter"),
    "sys": names(
        "version version_info argv stdin stdout stderr exit executable platform maxsize byteorder "
        "getsizeof prefix base_prefix path"
    ),
    "os": names(
        "getcwd listdir path environ getenv sep name cpu_count getpid getuid uname linesep stat "
        "walk access curdir pardir R_OK W_OK X_OK F_OK"
    ),
    "os.path": names("*"),
    "pathlib": names("Path PurePath"),
    "urllib.parse": names("*"),
    "csv": names("reader DictReader"),
    "tomllib": names("load loads"),
    "ast": names("literal_eval parse dump"),
    "glob": names("glob iglob"),
    "sysconfig": names("get_path get_paths get_config_var get_platform"),
    "uuid": names("uuid4 uuid1 uuid5 UUID"),
    "importlib.metadata": names("version distributions metadata"),
}
_METHODS = names(
    "join split rsplit strip lstrip rstrip splitlines format items keys values get append extend "
    "upper lower title capitalize startswith endswith encode decode read readline readlines count "
    "index find rfind isdigit isalpha isalnum isspace islower isupper isidentifier zfill ljust "
    "rjust center partition rpartition casefold translate add pop sort reverse copy setdefault "
    "union intersection difference issubset issuperset most_common elements hexdigest digest group "
    "groups groupdict start end span isoformat strftime total_seconds timestamp date "
    "weekday quantize bit_length to_bytes from_bytes fromhex hex now today utcnow fromisoformat "
    "strptime fromtimestamp exists is_file is_dir read_text read_bytes glob rglob iterdir resolve "
    "absolute joinpath relative_to with_suffix home cwd match search fullmatch findall finditer "
    "sub escape update close"
)
_DATA = names(
    "name stem suffix parent parts year month day hour minute second major minor micro st_size "
    "st_mtime st_mode real imag numerator denominator netloc path query scheme hostname port args "
    "buffer"
)
_TELLING_WORDS = (
    "class", "exec", "eval", "subprocess", "shutil", "requests", "httpx", "socket", "system",
    "popen", "remove", "unlink", "write_text", "write_bytes", "mkdir", "makedirs", "rename", "dump",
    "sqlite3", "numpy", "pandas", "async", "'w", '"w',
)  # fmt: skip
_TELLTALE = re.compile(rf"\b(?:{'|'.join(_TELLING_WORDS[:-2])})\b|[\"']wb?[\"']")
_OPEN_KEYWORDS = frozenset(("mode", "encoding", "errors", "newline"))
_FORBIDDEN_NODES = frozenset(
    (
        ast.ClassDef,
        ast.AsyncFunctionDef,
        ast.AsyncFor,
        ast.AsyncWith,
        ast.Await,
        ast.Nonlocal,
        ast.Global,
        ast.Delete,
    )
)


def may_be_pure(text: str) -> bool:
    """Whether a source is worth a closer look: most that do something show it in a word."""
    # To look for each of the words is ten times as fast as the pattern, which few texts need.
    return not any(word in text for word in _TELLING_WORDS) or _TELLTALE.search(text) is None


def is_pure(tree: Tree) -> bool:
    """Whether a source changes nothing."""
    return _Reader(tree).holds()


class _Reader:
    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.modules = imported(tree)
        self.functions = {node.name for node in tree.of(ast.FunctionDef)}
        self.bound = {arg.arg for arg in tree.of(ast.arg)}
        self.used: set[str] = set()
        for name in tree.of(ast.Name):
            (self.used if name.ctx.__class__ is ast.Load else self.bound).add(name.id)
        self.bound.update(node.name for node in tree.of(ast.ExceptHandler) if node.name)
        self.bound.update(node.name for node in tree.of(ast.MatchAs) if node.name)
        self.bound.update(node.name for node in tree.of(ast.MatchStar) if node.name)
        self.bound.update(node.rest for node in tree.of(ast.MatchMapping) if node.rest)

    def holds(self) -> bool:
        tree = self.tree
        taken = self.bound | self.functions
        return (
            _FORBIDDEN_NODES.isdisjoint(tree.kinds)
            and taken.isdisjoint(_BUILTINS | {"open"} | set(self.modules))
            and self.bound.isdisjoint(self.functions)
            and self._imports()
            and not any(node.decorator_list for node in tree.of(ast.FunctionDef))
            and all(map(_is_harmless, self.used - taken - self.modules.keys() - _BUILTINS))
            and ("open" not in self.used or self._only_calls_open())
            and all(
                node.ctx.__class__ is ast.Load or self._root(node) not in self.modules
                for node in tree.of(ast.Subscript)
            )
            and all(map(self._attribute, tree.of(ast.Attribute)))
            and all(map(self._call, tree.of(ast.Call)))
        )

    def _imports(self) -> bool:
        return all(
            self._is_module(alias.name) for node in self.tree.of(ast.Import) for alias in node.names
        ) and all(
            node.level == 0 and self._is_member(f"{node.module}.{alias.name}")
            for node in self.tree.of(ast.ImportFrom)
            for alias in node.names
        )

    @staticmethod
    def _is_module(name: str) -> bool:
        return name in _MODULES or name in ("urllib", "importlib")

    @staticmethod
    def _is_member(name: str) -> bool:
        if name in _MODULES:
            return True
        module, _, member = name.rpartition(".")
        allowed = _MODULES.get(module, frozenset())
        if member in allowed or module == "datetime":
            return member not in ("*", "sys")
        # Modules hold the modules that they import, and those are not meant.
        return "*" in allowed and member != "*" and member not in sys.stdlib_module_names

    def _only_calls_open(self) -> bool:
        """Whether `open` is called wherever it is named, and never handed on to others."""
        named = sum(name.id == "open" for name in self.tree.of(ast.Name))
        called = sum(
            isinstance(call.func, ast.Name) and call.func.id == "open"
            for call in self.tree.of(ast.Call)
        )
        return named == called

    def _dotted(self, node: ast.expr) -> str | None:
        """The full name of something in a module; None for a value of some other kind."""
        if isinstance(node, ast.Name):
            return self.modules.get(node.id)
        if isinstance(node, ast.Attribute):
            base = self._dotted(node.value)
            return None if base is None else f"{base}.{node.attr}"
        return None

    def _root(self, node: ast.expr) -> str:
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        return node.id if isinstance(node, ast.Name) else ""

    def _attribute(self, node: ast.Attribute) -> bool:
        if node.attr.startswith("_") or not isinstance(node.ctx, ast.Load):
            return False
        base = self._dotted(node.value)
        if base is not None and self._is_module(base):
            return self._is_member(f"{base}.{node.attr}") or self._is_module(f"{base}.{node.attr}")
        return node.attr in _METHODS or node.attr in _DATA or node.attr in ("replace", "write")

    def _call(self, node: ast.Call) -> bool:
        func = node.func
        if isinstance(func, ast.Name):
            if func.id == "open":
                return self._open(node)
            if func.id in self.modules:
                return self._is_member(self.modules[func.id])
            return func.id in _BUILTINS or func.id in self.functions
        if isinstance(func, ast.Lambda):
            return True
        if not isinstance(func, ast.Attribute):
            return False
        dotted = self._dotted(func)
        if dotted is not None and self._is_module(dotted.rpartition(".")[0]):
            return self._is_member(dotted)
        if func.attr == "replace":
            # Of a text; a path takes one argument, and moves a file.
            return len(node.args) >= 2
        if func.attr in ("write", "flush"):
            return dotted is not None and dotted.startswith(("sys.stdout.", "sys.stderr."))
        return func.attr in _METHODS

    @staticmethod
    def _open(node: ast.Call) -> bool:
        mode: ast.expr | None = node.args[1] if len(node.args) > 1 else None
        for keyword in node.keywords:
            if keyword.arg not in _OPEN_KEYWORDS:
                return False
            if keyword.arg == "mode":
                mode = keyword.value
        if any(isinstance(arg, ast.Starred) for arg in node.args):
            return False
        return mode is None or (
            isinstance(mode, ast.Constant) and mode.value in ("r", "rb", "rt", "br", "tr")
        )


def _is_harmless(name: str) -> bool:
    """Whether a name that a source does not bind itself may be used in it."""
    return name in ("open", "__name__", "__file__", "__doc__") or name.endswith(
        ("Error", "Exception", "Interrupt")
    )
