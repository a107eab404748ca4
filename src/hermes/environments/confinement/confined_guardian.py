"""Guardians that start commands confined: in namespaces of bubblewrap, or under Landlock."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import hermes.environments.confinement.landlock as landlock
from hermes.core.errors import UnavailableError
from hermes.environments.confinement.mounts import arguments
from hermes.environments.confinement.tables import DEVICES
from hermes.environments.host.guardian_client import FOLDER, GuardianClient
from hermes.environments.sandbox.sandbox_guardian import INFO_FILE, NamespaceGuardian

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes.environments.confinement.policy import Plan

_START_SECONDS = 10.0
_PYTHON = os.path.realpath(sys.executable)
_HERE = os.path.dirname(os.path.abspath(__file__))
_BEGIN = (
    "import sys; sys.path[:0] = sys.argv[1:3]; import landlock; landlock.restrict({rules!r}); "
    "sys.modules.pop('ctypes', None); import guardian; guardian.main()"
)


def guardian_for(mechanism: str, plan: Plan, *, task: str) -> GuardianClient:
    """The guardian of a mechanism, not started yet; raises `UnavailableError`."""
    if mechanism == "bubblewrap" and sys.platform == "linux":
        return BubblewrapGuardian(plan, task=task)
    if mechanism == "landlock" and sys.platform == "linux" and landlock.abi():
        return LandlockGuardian(plan)
    if mechanism == "seatbelt" and sys.platform == "darwin":
        return SeatbeltGuardian(plan)
    raise UnavailableError("not available on this system")


class BubblewrapGuardian(NamespaceGuardian):
    """Starts commands in namespaces with the paths of a plan; abstract sockets by Landlock."""

    def __init__(self, plan: Plan, *, task: str) -> None:
        super().__init__(task=task, start_seconds=_START_SECONDS)
        self._plan = plan

    def _command(self, bwrap: str) -> list[str]:
        # Namespaces keep signals in; abstract sockets share the namespace of the network.
        begin = _BEGIN.format(rules={"scope": True} if landlock.abi() >= 6 else {})
        if landlock.abi() < 6:
            begin = "import sys; sys.path[:0] = sys.argv[1:3]; import guardian; guardian.main()"
        return [
            bwrap, *arguments(self._plan), "--info-fd", str(INFO_FILE), "--",
            _PYTHON, "-I", "-S", "-c", begin, FOLDER, _HERE, "0",
        ]  # fmt: skip


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
        begin = _BEGIN.format(rules=rules(self._plan))
        return [sys.executable, "-I", "-S", "-c", begin, FOLDER, _HERE, str(os.getpid())]


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
    return "\n".join(lines)


def rules(plan: Plan) -> dict[str, object]:
    """A plan as Landlock rules: rights can only be added, so whatever is hidden is left out."""
    closed = {*plan.hidden, *(path for path, _ in plan.masked), "/dev", "/run"}
    read = [*_without("/", closed), *plan.visible, *plan.sockets]
    resolver = os.path.realpath("/etc/resolv.conf")
    return {
        "read": [*read, resolver],
        "list": ["/"],
        "devices": [f"/dev/{name}" for name in DEVICES],
        "write": [*plan.write, plan.temporary],
        "scope": True,
        "ports": None if plan.network == "open" else [],
    }


def _without(folder: str, closed: set[str]) -> list[str]:
    """Entries below a folder that together hold everything but the closed paths."""
    inner = [path for path in closed if path.startswith(folder.rstrip("/") + "/")]
    if not inner:
        return [folder]
    found = []
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    for name in names:
        path = os.path.join(folder, name)
        # A rule on a link would open its target; what it leads to has an entry of its own.
        if path in closed or os.path.islink(path):
            continue
        found += _without(path, set(inner)) if _holds(path, inner) else [path]
    return found


def _holds(folder: str, paths: list[str]) -> bool:
    return any(path.startswith(f"{folder}/") for path in paths)
