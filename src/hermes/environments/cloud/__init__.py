"""Sandboxes of cloud services: a machine with a limited lifetime, saved by snapshots.

    provider.py            `Provider`: the operations of a service
    lifecycle.py           creation, snapshots and expiry of a task's sandbox
    shell_request.py       commands and output as one text each way
    cloud_background.py    background commands
    cloud_environment.py   `CloudEnvironment`, the same for all services

New here? Read provider.py, then cloud_environment.py.
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
