"""Python source that provably changes nothing: it computes, reads and prints.

Only names that are listed may be imported, called or looked up; everything else counts as a change.
"""

from __future__ import annotations

import ast
import re
import sys

from hermes.safety.shell.scope import names

_BUILTINS = names(
    "print len str int float bool complex repr sorted sum min max range enumerate zip list dict "
    "set frozenset tuple abs round hex oct bin ord chr isinstance format any all divmod pow "
    "reversed map filter bytes bytearray hash id iter next exit quit ascii slice"
)
# Modules of which every public function may be used, and the usable parts of others.
_PURE = names(
    "math cmath re string textwrap statistics datetime calendar decimal fractions itertools "
    "unicodedata platform os.path urllib.parse"
)
_MEMBERS = {
    "json": "loads load dumps JSONDecodeError",
    "collections": "Counter defaultdict OrderedDict deque namedtuple ChainMap",
    "functools": "reduce",
    "hashlib": "md5 sha1 sha224 sha256 sha384 sha512 blake2b blake2s",
    "base64": "b64encode b64decode urlsafe_b64encode urlsafe_b64decode b32encode b32decode",
    "binascii": "hexlify unhexlify crc32",
    "struct": "pack unpack calcsize",
    "time": "time strftime gmtime localtime monotonic perf_counter",
    "sys": "version version_info argv stdin stdout stderr exit executable platform maxsize "
    "byteorder getsizeof prefix base_prefix path",
    "os": "getcwd listdir path environ getenv sep name cpu_count getpid getuid uname linesep stat "
    "walk access curdir pardir R_OK W_OK X_OK F_OK",
    "pathlib": "Path PurePath",
    "csv": "reader DictReader",
    "tomllib": "load loads",
    "ast": "literal_eval parse dump",
    "glob": "glob iglob",
    "sysconfig": "get_path get_paths get_config_var get_platform",
    "uuid": "uuid4 uuid1 uuid5 UUID",
    "importlib.metadata": "version distributions metadata",
}
_FUNCTIONS = {f"{module}.{name}" for module, text in _MEMBERS.items() for name in text.split()}
_FUNCTIONS.add("datetime.datetime")
_MODULES = _PURE | _MEMBERS.keys() | {"urllib", "importlib"}
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
_READ_MODES = ("r", "rb", "rt", "br", "tr")
_FORBIDDEN_NODES = (
    ast.ClassDef, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await, ast.Nonlocal,
    ast.Global, ast.Delete, ast.MatchStar, ast.MatchMapping,
)  # fmt: skip


def may_be_pure(text: str) -> bool:
    """Whether a source is worth a closer look: most that do something show it in a word."""
    # To look for each of the words is ten times as fast as the pattern, which few texts need.
    return not any(word in text for word in _TELLING_WORDS) or _TELLTALE.search(text) is None


def is_pure(nodes: list[ast.AST], modules: dict[str, str]) -> bool:
    """Whether a source changes nothing.

    Args:
        nodes: All nodes of its tree.
        modules: The names that its imports bind, with the full name of each.
    """
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    bound = {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {
        node.name
        for node in nodes
        if isinstance(node, ast.ExceptHandler | ast.MatchAs) and node.name
    }
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound.add(node.id)
    taken = bound | functions
    if not taken.isdisjoint(_BUILTINS | {"open"} | modules.keys()) or bound & functions:
        return False
    known = taken | _BUILTINS
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return all(map(_is_allowed, modules.values())) and all(
        _holds(node, modules, known, called) for node in nodes
    )


def _holds(node: ast.AST, modules: dict[str, str], known: set[str], called: set[int]) -> bool:
    if isinstance(node, _FORBIDDEN_NODES) or getattr(node, "decorator_list", None):
        return False
    if isinstance(node, ast.Import):
        return all(_is_allowed(alias.name) for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.level == 0
    if isinstance(node, ast.Name):
        if node.id == "open":
            # Called wherever it is named, and never handed on.
            return id(node) in called
        return node.id in known or node.id in modules or _is_harmless(node.id)
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Load) or not _dotted(node.value, modules)
    if isinstance(node, ast.Attribute):
        if node.attr.startswith("_") or not isinstance(node.ctx, ast.Load):
            return False
        base = _dotted(node.value, modules)
        if base in _MODULES:
            return _is_allowed(f"{base}.{node.attr}")
        return node.attr in _METHODS or node.attr in _DATA or node.attr in ("replace", "write")
    return not isinstance(node, ast.Call) or _is_pure_call(node, modules, known)


def _is_allowed(name: str) -> bool:
    """Whether a module or a member of one may be used, by its full name."""
    module, _, member = name.rpartition(".")
    if name in _MODULES or name in _FUNCTIONS:
        return True
    # Modules hold the modules that they import, and those are not meant.
    return module in _PURE and member != "*" and member not in sys.stdlib_module_names


def _dotted(node: ast.expr, modules: dict[str, str]) -> str:
    """The full name of something in a module; empty for a value of some other kind."""
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value, modules)
        return f"{base}.{node.attr}" if base else ""
    return modules.get(node.id, "") if isinstance(node, ast.Name) else ""


def _is_pure_call(node: ast.Call, modules: dict[str, str], known: set[str]) -> bool:
    func = node.func
    if isinstance(func, ast.Name):
        return _only_opens(node) if func.id == "open" else func.id in known or func.id in modules
    if not isinstance(func, ast.Attribute):
        return isinstance(func, ast.Lambda)
    name = _dotted(func, modules)
    if name.rpartition(".")[0] in _MODULES:
        return _is_allowed(name)
    if func.attr == "replace":
        # Of a text; a path takes one argument, and moves a file.
        return len(node.args) >= 2
    return func.attr != "write" or name.startswith(("sys.stdout.", "sys.stderr."))


def _only_opens(node: ast.Call) -> bool:
    """Whether a call of `open` is for reading."""
    modes = [*node.args[1:2], *(part.value for part in node.keywords if part.arg == "mode")]
    return (
        all(part.arg in _OPEN_KEYWORDS for part in node.keywords)
        and not any(isinstance(arg, ast.Starred) for arg in node.args)
        and all(isinstance(mode, ast.Constant) and mode.value in _READ_MODES for mode in modes)
    )


def _is_harmless(name: str) -> bool:
    """Whether a name that a source does not bind itself may be used in it."""
    return name in ("__name__", "__file__", "__doc__") or name.endswith(
        ("Error", "Exception", "Interrupt")
    )
