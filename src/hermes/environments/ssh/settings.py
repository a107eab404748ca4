"""Which host, and how to get there; checked before the first connection."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hermes.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

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
        # A name that begins with a dash would be an option.
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
        """The same from settings, by their names below `terminal.ssh`."""
        defaults: dict[str, Any] = {
            "host": "", "user": "", "port": 0, "identity_file": "", "config_file": "",
            "known_hosts_file": "", "accept_new_hosts": False, "multiplex": True,
            "start_seconds": START_SECONDS,
        }  # fmt: skip
        given = {name: setting(f"terminal.ssh.{name}", value) for name, value in defaults.items()}
        return cls(**{**given, "port": given["port"] or None})

    @property
    def label(self) -> str:
        """The place as a person would write it."""
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port else ""
        return f"{user}{self.host}{port}"


def _file(path: str, name: str) -> str:
    found = os.path.expanduser(path)
    if found and not os.path.isfile(found):
        raise ConfigError(f"{found} is no file", hint=f"Change terminal.ssh.{name}.")
    return found
