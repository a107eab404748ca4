"""Whether Python source opens a port to other machines."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.safety.shell.interpreters.python_values import Values

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
