"""Proxy for confined commands: HTTP, CONNECT and SOCKS 5 to the hosts that the settings name.

It runs in a thread of this program. Where commands have a network of their own (bubblewrap), a
process inside opens the listening socket and hands it over; else it listens on the loopback, and
Landlock closes every other port. Addresses are checked once a name is resolved, and that address is
connected to: neither a redirect nor DNS leads to a metadata service.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes.runtime.loop_thread import LoopThread
from hermes.safety.hostnames import HostError, HostPatterns, canonical_host

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_LONGEST_HEAD = 64 * 1024
_HEAD_SECONDS, _CONNECT_SECONDS = 30.0, 30.0
_PIECE = 1 << 16
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1", "[::1]")
_DROPPED = (b"proxy-connection:", b"proxy-authorization:", b"connection:", b"keep-alive:")
_SOCKS = 5
_RULES = {"allow_private": True}


class RefusedError(Exception):
    """A host that commands may not reach; the text says why."""


class HostProxy:
    """Connects commands to the hosts that are allowed, and asks about others.

    Args:
        hosts: Names; `*.example.org` means all below. `localhost` is this machine, and
            `localhost:5432` a port of it that commands find at the same address.
    """

    def __init__(self, hosts: Sequence[str]) -> None:
        self._patterns = HostPatterns(
            [host for host in hosts if not host.startswith("localhost:")], with_parent=False
        )
        # Ports of this machine's loopback that are forwarded as they are.
        self.forwards = sorted(
            {int(host.partition(":")[2]) for host in hosts if host.startswith("localhost:")}
        )
        self._ask: Callable[[str], bool] | None = None
        self.port = 0
        self._answers: dict[str, bool] = {}
        self._blocked: list[str] = []
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._thread = LoopThread("hermes-proxy")
        self._servers: list[asyncio.Server] = []

    def answer_by(self, ask: Callable[[str], bool]) -> None:
        """Ask about unknown hosts by a function, once each; refused ones are asked about again."""
        with self._asking:
            self._ask = ask
            self._answers = {host: answer for host, answer in self._answers.items() if answer}

    def take_blocked(self) -> list[str]:
        """The hosts that were refused since the last call."""
        with self._lock:
            blocked, self._blocked = self._blocked, []
        return list(dict.fromkeys(blocked))

    def listen(self) -> None:
        """Serve on the loopback of this machine, at any port."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.serve([listener])

    def serve(self, listeners: Sequence[socket.socket]) -> None:
        """Serve on listening sockets: the first is the proxy, then one for each forwarded port."""
        self.port = listeners[0].getsockname()[1]
        self._thread.submit(self._serve(listeners)).result(10)

    def close(self) -> None:
        """End the proxy and its connections."""
        self._thread.close(self._close())

    async def _close(self) -> None:
        for server in self._servers:
            server.close()

    async def _serve(self, listeners: Sequence[socket.socket]) -> None:
        import asyncio

        for listener, port in zip(listeners, [0, *self.forwards], strict=False):
            listener.setblocking(False)

            async def connected(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int = port
            ) -> None:
                await self._connected(reader, writer, port)

            self._servers.append(
                await asyncio.start_server(connected, sock=listener, limit=_LONGEST_HEAD)
            )

    async def _connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, forward: int
    ) -> None:
        import asyncio

        try:
            if forward:
                other = await asyncio.open_connection("127.0.0.1", forward)
            else:
                other = await self._negotiated(reader, writer)
            await _joined((reader, writer), other)
        except (OSError, EOFError, ValueError, TimeoutError, RefusedError):
            # The client has its answer, or is gone.
            pass
        finally:
            writer.close()

    async def _negotiated(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Streams:
        """Read what a client wants; its connection to the host."""
        import asyncio

        first = await asyncio.wait_for(reader.readexactly(1), _HEAD_SECONDS)
        if first[0] == _SOCKS:
            return await self._socks(reader, writer)
        head = first + await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _HEAD_SECONDS)
        line, _, rest = head.partition(b"\r\n")
        method, target, version = line.split(b" ")
        tunnel = method == b"CONNECT"
        host, port, path = _target(target.decode("ascii"), tunnel=tunnel)
        try:
            other = await self._open(host, port)
        except (OSError, TimeoutError, RefusedError) as error:
            code = "403 Forbidden" if isinstance(error, RefusedError) else "502 Bad Gateway"
            body = f"Hermes: {error or 'no answer'}\n".encode()
            writer.write(
                f"HTTP/1.1 {code}\r\nContent-Type: text/plain\r\nConnection: close\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            await writer.drain()
            raise
        if tunnel:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            kept = [
                field for field in rest.split(b"\r\n") if not field.lower().startswith(_DROPPED)
            ]
            # One request for each connection: the next may be for another host.
            fields = b"\r\n".join([b"Connection: close", *kept])
            other[1].write(b" ".join([method, path.encode(), version]) + b"\r\n" + fields)
        return other

    async def _socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Streams:
        import asyncio
        import ipaddress

        async def read(count: int) -> bytes:
            return await asyncio.wait_for(reader.readexactly(count), _HEAD_SECONDS)

        await read((await read(1))[0])
        writer.write(bytes([_SOCKS, 0]))
        _, command, _, kind = await read(4)
        if kind == 3:
            host = (await read((await read(1))[0])).decode("ascii")
        else:
            host = str(ipaddress.ip_address(await read(4 if kind == 1 else 16)))
        port = int.from_bytes(await read(2), "big")

        def answer(code: int) -> None:
            writer.write(bytes([_SOCKS, code, 0, 1, 0, 0, 0, 0, 0, 0]))

        if command != 1:
            answer(7)
            raise ValueError("only connections")
        try:
            other = await self._open(host, port)
        except (OSError, TimeoutError, RefusedError) as error:
            answer(2 if isinstance(error, RefusedError) else 5)
            await writer.drain()
            raise
        answer(0)
        return other

    async def _open(self, host: str, port: int) -> Streams:
        """Connect to a host that is allowed; raises `RefusedError` for any other."""
        import asyncio

        addresses = await asyncio.to_thread(self.allowed, host, port)
        last: Exception = OSError(f"{host} has no address")
        for address in addresses:
            try:
                return await asyncio.wait_for(
                    asyncio.open_connection(address, port), _CONNECT_SECONDS
                )
            except (OSError, TimeoutError) as error:
                last = error
        raise last

    def allowed(self, host: str, port: int) -> tuple[str, ...]:
        """The addresses of a host that commands may reach; raises `RefusedError`."""
        import ipaddress

        from hermes.safety.urls import check_host

        try:
            name = canonical_host(f"[{host}]" if ":" in host and host[0] != "[" else host)
        except HostError as error:
            raise RefusedError(str(error)) from None
        # Before a question, and without DNS: metadata services are closed whatever a person says.
        decision = check_host(host, port, rules=_RULES, resolve=lambda *_: ["1.1.1.1"])
        if not decision.allowed:
            raise RefusedError(decision.reason)
        if not (self._patterns.match(name) or self._answered(name)):
            with self._lock:
                self._blocked.append(name)
            raise RefusedError(f"{name} is not open to commands; terminal.confine.hosts opens it")
        decision = check_host(host, port, rules=_RULES)
        if not decision.allowed:
            raise RefusedError(decision.reason)
        for address in decision.addresses:
            if ipaddress.ip_address(address).is_loopback and name not in _LOOPBACK_NAMES:
                raise RefusedError(f"{name} leads to this machine")
        return decision.addresses

    def _answered(self, name: str) -> bool:
        """What a person said about a host; asked once."""
        with self._asking:
            if name not in self._answers and self._ask is not None:
                try:
                    self._answers[name] = self._ask(name)
                except Exception:  # noqa: BLE001 - whatever went wrong, nobody said yes
                    self._answers[name] = False
            return self._answers.get(name, False)


def _target(target: str, *, tunnel: bool) -> tuple[str, int, str]:
    """Host, port and path of a request's target; raises `ValueError`."""
    from urllib.parse import urlsplit

    parts = urlsplit(f"//{target}" if tunnel else target)
    if not parts.hostname or (not tunnel and parts.scheme != "http"):
        raise ValueError("no host")
    path = parts.path or "/"
    return parts.hostname, parts.port or 80, f"{path}?{parts.query}" if parts.query else path


async def _joined(ours: Streams, other: Streams) -> None:
    """Copy both ways until both ends are closed."""
    import asyncio

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_PIECE):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            with suppress(OSError):
                writer.write_eof()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(copy(ours[0], other[1]))
            group.create_task(copy(other[0], ours[1]))
    except* OSError:
        pass
    finally:
        other[1].close()
