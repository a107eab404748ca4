"""Another host, by the OpenSSH client: one connection for a task, shared by all its shells.

    settings.py     which host, and how to get there
    link.py         the client's command line, and what its complaints mean
    environment.py  `SshEnvironment`

New here? Read `hermes.environments.far` first.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.environments.ssh.environment import SshEnvironment
    from hermes.environments.ssh.link import socket_path
    from hermes.environments.ssh.settings import SshSettings

__all__ = ["SshEnvironment", "SshSettings", "socket_path"]

__getattr__ = names_from(
    __name__,
    {
        "SshEnvironment": "environment",
        "SshSettings": "settings",
        "socket_path": "link",
    },
)
