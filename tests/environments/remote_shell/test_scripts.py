"""What the system says of sockets is read as people write it."""

from __future__ import annotations

import os
import socket

from hermes.environments.remote_shell.scripts import parse_listeners


def tables(*sockets: socket.socket) -> str:
    links = [os.readlink(f"/proc/self/fd/{one.fileno()}") for one in sockets]
    text = "\n".join(links) + "\n"
    for name in ("tcp", "tcp6"):
        with open(f"/proc/self/net/{name}", encoding="ascii") as file:
            text += file.read()
    return text


def test_listening_sockets_are_found_and_no_others() -> None:
    with socket.socket() as ours, socket.socket() as other, socket.socket() as silent:
        for one in (ours, other, silent):
            one.bind(("127.0.0.1", 0))
        ours.listen()
        other.listen()

        found = parse_listeners(tables(ours, silent))

        assert found == [f"127.0.0.1:{ours.getsockname()[1]}"]


def test_addresses_of_the_sixth_version_are_read() -> None:
    line = (
        "   0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A "
        "00000000:00000000 00:00000000 00000000     0        0 77 1 0 100 0 0 10 0"
    )

    assert parse_listeners(f"socket:[77]\n{line}\n") == ["::1:8080"]
    assert parse_listeners(f"socket:[7]\n{line}\n") == []
