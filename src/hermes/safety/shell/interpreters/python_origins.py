"""Where a value in Python source comes from: the network, a decoder, the whole environment.

Names are followed through imports, assignments and `with … as`, so that an alias is no way round.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hermes.safety.shell.stream import DECODED, ENVIRONMENT, NETWORK
from hermes.safety.shell.tables import names

if TYPE_CHECKING:
    from hermes.safety.shell.interpreters.python_tree import Tree
    from hermes.safety.shell.interpreters.python_values import Values

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
