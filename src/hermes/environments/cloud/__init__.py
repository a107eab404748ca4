"""Sandboxes of cloud services: a machine with an end, kept safe by snapshots.

    provider.py        what a service has to offer: `Provider`
    deadline.py        how much of a sandbox's life is left
    life.py            one sandbox after the other, saved before its end
    saved.py           the last snapshot of a task, remembered on disk
    shell.py           what the shell there is asked
    wrapping.py        commands and what comes of them, as one text there and one back
    live.py            what a command prints, shown while it runs
    starting.py        a command beside others; background.py: whose log is a file there
    environment.py     `CloudEnvironment`, the same for all services

    modal.py, daytona.py, vercel.py     the services, by their own libraries (extras)

New here? Read provider.py, then environment.py.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.environments.cloud.cloud_environment import CloudEnvironment
    from hermes.environments.cloud.provider import Provider, provider_of

__all__ = ["CloudEnvironment", "Provider", "provider_of"]

__getattr__ = names_from(
    __name__,
    {
        "CloudEnvironment": "cloud_environment",
        "Provider": "provider",
        "provider_of": "provider",
    },
)
