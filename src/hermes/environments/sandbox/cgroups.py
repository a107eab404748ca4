"""Limits of a sandbox: memory and number of processes, by cgroup where one can be made, by rlimit
otherwise.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

_PREFIX = "hermes-"


class Limits:
    """The limits of one sandbox, and how they are enforced."""

    __slots__ = ("folders", "memory", "missing", "pids", "rlimits")

    def __init__(self) -> None:
        self.folders: list[str] = []
        # Set inside, by their names in `resource`.
        self.rlimits: dict[str, int] = {}
        # Descriptions of the enforced limits; empty without one.
        self.memory = ""
        self.pids = ""
        self.missing: list[str] = []

    def out_of_memory(self) -> int:
        """The number of processes that the OOM killer has ended."""
        for folder in self.folders:
            for name in ("memory.events", "memory.oom_control"):
                with suppress(OSError), open(os.path.join(folder, name), encoding="ascii") as file:
                    for line in file:
                        word, _, count = line.partition(" ")
                        if word == "oom_kill":
                            return int(count)
        return 0

    def processes(self) -> int:
        """The number of processes; 0 without a cgroup."""
        for folder in self.folders:
            path = os.path.join(folder, "pids.current")
            with suppress(OSError), open(path, encoding="ascii") as file:
                return int(file.read())
        return 0

    def remove(self) -> None:
        """Remove the cgroups, once they are empty."""
        for folder in self.folders:
            for _ in range(40):
                try:
                    os.rmdir(folder)
                except FileNotFoundError:
                    break
                except OSError:
                    # A killed process leaves with a delay.
                    time.sleep(0.025)
                else:
                    break
        self.folders = []


def create_limits(memory: int, pids: int, *, as_root: bool) -> Limits:
    """Make the limits of one sandbox; the caller removes them."""
    limits = Limits()
    name = f"{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
    groups = _groups()
    if _limited(groups.get("memory"), name, limits, _memory_files(memory)):
        limits.memory = f"{memory // 1_000_000} MB for everything together"
    else:
        limits.rlimits["RLIMIT_DATA"] = memory
        limits.memory = f"{memory // 1_000_000} MB for the data of each process"
        limits.missing.append("memory of all processes together: no cgroup can be made here")
    if _limited(groups.get("pids"), name, limits, (("pids.max", pids, True),)):
        limits.pids = f"at most {pids} at once"
    elif not as_root:
        limits.rlimits["RLIMIT_NPROC"] = pids
        limits.pids = f"at most {pids} of this user at once"
    else:
        limits.missing.append("number of processes: no cgroup can be made here")
    return limits


def prune() -> list[str]:
    """Remove orphaned cgroups; their folders."""
    removed = []
    for parent in set(_groups().values()):
        with suppress(OSError):
            for name in os.listdir(parent):
                pid = name[len(_PREFIX) :].partition("-")[0]
                if not name.startswith(_PREFIX) or not pid.isdigit() or _alive(int(pid)):
                    continue
                folder = os.path.join(parent, name)
                with suppress(OSError):
                    os.rmdir(folder)
                    removed.append(folder)
    return removed


def _alive(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


def _memory_files(memory: int) -> tuple[tuple[str, int, bool], ...]:
    """(file, value, whether it must be there), for both kinds of cgroup."""
    return (
        ("memory.limit_in_bytes", memory, False),
        ("memory.memsw.limit_in_bytes", memory, False),
        ("memory.max", memory, False),
        ("memory.swap.max", 0, False),
    )


def _limited(
    parent: str | None, name: str, limits: Limits, files: tuple[tuple[str, int, bool], ...]
) -> bool:
    """Make a cgroup and write its limits; whether at least one is in force."""
    if parent is None:
        return False
    folder = os.path.join(parent, name)
    held = False
    try:
        os.makedirs(folder, exist_ok=True)
        for file, value, needed in files:
            path = os.path.join(folder, file)
            if not os.path.exists(path):
                if needed:
                    raise FileNotFoundError(path)
                continue
            try:
                with open(path, "w", encoding="ascii") as opened:
                    opened.write(str(value))
                held = True
            except OSError:
                if needed:
                    raise
    except OSError:
        held = False
    if not held:
        with suppress(OSError):
            os.rmdir(folder)
        return False
    if folder not in limits.folders:
        limits.folders.append(folder)
    return True


def _groups() -> dict[str, str]:
    """The folder for new cgroups of each controller: next to or below our own."""
    own: dict[str, str] = {}
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            for line in file:
                _, controllers, path = line.rstrip("\n").split(":", 2)
                for one in controllers.split(","):
                    own[one] = path
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            mounts = [line.split() for line in file if " cgroup" in line]
    except OSError:
        return {}
    found: dict[str, str] = {}
    for words in mounts:
        at = words.index("-")
        root, point, kind, options = words[3], words[4], words[at + 1], words[-1].split(",")
        if kind == "cgroup":
            for controller in ("memory", "pids"):
                if controller in options and controller in own:
                    found[controller] = _below(point, root, own[controller])
        elif kind == "cgroup2" and "" in own:
            folder = _below(point, root, own[""])
            for controller in _handed_down(folder):
                found.setdefault(controller, folder)
    return {
        controller: folder for controller, folder in found.items() if os.access(folder, os.W_OK)
    }


def _below(point: str, root: str, path: str) -> str:
    inner = path[len(root) :] if root != "/" and path.startswith(root) else path
    folder = os.path.normpath(f"{point}/{inner}")
    return folder if os.path.isdir(folder) else point


def _handed_down(folder: str) -> list[str]:
    """The controllers that cgroups below a folder can use."""
    try:
        with open(os.path.join(folder, "cgroup.subtree_control"), encoding="ascii") as file:
            return [one for one in file.read().split() if one in ("memory", "pids")]
    except OSError:
        return []
