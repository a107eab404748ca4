"""Proof of confinement: each limit is tried from inside, and must hold."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.paths import hermes_home

if TYPE_CHECKING:
    from hermes.environments.confinement.confined_environment import ConfinedEnvironment

_SECONDS = 20.0
_CONNECT = "import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ['SOCKET'])"


class Limit(NamedTuple):
    """A sentence about confined commands, and the command that shows whether it is true."""

    sentence: str
    command: str
    succeeds: bool


LIMITS = (
    Limit("the workspace is writable", "echo x > hermes-proof && rm hermes-proof", True),
    Limit("$TMPDIR is writable", 'file=$(mktemp) && rm "$file"', True),
    Limit("the home folder is read-only", 'touch "$HOME/.hermes-proof"', False),
    Limit("/etc is read-only", "touch /etc/.hermes-proof", False),
    Limit("other folders are read-only", 'touch "$OTHER/proof"', False),
    Limit("modes and times of other files can't be changed", 'chmod 700 "$OTHER"', False),
    Limit("sockets of other programs are closed", f'"{sys.executable}" -c "{_CONNECT}"', False),
    Limit("the home of Hermes can't be read or written", 'touch "$OURS/.hermes-proof"', False),
    Limit("secrets can't be read", '[ -s "$SECRET" ] && cat "$SECRET"/* "$SECRET"', False),
    Limit("other processes can't be signalled", 'kill -0 "$OUTSIDE"', False),
    Limit("other processes can't be inspected", 'cat "/proc/$OUTSIDE/environ" > seen', False),
    Limit("no program gets more rights", "grep -q 'NoNewPrivs:.1' /proc/self/status", True),
    Limit("nothing can be mounted", "mount -t tmpfs none /mnt", False),
)


def broken_limits(environment: ConfinedEnvironment) -> list[str]:
    """Sentences that are not true here."""
    broken = []
    assert environment.machine.guardian  # makes the plan
    plan = environment.machine.plan
    secrets = [path for path in plan.hidden if os.path.exists(path)] if plan else []
    with (
        tempfile.TemporaryDirectory(prefix="hermes-other-", dir=_base()) as other,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        listener.bind(os.path.join(other, "socket"))
        listener.listen()
        variables = {
            "OTHER": other,
            "SOCKET": listener.getsockname(),
            "OURS": hermes_home(),
            "SECRET": secrets[0] if secrets else "/nonexistent",
            "OUTSIDE": str(os.getpid()),
        }
        for limit in LIMITS:
            command = f"{limit.command} 2>/dev/null"
            result = environment.execute(command, timeout=_SECONDS, env=variables)
            if (result.exit_code == 0) != limit.succeeds:
                broken.append(limit.sentence)
    return broken


def _base() -> str:
    """A folder that confined commands see, unlike /tmp."""
    for path in ("/var/lib", os.path.expanduser("~")):
        if os.access(path, os.W_OK):
            return path
    return tempfile.gettempdir()
