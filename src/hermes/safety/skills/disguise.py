"""Python that hides what it does: names put together at run time, whole environments sent off."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_DECODERS = frozenset(
    """b64decode b32decode a85decode b85decode urlsafe_b64decode fromhex unhexlify decompress
    decodebytes""".split()  # noqa: SIM905 - a table
)
_RUNS = frozenset(("exec", "eval", "compile", "__import__", "import_module", "getattr"))
_NETWORK = re.compile(
    r"\b(?:requests|httpx|aiohttp|urllib3?|http\.client|socket|smtplib|ftplib|paramiko"
    r"|websockets?)\b"
)
_SENDS = re.compile(
    r"\.(?:post|put|patch|request|send|sendall|sendmail|storbinary|urlopen)\s*\(|\burlopen\s*\("
)


def find_disguises(source: str) -> Iterator[tuple[int, str, str]]:
    """Each line where a Python text hides what it runs, or sends everything it knows."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    built: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _disguised(node.value, built):
            built |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    sends = _NETWORK.search(source) and _SENDS.search(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given = node.args[1:2] if _name(node) == "getattr" else node.args[:1]
            if _name(node) in _RUNS and any(_disguised(one, built) for one in given):
                yield node.lineno, "payload.disguised", "It puts together at run time what it runs."
            if sends and any(map(_is_environment, node.args)) and _name(node) in _WHOLE:
                yield node.lineno, "secrets.sent", "It sends the whole environment away."
        if (
            sends
            and isinstance(node, ast.Attribute)
            and node.attr == "items"
            and _is_environment(node.value)
        ):
            yield node.lineno, "secrets.sent", "It goes through the whole environment and sends."


_WHOLE = frozenset(
    ("dict", "dumps", "str", "repr", "list", "urlencode", "post", "put", "send", "sendall")
)


def _name(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        # `patch.dict(…)` is not `dict(…)`.
        return "" if function.attr == "dict" else function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_environment(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and _name(node) == "dict" and len(node.args) == 1:
        return _is_environment(node.args[0])
    return (isinstance(node, ast.Attribute) and node.attr == "environ") or (
        isinstance(node, ast.Name) and node.id == "environ"
    )


def _disguised(node: ast.expr, built: set[str], depth: int = 0) -> bool:
    """Whether a text is put together from pieces, letter codes or an encoding."""
    if depth > 20:
        return True
    if isinstance(node, ast.Name):
        return node.id in built
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = (node.left, node.right)
        return all(_is_text(side, built) for side in sides)
    if isinstance(node, ast.Subscript):
        cut = node.slice
        backwards = isinstance(cut, ast.Slice) and isinstance(cut.step, ast.UnaryOp)
        return backwards and _is_text(node.value, built)
    if isinstance(node, ast.Call):
        name = _name(node)
        if name in _DECODERS or name == "chr":
            return True
        if name == "join":
            return any(_pieces(one) for one in node.args)
        inner = node.func.value if isinstance(node.func, ast.Attribute) else None
        return (inner is not None and _disguised(inner, built, depth + 1)) or any(
            _disguised(one, built, depth + 1) for one in node.args
        )
    return False


def _is_text(node: ast.expr, built: set[str]) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    return _disguised(node, built)


def _pieces(node: ast.expr) -> bool:
    """A list of letters or of letter codes."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return bool(node.elts) and all(isinstance(one, ast.Constant) for one in node.elts)
    return any(isinstance(one, ast.Call) and _name(one) == "chr" for one in ast.walk(node)) or (
        isinstance(node, ast.Call) and _name(node) in ("map", "reversed")
    )
