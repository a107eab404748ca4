"""Confinement policy: which paths a confined command may write, and which it can't see.

`plan` reads the settings and the machine once, when the environment of a task is made; bubblewrap,
Landlock and Seatbelt each put the same `Plan` into force.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from hermes.core.errors import ConfigError
from hermes.core.paths import hermes_home, is_below
from hermes.environments.confinement.tables import (
    ALLOWANCES,
    CACHES,
    HISTORIES,
    MIXED,
    OPEN_SOCKETS,
    RESOLVERS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
_MODES = ("auto", "on", "off")
_NETWORKS = ("open", "hosts", "off")
# Larger settings files are hidden instead of copied.
_LARGEST_COPY = 256_000


class Settings(msgspec.Struct, frozen=True):
    """`terminal.confine` and the settings below it."""

    mode: str = "auto"
    network: str = "open"
    hosts: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    # Paths below /tmp that stay visible, for a program that is started from there.
    programs: tuple[str, ...] = ()

    def checked(self) -> Settings:
        """The same; raises `ConfigError` for a value that does not exist."""
        for name, value, values in (
            ("mode", self.mode, _MODES),
            ("network", self.network, _NETWORKS),
        ):
            if value not in values:
                raise ConfigError(
                    f"terminal.confine.{name} can't be {value!r}",
                    hint=f"Use one of {', '.join(values)}.",
                )
        for host in self.hosts:
            name, _, port = host.partition(":")
            if name == "localhost" and port and not (port.isdecimal() and 0 < int(port) < 65_536):
                raise ConfigError(f"terminal.confine.hosts can't have the port of {host!r}")
        for name in self.allow:
            if name not in ALLOWANCES:
                raise ConfigError(
                    f"terminal.confine.allow does not know {name!r}",
                    hint=f"Use some of {', '.join(ALLOWANCES)}.",
                )
        return self


class Plan(msgspec.Struct):
    """What a confined command may reach, as absolute real paths."""

    workspace: str
    # Seen as /tmp inside, and named by TMPDIR.
    temporary: str
    write: list[str]
    # Read-only parts of what is writable.
    protected: list[str]
    # Not visible: secrets and our own home.
    hidden: list[str]
    # Visible although a hidden folder holds it.
    visible: list[str]
    # Files that are replaced by a copy with masked secrets: (path, copy).
    masked: list[tuple[str, str]]
    # Local sockets, and folders of them, that stay reachable.
    sockets: list[str]
    # Variables of our own that commands get besides the allow-list.
    variables: list[str]
    network: str = "open"
    # With a proxy: its port on the loopback (0: it listens inside), and ports to forward.
    proxy_port: int = 0
    forwards: list[int] = []
    # Whether addresses that give out the keys of a cloud machine can be reached.
    metadata: bool = False
    # All secrets that there are, and the folders where new ones would be, with their times.
    secrets: list[str] = []
    searched: dict[str, int] = {}


def plan(workspace: str, temporary: str, settings: Settings) -> Plan:
    """The policy for commands that work in `workspace`; makes missing caches of installed tools."""
    workspace = os.path.realpath(workspace)
    home = os.path.realpath(os.path.expanduser("~"))
    repositories = git_folders(workspace)
    allowed = [ALLOWANCES[name] for name in settings.allow]
    visible = [path for row in allowed for path in _below(home, row.paths)]
    visible += [path for row in allowed for path in _below(home, row.sockets)]
    visible += [*_own_program(), *settings.programs]
    closed = RESOLVERS if settings.network != "open" else ()
    sockets = [
        *(path for path in OPEN_SOCKETS if path not in closed),
        *(path for row in allowed for path in _below(home, row.sockets)),
    ]
    for row in allowed:
        for name in row.variables:
            path = os.environ.get(name, "").removeprefix("unix://")
            if path.startswith("/") and os.path.exists(path):
                sockets.append(path)
                visible.append(path)
    extra = [os.path.realpath(os.path.expanduser(path)) for path in settings.write]
    work = _entries(home) if is_below(home, workspace) else [workspace]
    write = _outermost([*work, *repositories, *_caches(home), *filter(os.path.exists, extra)])
    secrets, searched = _secrets(home)
    closed_sockets = [
        path for path in _open_sockets() if not _is_below_any(path, [*write, *sockets])
    ]
    hidden = [path for path in [*secrets, *closed_sockets] if path not in visible]
    hidden = [path for path in hidden if not is_below(workspace, path)]
    masked = _masked(home, temporary, visible)
    copies = {path for path, _ in masked}
    return Plan(
        workspace=workspace,
        temporary=temporary,
        write=write,
        protected=protected_paths([workspace, *repositories]),
        hidden=_outermost(path for path in hidden if path not in copies),
        visible=visible,
        masked=masked,
        sockets=[path for path in dict.fromkeys(sockets) if os.path.exists(path)],
        variables=[name for row in allowed for name in row.variables],
        network=settings.network,
        metadata="metadata" in settings.allow,
        secrets=secrets,
        searched=_times(searched),
    )


def is_stale(plan: Plan) -> bool:
    """Whether there are secrets that a plan does not know."""
    now = _times(plan.searched)
    if now == plan.searched:
        return False
    secrets, searched = _secrets(os.path.realpath(os.path.expanduser("~")))
    plan.searched = _times(searched)
    return not set(secrets) <= set(plan.secrets)


def _times(folders: Iterable[str]) -> dict[str, int]:
    found = {}
    for folder in folders:
        with suppress(OSError):
            found[folder] = os.stat(folder).st_mtime_ns
    return found


def git_folders(workspace: str) -> list[str]:
    """Git folders outside of the workspace that its repository writes to.

    A linked worktree and a submodule have a `.git` file that names their own folder; that of a
    worktree names the folder that it shares with the main one.
    """
    pointer = os.path.join(workspace, ".git")
    above = workspace
    while not os.path.lexists(pointer) and os.path.dirname(above) != above:
        above = os.path.dirname(above)
        pointer = os.path.join(above, ".git")
    if not os.path.lexists(pointer):
        return []
    if os.path.isdir(pointer):
        return [] if above == workspace else [os.path.realpath(pointer)]
    own = _pointed(pointer, "gitdir:", above)
    if not own or not _is_git_folder(own):
        return []
    # The folder must point back: else a `.git` file that a command wrote could name any repository.
    shared = _pointed(os.path.join(own, "commondir"), "", own)
    if shared:
        back = _pointed(os.path.join(own, "gitdir"), "", own)
        is_worktree = os.path.dirname(own) == os.path.join(shared, "worktrees")
        return [shared] if is_worktree and back == os.path.realpath(pointer) else []
    modules = [os.path.join(folder, ".git", "modules") for folder in _parents(above)]
    back = _worktree(own)
    return [own] if back == above and any(is_below(own, folder) for folder in modules) else []


def protected_paths(roots: Sequence[str]) -> list[str]:
    """Files below writable folders that a person's own programs would run or obey later."""
    found = []
    for root in roots:
        git = root if _is_git_folder(root) else os.path.join(root, ".git")
        if os.path.isdir(git):
            found.append(os.path.join(git, "hooks"))
    return [*(path for path in found if os.path.lexists(path)), *own_folders(roots)]


def own_folders(roots: Iterable[str]) -> list[str]:
    """Folders that Hermes itself obeys."""
    found = [os.path.join(root, name) for root in roots for name in (".hermes", ".agents")]
    return [path for path in found if os.path.isdir(path) and not os.path.islink(path)]


def _is_git_folder(path: str) -> bool:
    return os.path.isfile(os.path.join(path, "HEAD")) and (
        os.path.isdir(os.path.join(path, "objects"))
        or os.path.isfile(os.path.join(path, "commondir"))
    )


def _parents(path: str) -> list[str]:
    found = []
    while os.path.dirname(path) != path:
        path = os.path.dirname(path)
        found.append(path)
    return found


def _pointed(file: str, word: str, base: str) -> str:
    try:
        with open(file, encoding="utf-8") as opened:
            text = opened.read(4096).strip()
    except (OSError, UnicodeDecodeError):
        return ""
    if not text.startswith(word):
        return ""
    return os.path.realpath(os.path.join(base, text.removeprefix(word).strip()))


def _worktree(folder: str) -> str:
    """The working tree that the settings of a git folder name."""
    import re

    with suppress(OSError), open(os.path.join(folder, "config"), encoding="utf-8") as file:
        named = re.search(r"^\s*worktree\s*=\s*\"?(.+?)\"?\s*$", file.read(100_000), re.MULTILINE)
        if named:
            return os.path.realpath(os.path.join(folder, named[1]))
    return ""


def _caches(home: str) -> list[str]:
    search = os.environ.get("PATH", os.defpath).split(os.pathsep)
    found = []
    for row in CACHES:
        moved = os.environ.get(row.variable, "") if row.variable else ""
        path = os.path.join(moved, row.below) if moved else os.path.join(home, row.path)
        if not os.path.exists(path):
            if not any(_is_installed(program, search) for program in row.programs):
                continue
            with suppress(OSError):
                os.makedirs(os.path.dirname(path) if row.file else path, exist_ok=True)
                if row.file:
                    with open(path, "ab"):
                        pass
        real = os.path.realpath(path)
        # A link out of the home folder leads to what is not a cache.
        if os.path.exists(real) and real not in ("/", home) and (moved or is_below(real, home)):
            found.append(real)
    return found


def _is_installed(program: str, search: Sequence[str]) -> bool:
    return any(os.access(f"{folder}/{program}", os.X_OK) for folder in search if folder)


def _secrets(home: str) -> tuple[list[str], list[str]]:
    from hermes.safety.paths.guards import existing_secrets

    homes = [home, *(entry.path for root in ("/home", "/Users") for entry in _folders(root))]
    if os.getuid() == 0 or os.access("/root", os.R_OK):
        homes.append("/root")
    found, searched = existing_secrets(list(dict.fromkeys(homes)))
    for one in dict.fromkeys(homes):
        found += [os.path.join(one, name) for name in HISTORIES]
    found += [hermes_home(), os.path.join(home, ".hermes")]
    existing = [os.path.realpath(path) for path in dict.fromkeys(found) if os.path.lexists(path)]
    return existing, searched


def _open_sockets() -> list[str]:
    """Local sockets with a path that programs of this machine listen on now."""
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
            rows = [line.split(maxsplit=7) for line in file]
    except OSError:
        return []
    paths = {row[7].strip() for row in rows if len(row) == 8 and row[7].startswith("/")}
    return [os.path.realpath(path) for path in sorted(paths) if os.path.exists(path)]


def _own_program() -> list[str]:
    """Folders of this program and its Python that lie in a temporary folder, which is replaced."""
    import sys

    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    paths = {os.path.realpath(path) for path in (package, sys.prefix, sys.base_prefix)}
    return [path for path in sorted(paths) if path.startswith(("/tmp/", "/var/tmp/", "/run/"))]


def _entries(home: str) -> list[str]:
    """Files and folders of a home that are no settings, for a workspace that holds the home.

    The home folder itself stays read-only, so that no start-up file can be made in it.
    """
    try:
        names = os.listdir(home)
    except OSError:
        return []
    paths = [os.path.join(home, name) for name in names if not name.startswith(".")]
    return [path for path in paths if not os.path.islink(path)]


def _folders(root: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(root) as entries:
            return [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _masked(home: str, temporary: str, visible: Sequence[str]) -> list[tuple[str, str]]:
    """Copies of settings files with their secrets masked, kept beside the temporary folder."""
    from hermes.safety.redaction import redact

    found = []
    folder = f"{temporary}.masked"
    for name in MIXED:
        path = os.path.join(home, name)
        if path in visible or not os.path.isfile(path) or os.path.getsize(path) > _LARGEST_COPY:
            continue
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError):
            continue
        os.makedirs(folder, mode=0o700, exist_ok=True)
        copy = os.path.join(folder, name.replace("/", "_"))
        with open(copy, "w", encoding="utf-8") as file:
            file.write(redact(text))
        found.append((os.path.realpath(path), copy))
    return found


def _below(home: str, names: Sequence[str]) -> list[str]:
    from glob import glob

    found = []
    for name in names:
        path = os.path.join(home, name.replace("{uid}", str(os.getuid())))
        found += [os.path.realpath(match) for match in glob(path)]
    return found


def _is_below_any(path: str, folders: Iterable[str]) -> bool:
    return any(is_below(path, folder) for folder in folders)


def _outermost(paths: Iterable[str]) -> list[str]:
    """Paths without those that lie below another one of them."""
    kept: list[str] = []
    for path in sorted(dict.fromkeys(paths)):
        if not kept or not is_below(path, kept[-1]):
            kept.append(path)
    return kept
