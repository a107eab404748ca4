"""Transport of calls from a script: a Unix socket, or files in a remote environment.

Both hand each request to `serve`, several at a time, and accept nothing without the script's token.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import shlex
import socket
import threading
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.core.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hermes.environments.environment import Environment

    Serve = Callable[[bytes], bytes]

log = Log("hermes.code")

_LARGEST = 64 * 1024 * 1024
_MOST_CONNECTIONS = 64
# How long one look at the queue of a remote environment lasts.
_LOOK_SECONDS = 25
_NAME = re.compile(r"\d+-\d+")


class SocketChannel:
    """A Unix socket below `folder`, which the script sees as `inside`."""

    def __init__(self, serve: Serve, folder: str, inside: str) -> None:
        self._serve = serve
        self._token = secrets.token_hex(16)
        name = secrets.token_hex(8)
        self._path = os.path.join(folder, name)
        self._peers: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self._path)
        # The script may run as another user; the folder above keeps everybody else out.
        os.chmod(self._path, 0o666)
        self._listener.listen(_MOST_CONNECTIONS)
        self.address = {"socket": f"{inside}/{name}", "token": self._token}
        self._start(self._accept)

    def close(self) -> None:
        """End all connections; answers that are still on their way are dropped."""
        with self._lock:
            self._closed = True
            peers = list(self._peers)
        # `close` alone does not wake a thread that waits in `accept`.
        for peer in (self._listener, *peers):
            with suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with suppress(FileNotFoundError):
            os.unlink(self._path)

    def _start(self, target: Callable[..., None], *args: Any) -> None:
        # Spans of the calls belong below the span of the script.
        run = copy_context().run
        threading.Thread(target=run, args=(target, *args), daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                full = self._closed or len(self._peers) >= _MOST_CONNECTIONS
                if not full:
                    self._peers.add(peer)
            if full:
                peer.close()
            else:
                self._start(self._answer, peer)

    def _answer(self, peer: socket.socket) -> None:
        try:
            with peer, peer.makefile("rb") as stream:
                if not hmac.compare_digest(_frame(stream), self._token.encode()):
                    return
                while data := _frame(stream):
                    answer = self._serve(data)
                    peer.sendall(len(answer).to_bytes(4, "big") + answer)
        except (OSError, ValueError):
            # The script is gone, or does not keep to the protocol.
            return
        finally:
            with self._lock:
                self._peers.discard(peer)


def _frame(stream: Any) -> bytes:
    """The next message; empty at the end."""
    size = stream.read(4)
    length = int.from_bytes(size, "big")
    if len(size) < 4 or length > _LARGEST:
        return b""
    data: bytes = stream.read(length)
    return data if len(data) == length else b""


class FileChannel:
    """Files in a folder of the environment, seen to by scripts of its own channel.

    A request is a file; a FIFO wakes the script that waits for it there. An answer goes through a
    FIFO of its own.
    """

    def __init__(self, serve: Serve, environment: Environment) -> None:
        self._serve = serve
        self._environment = environment
        self._token = secrets.token_hex(16)
        self._closed = False
        code, out, error = environment.run_script(
            "umask 077; d=$(mktemp -d) && mkfifo $d/requests && echo $d"
        )
        if code:
            raise ToolError(f"no folder for calls of a script: {error.decode(errors='replace')}")
        self._folder = out.decode().strip()
        self.address = {"folder": self._folder, "token": self._token}
        self._thread = threading.Thread(target=copy_context().run, args=(self._look,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop looking for requests, and remove the folder."""
        self._closed = True
        folder = shlex.quote(self._folder)
        self._environment.run_script(f"echo . 1<> {folder}/requests; rm -rf {folder}")
        self._thread.join(5.0)

    def _look(self) -> None:
        folder = shlex.quote(self._folder)
        script = (
            f"cd {folder} || exit 3; timeout {_LOOK_SECONDS} dd if=requests bs=65536 count=1 "
            '2>/dev/null | while read -r name token; do [ -f "request-$name" ] || continue; '
            'printf "%s %s " "$name" "$token"; cat "request-$name"; echo; rm -f "request-$name"; '
            "done"
        )
        while not self._closed:
            try:
                code, out, _ = self._environment.run_script(script)
            except (ToolError, OSError) as error:
                log.warning("calls of a script can't be read: %s", error)
                return
            if code == 3:
                return
            for line in out.splitlines():
                name, _, rest = line.decode("ascii", "replace").partition(" ")
                token, _, data = rest.partition(" ")
                if _NAME.fullmatch(name) and hmac.compare_digest(token, self._token):
                    run = copy_context().run
                    args = (self._answer, name, data.encode())
                    threading.Thread(target=run, args=args, daemon=True).start()

    def _answer(self, name: str, data: bytes) -> None:
        answer = self._serve(data)
        path = shlex.quote(f"{self._folder}/answer-{name}")
        with suppress(ToolError, OSError):
            # Nobody opens it when the script is gone.
            self._environment.run_script(f"timeout 10 sh -c 'cat > {path}'", answer)
