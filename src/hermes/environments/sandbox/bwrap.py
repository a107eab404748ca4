"""Arguments of bubblewrap: system directories read-only, the workspace writable, nothing else
visible.
"""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ConfigError
from hermes.core.home import hermes_home
from hermes.core.paths import is_below

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
