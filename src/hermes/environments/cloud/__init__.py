"""Sandboxes of cloud services: a machine with a limited lifetime, saved by snapshots.

    provider.py            `Provider`: the operations of a service
    lifecycle.py           creation, snapshots and expiry of a task's sandbox
    relay.py               programs there with pipes here, as the remote shell needs them
    cloud_environment.py   `CloudEnvironment`: the transport, the same for all services

New here? Read provider.py, then relay.py.
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
