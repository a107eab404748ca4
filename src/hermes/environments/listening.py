"""Where processes listen, from what Linux says of sockets under `/proc/net`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LISTEN = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")
# What a shell at another place prints for `listening`, for the processes in `$@`.
SCRIPT = (
    'for q in "$@"; do for f in /proc/$q/fd/*; do readlink "$f"; done; done 2>/dev/null; '
    "cat /proc/net/tcp /proc/net/tcp6 2>/dev/null"
)


def listening(said: str) -> list[str]:
    """The places that processes listen at, as `address:port`, in order.

    `said` has their open files, as links are shown, and the tables of sockets.
    """
    lines = said.splitlines()
    mine = set(_SOCKET.findall(said))
    return sorted({place for inode, place in _listeners(lines) if inode in mine})


def _listeners(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    for line in lines:
        words = line.split()
        if len(words) > 9 and words[3] == _LISTEN and words[0].endswith(":"):
            address, _, port = words[1].partition(":")
            yield words[9], f"{_address(address)}:{int(port, 16)}"


def _address(digits: str) -> str:
    """An address as it is written, from the way in which the kernel shows it."""
    from ipaddress import IPv6Address, ip_address

    raw = bytes.fromhex(digits)
    # Words of four bytes, each in the machine's own order: the little one, nearly everywhere.
    whole = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    found = ip_address(whole)
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(found)
