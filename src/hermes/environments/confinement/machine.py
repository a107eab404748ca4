"""`ConfinedMachine`: this machine with the rights of commands limited by the operating system.

The best mechanism that works here is chosen at the first command:

    bubblewrap   mount, process and user namespaces
    landlock     rules of the kernel on files, signals and sockets (Linux 5.13 or newer)
    seatbelt     profiles of `sandbox-exec` (macOS; never run by our tests)
    none         commands have all rights of the user; every surface says so
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes.core.errors import UnavailableError
from hermes.core.paths import find_program, home_path, write_private
from hermes.environments.command import BackendError
from hermes.environments.host.host_environment import LocalHost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.environments.confinement.policy import Plan, Settings
    from hermes.environments.confinement.proxy import HostProxy
    from hermes.environments.host.guardian_client import GuardianClient

MECHANISMS = ("bubblewrap", "landlock", "seatbelt")


class ConfinedMachine(LocalHost):
    """Starts the commands of one task confined; nothing is started before the first one."""

    def __init__(
        self,
        workspace: str,
        settings: Settings,
        *,
        task: str,
        mechanisms: Sequence[str] = MECHANISMS,
    ) -> None:
        self.workspace = workspace
        self.settings = settings.checked()
        self._task = task
        self._mechanisms = mechanisms
        self._guardian: GuardianClient | None = None
        # All that were started; each serves the commands that it started.
        self._confined: list[GuardianClient] = []
        self._lock = threading.RLock()
        self._temporary = ""
        self.plan: Plan | None = None
        # Between commands and the hosts that they may reach.
        self.proxy: HostProxy | None = None

    @property
    def wanted(self) -> bool:
        """Whether the settings ask for confinement."""
        return self.settings.mode != "off"

    @property
    def mechanism(self) -> str:
        """How commands are confined; empty where they are not."""
        if self.settings.mode == "off":
            return ""
        return next((name for name in self._mechanisms if not obstacle(name)), "")

    @property
    def failures(self) -> list[str]:
        """Why better mechanisms are not used."""
        found = []
        for name in self._mechanisms:
            reason = obstacle(name)
            if not reason:
                break
            found.append(f"{name}: {reason}")
        return found

    @property
    def guardian(self) -> GuardianClient:
        """The confined guardian, or the plain one where nothing can confine."""
        with self._lock:
            if self._guardian is None:
                self._guardian = self._start()
            return self._guardian

    def refresh(self) -> None:
        """Start the next command in a new confinement if secrets have come to be since the last.

        Commands that run already keep theirs.
        """
        from hermes.environments.confinement import policy

        with self._lock:
            if self.plan is not None and self._guardian is not None and policy.is_stale(self.plan):
                self._guardian = None

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder, as commands see it."""
        look = getattr(self.guardian, "is_folder", None)
        return bool(look(path)) if look else os.path.isdir(path)

    def variables(self, pass_env: Sequence[str]) -> dict[str, str]:
        """The allow-list, what is named, and the task's own temporary folder."""
        assert self.guardian  # makes the plan
        allowed = self.plan.variables if self.plan else ()
        return {**super().variables([*pass_env, *allowed]), **self.own_variables()}

    def own_variables(self) -> dict[str, str]:
        """Variables that every confined program needs."""
        assert self.guardian  # makes the temporary folder
        if not self.mechanism:
            return {}
        own = self.mechanism == "bubblewrap"
        found = {"TMPDIR": "/tmp" if own else self._temporary}
        if self.proxy is not None:
            address = f"http://127.0.0.1:{self.proxy.port}"
            for name in ("http_proxy", "https_proxy", "all_proxy"):
                found[name] = found[name.upper()] = address
            # Servers of the task itself are reached at once where it has a network of its own.
            found["no_proxy"] = found["NO_PROXY"] = "localhost,127.0.0.1,::1" if own else ""
            found["NODE_USE_ENV_PROXY"] = "1"
        return found

    def shared_folder(self) -> tuple[str, str]:
        """A folder that commands of the task can reach: its path here, and its path for them."""
        assert self.guardian  # makes the temporary folder
        if not self._temporary:
            self._temporary = temporary_folder()
            weakref.finalize(self, _remove, self._temporary, os.getpid())
        folder = os.path.join(self._temporary, "shared")
        os.makedirs(folder, 0o700, exist_ok=True)
        return folder, "/tmp/shared" if self.mechanism == "bubblewrap" else folder

    def close(self) -> None:
        """End the confined guardian with everything it started; remove the temporary folder."""
        self._guardian = None
        proxy, self.proxy = self.proxy, None
        if proxy is not None:
            proxy.close()
        while self._confined:
            self._confined.pop().close()
        if self._temporary:
            _remove(self._temporary, os.getpid())
            self._temporary = ""

    def _start(self) -> GuardianClient:
        mechanism = self.mechanism
        if not mechanism:
            if self.settings.mode == "on":
                raise UnavailableError(
                    f"commands can't be confined here: {'; '.join(self.failures)}",
                    hint="Install bubblewrap, or set terminal.confine.mode to auto.",
                )
            return super().guardian
        if mechanism == "bubblewrap":
            # It starts bubblewrap, and starts up itself while the plan is made.
            super().guardian.open()
        if not self._temporary:
            self._temporary = temporary_folder()
            weakref.finalize(self, _remove, self._temporary, os.getpid())
        for last in (False, True):
            guardian = self._planned(mechanism)
            try:
                guardian.open()
            except (UnavailableError, BackendError) as error:
                if not last:
                    continue  # a file that is to be hidden may have gone since the plan was made
                # It worked once since the machine was started. This command was judged as a
                # confined one, so it must not go on without; the next is judged by what works then.
                _forget(mechanism, str(error))
                raise
            break
        self._confined.append(guardian)
        return guardian

    def _planned(self, mechanism: str) -> GuardianClient:
        """A guardian by a new plan, not started yet."""
        from hermes.environments.confinement import confined_guardian, policy
        from hermes.environments.confinement.landlock import CONNECT_ABI, abi

        self.plan = policy.plan(self.workspace, self._temporary, self.settings)
        if self.plan.network != "open" and mechanism == "landlock" and abi() < CONNECT_ABI:
            raise UnavailableError(
                f"terminal.confine.network can't be {self.plan.network} here: before Linux 6.7 "
                "Landlock has no rules for the network",
                hint="Install bubblewrap, or set it to open.",
            )
        if self.plan.network == "hosts":
            from hermes.environments.confinement.proxy import HostProxy

            if self.proxy is None:
                self.proxy = HostProxy(self.settings.hosts)
                if mechanism != "bubblewrap":
                    self.proxy.listen()
            self.plan.forwards = self.proxy.forwards
            self.plan.proxy_port = 0 if mechanism == "bubblewrap" else self.proxy.port
        return confined_guardian.guardian_for(
            mechanism, self.plan, task=self._task, proxy=self.proxy
        )


def obstacle(mechanism: str) -> str:
    """Why a mechanism can't be used on this machine; empty where it can. Tried once a program."""
    if mechanism not in _obstacles:
        if mechanism == "bubblewrap":
            reason = _no_bubblewrap()
        elif mechanism == "landlock":
            from hermes.environments.confinement import landlock

            works = sys.platform == "linux" and landlock.abi()
            reason = "" if works else "this kernel has no Landlock"
        else:
            reason = "" if sys.platform == "darwin" else "it needs macOS"
        _obstacles[mechanism] = reason
    return _obstacles[mechanism]


_obstacles: dict[str, str] = {}


def _forget(mechanism: str, reason: str) -> None:
    _obstacles[mechanism] = reason
    with suppress(OSError):
        os.unlink(home_path("cache", "bubblewrap"))


def _no_bubblewrap() -> str:
    """Whether it works is remembered until the machine starts again or the program changes."""
    program = find_program("bwrap") if sys.platform == "linux" else None
    if program is None:
        return "it is not installed" if sys.platform == "linux" else "it needs Linux"
    status = os.stat(program)
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        key = f"{file.read().strip()} {os.getuid()} {program} {status.st_ino} {status.st_mtime_ns}"
    cache = home_path("cache", "bubblewrap")
    with suppress(OSError, UnicodeDecodeError), open(cache, encoding="utf-8") as file:
        if file.read() == key:
            return ""
    reason = _try_bubblewrap(program)
    if not reason:
        with suppress(OSError):
            write_private(cache, key.encode())
    return reason


def _try_bubblewrap(program: str) -> str:
    import subprocess

    user = [] if os.getuid() == 0 else ["--unshare-user"]
    words = [program, *user, "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    try:
        tried = subprocess.run(words, capture_output=True, timeout=10, cwd="/", check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if tried.returncode == 0 else tried.stderr.decode("utf-8", "replace").strip()[-200:]


def _remove(folder: str, owner: int) -> None:
    import shutil

    if os.getpid() != owner:
        return  # a fork of the program that uses it
    for suffix in ("", ".masked"):
        shutil.rmtree(folder + suffix, ignore_errors=True)


def temporary_folder() -> str:
    """A new private folder, named by our process; those of programs that ended are removed."""
    import shutil
    import tempfile

    base = os.path.realpath(tempfile.gettempdir())
    prefix = f"hermes-{os.getuid() if hasattr(os, 'getuid') else 0}-"
    with suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            pid = entry.name.removeprefix(prefix).partition("-")[0]
            if entry.name.startswith(prefix) and pid.isdecimal() and not _alive(int(pid)):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    with suppress(OSError):
                        os.unlink(entry.path)
    return tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=base)


def _alive(pid: int) -> bool:
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
