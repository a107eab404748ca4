"""SSH backend: settings, the multiplexed OpenSSH connection, `SshEnvironment`."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes.core.errors import ConfigError, UnavailableError
from hermes.core.paths import find_program
from hermes.environments.command import BackendError, Isolation
from hermes.environments.remote_shell.connection import Transport
from hermes.environments.remote_shell.remote_environment import RemoteShellEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from hermes.environments.environment import SharedSettings


START_SECONDS = 20.0
_HOST = re.compile(r"[A-Za-z0-9_.:%\[\]-]{1,255}")
_USER = re.compile(r"[A-Za-z0-9_.@\\+-]{1,64}\$?")


class SshSettings:
    """A host by name, address or alias of the client's own configuration."""

    def __init__(
        self,
        host: str,
        *,
        user: str = "",
        port: int | None = None,
        identity_file: str = "",
        config_file: str = "",
        known_hosts_file: str = "",
        accept_new_hosts: bool = False,
        multiplex: bool = True,
        start_seconds: float = START_SECONDS,
    ) -> None:
        if "@" in host and not user:
            user, _, host = host.rpartition("@")
        # A leading dash would make it an option.
        if not _HOST.fullmatch(host) or host.startswith("-"):
            raise ConfigError(f"{host!r:.80} is no host", hint="Set terminal.ssh.host.")
        if user and (not _USER.fullmatch(user) or user.startswith("-")):
            raise ConfigError(f"{user!r:.80} is no user", hint="Set terminal.ssh.user.")
        if port is not None and not 0 < port < 65_536:
            raise ConfigError(f"{port} is no port", hint="Set terminal.ssh.port.")
        self.host = host
        self.user = user
        self.port = port
        self.identity_file = _file(identity_file, "identity_file")
        self.config_file = _file(config_file, "config_file")
        # Made by the client when it learns a new host.
        self.known_hosts_file = os.path.expanduser(known_hosts_file)
        self.accept_new_hosts = accept_new_hosts
        self.multiplex = multiplex
        self.start_seconds = start_seconds

    @classmethod
    def read(cls, setting: Callable[[str, Any], Any]) -> SshSettings:
        """From the settings below `terminal.ssh`."""
        defaults: dict[str, Any] = {
            "host": "", "user": "", "port": 0, "identity_file": "", "config_file": "",
            "known_hosts_file": "", "accept_new_hosts": False, "multiplex": True,
            "start_seconds": START_SECONDS,
        }  # fmt: skip
        given = {name: setting(f"terminal.ssh.{name}", value) for name, value in defaults.items()}
        return cls(**{**given, "port": given["port"] or None})

    @property
    def label(self) -> str:
        """`user@host:port`."""
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port else ""
        return f"{user}{self.host}{port}"


def _file(path: str, name: str) -> str:
    found = os.path.expanduser(path)
    if found and not os.path.isfile(found):
        raise ConfigError(f"{found} is no file", hint=f"Change terminal.ssh.{name}.")
    return found


# A socket path is limited to 104 bytes, and the client adds 17 while it makes one.
LONGEST_SOCKET = 84

# (text in the client's message, its meaning, advice)
_COMPLAINTS = (
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", "the host's key is another than it was",
     "Find out why; if it is right, remove the old key with ssh-keygen -R."),
    ("Host key verification failed", "the host is not known, or its key has changed",
     "Connect once by hand to check and accept its key, or set terminal.ssh.accept_new_hosts."),
    ("No matching host key", "the host is not known",
     "Connect once by hand to check and accept its key."),
    ("Permission denied", "the host refuses the login",
     "Passwords are not asked for: set up a key (ssh-copy-id) or an agent."),
    ("Too many authentication failures", "the host refuses the login",
     "Name the right key in terminal.ssh.identity_file."),
    ("Could not resolve", "the host name was not found", "Check the name."),
    ("Name or service not known", "the host name was not found", "Check the name."),
    ("Connection refused", "nothing listens on that port", "Is sshd running there?"),
    ("No route to host", "the host can't be reached", "Check the network."),
    ("Network is unreachable", "the host can't be reached", "Check the network."),
    ("timed out", "the host does not answer", "Check the network, the port and firewalls."),
    ("Connection closed", "the host closed the connection", "Look at the log of sshd there."),
    ("Connection reset", "the host closed the connection", "Look at the log of sshd there."),
    ("UNPROTECTED PRIVATE KEY", "others can read the private key", "Run chmod 600 on it."),
    ("account is currently not available", "the account there has no shell", "Use another."),
)  # fmt: skip


def socket_path(label: str) -> str:
    """A path for the socket of a shared connection: short for every host name."""
    from hashlib import sha256

    owner = os.getuid() if hasattr(os, "getuid") else 0
    salted = f"{label}\0{os.getpid()}\0{os.urandom(8).hex()}"
    name = sha256(salted.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    for folder in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):
        if not folder:
            continue
        path = os.path.join(folder, f"hermes-{owner}", name)
        if len(os.fsencode(path)) <= LONGEST_SOCKET:
            return path
    return path


class SshTransport(Transport):
    """The way to a host: the first connection is shared by the others."""

    persistent = True

    def __init__(self, settings: SshSettings) -> None:
        self._settings = settings
        self.label = settings.label
        self.start_seconds = settings.start_seconds
        self._program = ""
        self._socket = ""

    def prepare(self, task: str) -> None:  # noqa: ARG002
        """Find the client, and a private folder for the socket."""
        found = find_program("ssh")
        if found is None:
            raise UnavailableError("there is no ssh here", hint="Install the OpenSSH client.")
        self._program = found
        self._socket = ""
        if self._settings.multiplex and os.name == "posix":
            path = socket_path(self.label)
            if _private_folder(os.path.dirname(path)):
                self._socket = path

    def argv(self, words: Sequence[str], *, tty: bool = False, first: bool = False) -> list[str]:
        """The client's command line."""
        settings = self._settings
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "accept-new" if settings.accept_new_hosts else "yes",
            "ConnectTimeout": str(max(1, int(settings.start_seconds) - 1)),
            "ConnectionAttempts": "1",
            "ServerAliveInterval": "15",
            "ServerAliveCountMax": "3",
            "ForwardAgent": "no",
            "ForwardX11": "no",
            "ClearAllForwardings": "yes",
            "PermitLocalCommand": "no",
            "RemoteCommand": "none",
            "EscapeChar": "none",
            "RequestTTY": "force" if tty else "no",
            "LogLevel": "ERROR",
            # Without a usable socket the client makes a connection of its own.
            "ControlPath": self._socket or "none",
            "ControlMaster": "yes" if first and self._socket else "no",
            "ControlPersist": "no",
        }
        if settings.known_hosts_file:
            options["UserKnownHostsFile"] = settings.known_hosts_file
        if settings.identity_file:
            options["IdentityFile"] = settings.identity_file
            options["IdentitiesOnly"] = "yes"
        argv = [self._program]
        if settings.config_file:
            argv += ["-F", settings.config_file]
        for name, value in options.items():
            argv += ["-o", f"{name}={value}"]
        if settings.user:
            argv += ["-l", settings.user]
        if settings.port is not None:
            argv += ["-p", str(settings.port)]
        # `exec` replaces the login shell.
        return [*argv, "--", settings.host, "exec", *words]

    def explain(self, errors: str, code: int | None) -> BackendError:
        """The error for a shell that did not start, with a command to check."""
        check = f"ssh -o BatchMode=yes {self._by_hand()} true"
        for words, meaning, advice in _COMPLAINTS:
            if words.lower() in errors.lower():
                return BackendError(
                    f"{self.label} can't be used: {meaning}", hint=f"{advice} To check: {check}"
                )
        if code is None:
            meaning = f"no answer within {self.start_seconds:g} s"
        else:
            meaning = " ".join(errors.split())[-300:] or f"ssh ended with {code}"
        return BackendError(f"{self.label} can't be used: {meaning}", hint=f"To check: {check}")

    def info(self) -> Isolation:
        """Another host: only the rights of its user limit a command."""
        return Isolation(
            "ssh",
            files="another host's; this machine's can't be reached",
            processes="every process is owned by its task and ended with it",
            not_enforced=(
                f"on {self.label} a command has all rights of its user",
                "memory",
                "a process that clears its environment and leaves its session is not found again",
            ),
        )

    def close(self) -> None:
        """Remove the socket."""
        if self._socket:
            with suppress(OSError):
                os.unlink(self._socket)

    def _by_hand(self) -> str:
        settings = self._settings
        words = [f"-p {settings.port}"] if settings.port else []
        words += [f"-i {settings.identity_file}"] if settings.identity_file else []
        words += [f"-F {settings.config_file}"] if settings.config_file else []
        user = f"{settings.user}@" if settings.user else ""
        return " ".join([*words, f"{user}{settings.host}"])


def _private_folder(folder: str) -> bool:
    """Whether a private folder exists or could be made; otherwise connections are not shared."""
    with suppress(OSError):
        os.mkdir(folder, 0o700)
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return os.path.isdir(folder) and found.st_uid == os.getuid() and not found.st_mode & 0o077


class SshEnvironment(RemoteShellEnvironment):
    """Runs commands on a host; the first command connects."""

    def __init__(
        self,
        settings: SshSettings,
        cwd: str = "",
        *,
        shared: SharedSettings | None = None,
    ) -> None:
        super().__init__(SshTransport(settings), cwd, shared=shared)
