"""Bubblewrap arguments for a confinement plan: the same paths as outside, with fewer rights."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.environments.confinement.tables import ACCELERATORS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes.environments.confinement.policy import Plan

# As root the files of every user can be worked on, as outside; nothing else of root's rights stays.
_ROOT_KEEPS = ("CAP_DAC_OVERRIDE", "CAP_CHOWN", "CAP_FOWNER", "CAP_FSETID", "CAP_SETUID",
               "CAP_SETGID", "CAP_KILL", "CAP_NET_BIND_SERVICE")  # fmt: skip
# Switches of the kernel, which belong to root.
_KERNEL = ("sys", "sysrq-trigger", "irq", "bus", "fs")
# Folders where programs leave sockets; only those of the plan are put back.
_SOCKET_FOLDERS = ("/run", "/var/run")


def arguments(plan: Plan) -> list[str]:
    """Arguments of bubblewrap up to the program."""
    argv = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"]
    argv += ["--cap-drop", "ALL"]
    if os.getuid():
        argv += ["--unshare-user", "--uid", str(os.getuid()), "--gid", str(os.getgid())]
    else:
        for capability in _ROOT_KEEPS:
            argv += ["--cap-add", capability]
    if plan.network != "open":
        argv.append("--unshare-net")
    argv += ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    for name in _KERNEL:
        argv += ["--ro-bind-try", f"/proc/{name}", f"/proc/{name}"]
    for path in _devices():
        argv += ["--dev-bind-try", path, path]
    for folder in _SOCKET_FOLDERS:
        if os.path.isdir(folder) and not os.path.islink(folder):
            argv += ["--perms", "0755", "--tmpfs", folder]
    for path in plan.sockets:
        if path.startswith(_SOCKET_FOLDERS):
            argv += ["--ro-bind", os.path.realpath(path), path]
    resolver = os.path.realpath("/etc/resolv.conf")
    if resolver.startswith(_SOCKET_FOLDERS):
        argv += ["--ro-bind-try", resolver, resolver]
    argv += ["--bind", plan.temporary, "/tmp", "--bind", plan.temporary, "/var/tmp"]
    argv += _mounts(plan)
    for folder in _SOCKET_FOLDERS:
        if os.path.isdir(folder) and not os.path.islink(folder):
            argv += ["--remount-ro", folder]
    return argv


def _mounts(plan: Plan) -> list[str]:
    """Writable, read-only and hidden paths, outer ones first, so that an inner one wins."""
    rows: list[tuple[str, int, list[str]]] = []
    rows += [(path, 0, ["--bind", path, path]) for path in plan.write]
    rows += [(path, 1, ["--ro-bind", path, path]) for path in plan.protected]
    rows += [(path, 2, _hide(path)) for path in plan.hidden]
    rows += [(path, 3, ["--ro-bind", copy, path]) for path, copy in plan.masked]
    rows += [(path, 3, ["--ro-bind", path, path]) for path in plan.visible]
    rows += [(path, 3, ["--bind", path, path]) for path in plan.write if _inside(path, plan.hidden)]
    # The plan may be older than this start: sockets and locks come and go.
    rows = [row for row in rows if os.path.lexists(row[0])]
    rows.sort(key=lambda row: (row[0].count("/"), row[1]))
    words = [word for _, _, row in rows for word in row]
    # Empty, and closed for root as well.
    return words + [
        word for path in plan.hidden if os.path.isdir(path) for word in ("--remount-ro", path)
    ]


def _hide(path: str) -> list[str]:
    if os.path.isdir(path):
        return ["--perms", "0000", "--size", "4096", "--tmpfs", path]
    # Devices do not work on such a mount: to open it is an error, for root as well.
    return ["--ro-bind", "/dev/null", path]


def _inside(path: str, folders: Iterable[str]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in folders)


def _devices() -> list[str]:
    return [f"/dev/{name}" for name in os.listdir("/dev") if name.startswith(ACCELERATORS)]
