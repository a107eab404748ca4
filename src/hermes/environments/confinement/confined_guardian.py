"""Guardians that start commands confined: in namespaces of bubblewrap, or under Landlock."""

from __future__ import annotations

import json
import marshal
import os
import socket
import stat
import sys
from typing import TYPE_CHECKING

# Not used here: this writes its byte code, which the guardian in namespaces reads and can't write.
import hermes.environments.confinement.supervisor  # noqa: F401
from hermes.core.errors import UnavailableError
from hermes.environments.confinement import landlock
from hermes.environments.confinement.mounts import arguments
from hermes.environments.confinement.tables import DEVICES
from hermes.environments.host.guardian_client import FOLDER, GuardianClient
from hermes.environments.sandbox.sandbox_guardian import INFO_FILE, NamespaceGuardian

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes.environments.confinement.policy import Plan
    from hermes.environments.confinement.proxy import HostProxy

_START_SECONDS = 10.0
_PYTHON = os.path.realpath(sys.executable)
_HERE = os.path.dirname(os.path.abspath(__file__))
_BEGIN = (
    "import sys; sys.path[:0] = sys.argv[1:3]; import supervisor, guardian; "
    "guardian.main(supervisor.confine(supervisor.received()))"
)


def guardian_for(
    mechanism: str, plan: Plan, *, task: str, proxy: HostProxy | None = None
) -> GuardianClient:
    """The guardian of a mechanism, not started yet; raises `UnavailableError`."""
    if mechanism == "bubblewrap" and sys.platform == "linux":
        return BubblewrapGuardian(plan, task=task, proxy=proxy)
    if mechanism == "landlock" and sys.platform == "linux" and landlock.abi():
        return LandlockGuardian(plan)
    if mechanism == "seatbelt" and sys.platform == "darwin":
        return SeatbeltGuardian(plan)
    raise UnavailableError("not available on this system")


class BubblewrapGuardian(NamespaceGuardian):
    """Starts commands in namespaces with the paths of a plan; abstract sockets by Landlock."""

    def __init__(self, plan: Plan, *, task: str, proxy: HostProxy | None = None) -> None:
        super().__init__(task=task, start_seconds=_START_SECONDS)
        self._plan = plan
        self._proxy = proxy

    def _command(self, bwrap: str) -> list[str]:
        return [
            bwrap, *arguments(self._plan), "--info-fd", str(INFO_FILE), "--",
            _PYTHON, "-I", "-S", "-c", _BEGIN, FOLDER, _HERE, "0",
        ]  # fmt: skip

    def _greeting(self) -> bytes:
        plan = self._plan
        return _packed(
            {
                # That of the proxy is 0 at first: any port.
                "listen": [self._proxy.port, *plan.forwards] if self._proxy is not None else [],
                # FIFOs can be written on read-only mounts.
                "write": [*plan.write, "/tmp", "/var/tmp", "/dev", "/proc"],
                "sockets": [*plan.write, "/tmp", "/var/tmp", *plan.sockets],
                "closed": _closed_addresses(plan),
                "scope": True,
                "abi": landlock.abi(),
            }
        )

    def _greeted(self, channel: socket.socket) -> None:
        if self._proxy is not None:
            channel.settimeout(_START_SECONDS)
            _, files, _, _ = socket.recv_fds(channel, 1, 1 + len(self._plan.forwards))
            channel.settimeout(None)
            self._proxy.serve([socket.socket(fileno=file) for file in files])


class LandlockGuardian(GuardianClient):
    """Starts commands under Landlock rules."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan = plan

    def open(self) -> None:
        """Start it and wait until it answers; raises `UnavailableError`."""
        super().open()
        answered, data = self._ask("members", "", within=_START_SECONDS)
        if not answered or not data:
            self.close()
            raise UnavailableError("the guardian did not start under Landlock")

    def _argv(self) -> list[str]:
        return [sys.executable, "-I", "-S", "-c", _BEGIN, FOLDER, _HERE, str(os.getpid())]

    def _start(self) -> socket.socket:
        channel = super()._start()
        channel.sendall(_packed(rules(self._plan)))
        return channel


def _packed(rules: dict[str, object]) -> bytes:
    body = marshal.dumps(rules)
    return len(body).to_bytes(4, "little") + body


class SeatbeltGuardian(GuardianClient):
    """Starts commands below `sandbox-exec` with the profile of a plan."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan = plan

    def _argv(self) -> list[str]:
        return ["/usr/bin/sandbox-exec", "-p", profile(self._plan), *super()._argv()]


def profile(plan: Plan) -> str:
    """A plan as a Seatbelt profile; the last rule that matches decides."""

    def paths(names: Iterable[str]) -> str:
        return " ".join(f"(subpath {json.dumps(name)})" for name in names)

    lines = [
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
        f'(allow file-write* {paths([*plan.write, plan.temporary])} (subpath "/dev"))',
        "(deny signal (target others))",
        "(allow signal (target same-sandbox))",
        "(deny process-info* (target others))",
        "(deny network-outbound (remote unix-socket))",
    ]
    if plan.protected:
        lines.append(f"(deny file-write* {paths(plan.protected)})")
    if closed := [*plan.hidden, *(path for path, _ in plan.masked)]:
        lines.append(f"(deny file-read* file-write* {paths(closed)})")
    if plan.visible:
        lines.append(f"(allow file-read* {paths(plan.visible)})")
    open_sockets = [*plan.write, plan.temporary, *plan.sockets, "/private/var/run/mDNSResponder"]
    lines.append(f"(allow network-outbound (remote unix-socket {paths(open_sockets)}))")
    if plan.network != "open":
        lines.append("(deny network-outbound (remote ip))")
    if plan.proxy_port:
        lines.append(f'(allow network-outbound (remote ip "localhost:{plan.proxy_port}"))')
    return "\n".join(lines)


def rules(plan: Plan) -> dict[str, object]:
    """A plan as Landlock rules: rights can only be added, so whatever is hidden is left out."""
    # To sockets there are no rules of Landlock; the supervisor knows which are open.
    hidden = [path for path in plan.hidden if not _is_socket(path)]
    closed = {*hidden, *(path for path, _ in plan.masked), "/dev", "/run"}
    read = [*_without("/", closed, _parents(closed)), *plan.visible, *plan.sockets]
    resolver = os.path.realpath("/etc/resolv.conf")
    return {
        "read": [*read, resolver],
        "list": ["/"],
        "devices": [f"/dev/{name}" for name in DEVICES],
        "write": [*plan.write, plan.temporary],
        "files": True,
        "sockets": [*plan.write, plan.temporary, *plan.sockets],
        "closed": _closed_addresses(plan),
        "scope": True,
        "ports": None if plan.network == "open" else [plan.proxy_port] if plan.proxy_port else [],
        "abi": landlock.abi(),
    }


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False  # gone since the plan was made


def _closed_addresses(plan: Plan) -> list[bytes]:
    """Addresses that can't be connected to, as bytes."""
    from hermes.safety.urls import METADATA

    if plan.metadata:
        return []
    families = ((socket.AF_INET6 if ":" in text else socket.AF_INET, text) for text in METADATA)
    return [socket.inet_pton(family, text) for family, text in families]


def _without(folder: str, closed: set[str], above: set[str]) -> list[str]:
    """Entries below a folder that together hold everything but the closed paths."""
    found: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                # A rule on a link would open its target, which has an entry of its own.
                if entry.path in closed or entry.is_symlink():
                    continue
                deep = entry.path in above
                found += _without(entry.path, closed, above) if deep else [entry.path]
    except OSError:
        return found
    return found


def _parents(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        while (path := os.path.dirname(path)) not in found:
            found.add(path)
    return found
