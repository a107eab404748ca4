"""Commands through a remote shell: another host, a container.

    connection.py           `Transport`, the way to a remote; all open shells to it
    frames.py               one open shell; messages marked off from output
    scripts.py              the shell scripts that run there
    run.py                  one command in a worker shell, until its end
    remote_background.py    a background command
    remote_environment.py   `RemoteShellEnvironment`, base class of the backends

One remote shell, the guard, watches over the others: when Hermes ends for any reason, the guard's
stdin ends, and it stops all processes with the task's mark. Commands run in worker shells, which
are reused.

New here? Read scripts.py, then connection.py.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.environments.remote_shell.connection import Transport
    from hermes.environments.remote_shell.remote_environment import RemoteShellEnvironment

__all__ = ["RemoteShellEnvironment", "Transport"]

__getattr__ = names_from(
    __name__,
    {
        "RemoteShellEnvironment": "remote_environment",
        "Transport": "connection",
    },
)
