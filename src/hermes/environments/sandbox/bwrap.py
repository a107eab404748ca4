"""Walls of the sandbox: arguments of bubblewrap, and cgroups for memory and processes."""

from __future__ import annotations

import os
import stat
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ConfigError
from hermes.core.paths import hermes_home, is_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


HOME = "/home/hermes"
# The folder of the guardian's modules inside the sandbox.
GUARDIAN_FOLDER = "/run/hermes/environments/host"
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store")
# Files of /etc that programs need; not the keys and password files there.
_ETC = (
    "alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies",
    "debian_version", "environment", "fonts", "gai.conf", "group", "host.conf", "hosts", "inputrc",
    "java", "java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "localtime", "locale.alias", "locale.conf", "magic", "mime.types",
    "nsswitch.conf", "os-release", "passwd", "perl", "pki/tls/certs", "pki/ca-trust", "profile",
    "protocols", "python3", "python3.11", "redhat-release", "resolv.conf", "services", "shells",
    "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "vim",
)  # fmt: skip


class Bind(NamedTuple):
    """A path on this machine, and its path inside."""

    source: str
    target: str
    writable: bool


def check_workspace(path: str) -> str:
    """A folder that may be writable inside; refuses home folders and their ancestors."""
    real = os.path.realpath(path)
    homes = {os.path.realpath(os.path.expanduser("~")), "/root", "/home"}
    for home in homes:
        if is_below(home, real):
            kind = "the home folder" if real == home else f"a folder that holds {home}"
            raise ConfigError(
                f"{real} is {kind}: everything private in it would lie open",
                hint="Work in a folder below it that holds the project alone.",
            )
    own = os.path.realpath(hermes_home())
    if is_below(real, own):
        raise ConfigError(f"{real} holds Hermes's own files", hint="Work in a folder of a project.")
    if real in _SYSTEM or real in ("/etc", "/var", "/run", "/dev", "/proc", "/sys", "/tmp"):
        raise ConfigError(f"{real} belongs to the system", hint="Work in a folder of a project.")
    if not os.path.isdir(real):
        raise ConfigError(f"{real} is no folder", hint="Give the folder to work in.")
    return real


def hermes_home_below(workspace: str) -> str:
    """Hermes's home folder if it is inside the workspace, where it has to be hidden; else empty."""
    own = os.path.realpath(hermes_home())
    return own if is_below(own, workspace) and os.path.isdir(own) else ""


def parse_binds(texts: Iterable[str]) -> list[Bind]:
    """Configured binds, `SOURCE[:TARGET][:ro|rw]`; read-only by default."""
    binds = []
    for text in texts:
        parts = text.split(":")
        writable = parts[-1] == "rw"
        if parts[-1] in ("ro", "rw"):
            parts.pop()
        if len(parts) not in (1, 2) or not all(part.startswith("/") for part in parts):
            raise ConfigError(f"{text!r} is no bind", hint="Write SOURCE[:TARGET][:ro|rw].")
        source = os.path.realpath(parts[0])
        try:
            mode = os.stat(source).st_mode
        except OSError:
            raise ConfigError(f"{parts[0]} can't be bound: it is not there") from None
        if stat.S_ISSOCK(mode):
            raise ConfigError(f"{parts[0]} is a socket, which leads out of the sandbox")
        if stat.S_ISDIR(mode):
            check_workspace(source)
        binds.append(Bind(source, parts[-1], writable))
    return binds


def bwrap_arguments(
    workspace: str, *, network: bool, binds: Sequence[Bind], tmp_bytes: int, same_user: bool
) -> list[str]:
    """The arguments of bubblewrap, up to the program.

    With `same_user` a user namespace maps the user to an unprivileged one inside; otherwise the
    program inside has to switch to another user, and can.
    """
    argv = [
        "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
        "--die-with-parent", "--new-session", "--hostname", "sandbox", "--clearenv",
        "--cap-drop", "ALL",
    ]  # fmt: skip
    if not network:
        argv.append("--unshare-net")
    if same_user:
        uid, gid = (os.getuid(), os.getgid()) if os.getuid() else (1000, 1000)
        argv += ["--unshare-user", "--uid", str(uid), "--gid", str(gid)]
    else:
        argv += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    for place in _SYSTEM:
        if os.path.islink(place):
            argv += ["--symlink", os.readlink(place), place]
        elif os.path.isdir(place):
            argv += ["--ro-bind", place, place]
    argv += ["--perms", "0755", "--dir", "/etc"]
    for name in _ETC:
        place = f"/etc/{name}"
        if os.path.exists(place):
            argv += ["--ro-bind", os.path.realpath(place), place]
    argv += ["--proc", "/proc", "--dev", "/dev"]
    for place in ("/tmp", "/var", "/run", "/home"):
        argv += ["--perms", "0755", "--size", str(tmp_bytes), "--tmpfs", place]
    for place in ("/tmp", "/var/tmp", HOME, "/dev/shm"):
        argv += ["--perms", "1777", "--size", str(tmp_bytes), "--tmpfs", place]
    environments = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    argv += ["--ro-bind", os.path.join(environments, "host"), GUARDIAN_FOLDER]
    base = os.path.realpath(sys.base_prefix)
    if not base.startswith("/usr"):
        argv += [*_folders_above(base), "--ro-bind", base, base]
    for bind in binds:
        argv += ["--bind" if bind.writable else "--ro-bind", bind.source, bind.target]
    argv += [*_folders_above(workspace), "--bind", workspace, workspace]
    if own := hermes_home_below(workspace):
        argv += ["--tmpfs", own]
    return [*argv, "--chdir", workspace]


def _folders_above(place: str) -> list[str]:
    """Arguments that make the parent folders of a path: empty, with mode 0755."""
    argv: list[str] = []
    above = os.path.dirname(place)
    while above not in ("/", *_SYSTEM):
        argv[:0] = ["--perms", "0755", "--dir", above]
        above = os.path.dirname(above)
    return argv


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
