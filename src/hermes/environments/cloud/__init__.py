"""Sandboxes of cloud services: a machine with an end, kept safe by snapshots.

    provider.py        what a service has to offer: `Provider`
    deadline.py        how much of a sandbox's life is left
    saved.py           the last snapshot of a task, remembered on disk
    wrapping.py        commands and what comes of them, as one text there and one back
    environment.py     `CloudEnvironment`, the same for all services

    modal.py, daytona.py, vercel.py     the services, by their own libraries (extras)

New here? Read provider.py, then environment.py.
"""

from hermes.environments.cloud.environment import CloudEnvironment
from hermes.environments.cloud.provider import Provider, provider_of

__all__ = ["CloudEnvironment", "Provider", "provider_of"]
