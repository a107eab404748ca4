"""Sandboxes of cloud services: a machine with a limited lifetime, saved by snapshots.

    provider.py            `Provider`: the operations of a service; creation, snapshots, expiry
    relay.py               programs there with pipes here, as the remote shell needs them
    cloud_environment.py   `CloudEnvironment`: the transport, the same for all services

New here? Read provider.py, then relay.py.
"""
