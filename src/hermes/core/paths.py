"""Paths: "is below", the home directory, private files, atomic writes, file locks."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress

from hermes.core.errors import ConfigError

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Processes of a command have this variable, and are found by it.
MARK = "HERMES_COMMAND"
# Files and folders of the home that decide what may happen.
DECIDING = (
    "config.yaml",
    "hermes_permissions.yaml",
    "trust.json",
    "approvals/mcp.json",
    "yaml_tools",
    "plugins",
)
# Called with the path of each private file that this program has written.
on_write: list[Callable[[str], None]] = []
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


def hermes_home() -> str:
    """`HERMES_HOME`, or `~/.hermes`; it is not created here."""
    # Only the real environment is read, never a project's `.env`.
    return os.path.abspath(os.path.expanduser(os.environ.get("HERMES_HOME") or "~/.hermes"))


def home_path(*parts: str) -> str:
    """A path below the home directory."""
    return os.path.join(hermes_home(), *parts)


def check_home() -> None:
    """Raise `ConfigError` when somebody else owns the home, or can write what decides there."""
    if not hasattr(os, "geteuid"):
        return
    home = hermes_home()
    try:
        status = os.stat(home)
    except OSError:
        return
    if status.st_uid != os.geteuid():
        raise _not_ours(f"{home} belongs to another user", f"sudo chown -R {os.geteuid()}", home)
    # Where nobody else can enter, the modes of the files in it do not matter.
    names = ("", *DECIDING) if status.st_mode & 0o011 else ("",)
    for path in (os.path.join(home, name).rstrip("/") for name in names):
        with suppress(OSError):
            if os.stat(path).st_mode & 0o022:
                raise _not_ours(f"{path} can be written by others", "chmod -R go-w", home)


def _not_ours(problem: str, command: str, home: str) -> ConfigError:
    from shlex import quote

    return ConfigError(problem, hint=f"{command} {quote(home)}")


def below_command() -> bool:
    """Whether a command that Hermes runs for a model started this process.

    Commands have the variable `MARK`. One that removes it is still below a guardian of ours in the
    process tree, or below a process that was started with the variable. What another service
    starts (cron, systemd, ssh) is not found.
    """
    if MARK in os.environ:
        return True
    pid = os.getppid()
    while pid > 0:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"guardian.main()" in file.read():
                    return True
            with open(f"/proc/{pid}/stat", "rb") as file:
                # The name of the program, in parentheses, may hold anything.
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
        with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            if any(each.startswith(f"{MARK}=".encode()) for each in file.read().split(b"\0")):
                return True
        pid = parent
    return False


def make_private(folder: str) -> str:
    """Create a directory with mode 0700, its parents too, if it is missing; the same path."""
    above = os.path.dirname(folder)
    if above not in ("", folder) and not os.path.isdir(above):
        # `makedirs` would give the parents the usual mode, and the home itself is one of them.
        make_private(above)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
    return folder


def write_private(path: str, data: bytes) -> None:
    """Write a file atomically with mode 0600: readers see the old bytes or the new ones.

    The temporary file has a random name and is created exclusively, so that no link can be
    planted there.
    """
    make_private(os.path.dirname(path) or os.curdir)
    draft = f"{path}.{os.urandom(8).hex()}.new"
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise
    for listener in on_write:
        listener(path)


def flock(handle: int, *, exclusive: bool = True, wait: bool = True) -> bool:
    """Lock an open file between processes; False when another holds it and `wait` is off.

    Closing the file releases the lock. On Windows nothing is locked.
    """
    try:
        import fcntl
    except ImportError:
        return True
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    try:
        fcntl.flock(handle, kind if wait else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def open_lock(path: str) -> int:
    """Open a lock file; it and its directory are created when they are missing."""
    try:
        return os.open(path, _LOCK_FLAGS, 0o600)
    except FileNotFoundError:
        make_private(os.path.dirname(path))
        return os.open(path, _LOCK_FLAGS, 0o600)


def is_current(handle: int, path: str) -> bool:
    """Whether an open file is still the one at `path`: a lock on a removed file has no effect."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


@contextmanager
def locked(path: str, *, timeout: float | None = None, directory: bool = False) -> Iterator[None]:
    """Hold an exclusive lock on a lock file, or with `directory` on a directory itself.

    Raises `TimeoutError` when another process holds it for `timeout` seconds.
    """
    handle = os.open(make_private(path), os.O_RDONLY) if directory else open_lock(path)
    try:
        if timeout is None:
            flock(handle)
        else:
            _poll(handle, timeout)
        yield
    finally:
        os.close(handle)


def _poll(handle: int, timeout: float) -> None:
    import time

    deadline, pause = time.monotonic() + timeout, 0.001
    while not flock(handle, wait=False):
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


def is_below(path: str, directory: str) -> bool:
    """Whether `path` is `directory` or lies inside it.

    A comparison of text: both are absolute and normalised; pass real paths where links matter.
    An empty `directory` contains nothing.
    """
    base = directory.rstrip("/")
    return (
        bool(directory)
        and path.startswith(base)
        and path[len(base) : len(base) + 1] in ("", "/", os.sep)
    )


def find_program(name: str, search_path: str | None = None) -> str | None:
    """The path of a program for our own use; None where there is none.

    Folders that commands of the model can write are passed over: relative ones, and those of the
    project, such as `.venv/bin`. A program that was planted there would run unconfined.
    """
    if os.path.dirname(name):
        return name if os.access(name, os.X_OK) and os.path.isfile(name) else None
    from shutil import which

    path = os.environ.get("PATH", os.defpath) if search_path is None else search_path
    for folder in path.split(os.pathsep):
        if os.path.isabs(folder) and not _in_project(folder):
            found = which(name, path=folder)
            if found and not _in_project(os.path.realpath(found)):
                return found
    return None


def _in_project(path: str) -> bool:
    """Whether a path lies in the current folder; in a home folder only what is no setting."""
    project = os.path.realpath(os.getcwd())
    home = os.path.realpath(os.path.expanduser("~"))
    for spelling in {os.path.normpath(path), os.path.realpath(path)}:
        if is_below(home, project):
            # A workspace that holds the home folder: see `environments/confinement/policy.py`.
            below = os.path.relpath(spelling, home)
            if is_below(spelling, home) and not below.startswith("."):
                return True
        elif is_below(spelling, project):
            return True
    return False
