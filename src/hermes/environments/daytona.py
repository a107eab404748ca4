"""Daytona backend: sandboxes through its own library (the `daytona` extra)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.availability import require
from hermes.environments.cloud.provider import ListedSandbox, provider_errors
from hermes.environments.remote_shell.scripts import quote

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_CREATE_SECONDS = 120.0


class DaytonaProvider:
    """One sandbox. Without key and address the library finds them in the environment."""

    name = "daytona"

    def __init__(self, *, api_key: str = "", api_url: str = "") -> None:
        self._api_key = api_key
        self._api_url = api_url
        self._client: Any = None
        self._sandbox: Any = None

    def create(
        self, *, image: str, snapshot: str, seconds: float, labels: Mapping[str, str]
    ) -> None:
        """Start a sandbox; the service stops it after its lifetime without use."""
        sdk = require("daytona", extra="daytona")
        minutes = max(1, round(seconds / 60))
        common: dict[str, Any] = {
            "auto_stop_interval": minutes,
            "auto_delete_interval": minutes,
            "labels": dict(labels),
        }
        with provider_errors("create a sandbox", sdk.DaytonaError):
            if snapshot or not image:
                params = sdk.CreateSandboxFromSnapshotParams(snapshot=snapshot or None, **common)
            else:
                params = sdk.CreateSandboxFromImageParams(image=image, **common)
            self._sandbox = self._connected(sdk).create(params, timeout=_CREATE_SECONDS)

    def _connected(self, sdk: Any) -> Any:
        if self._client is None:
            given = {"api_key": self._api_key, "api_url": self._api_url}
            config = {name: value for name, value in given.items() if value}
            self._client = sdk.Daytona(sdk.DaytonaConfig(**config) if config else None)
        return self._client

    def run(self, command: str, *, seconds: float) -> str:
        """The output of a command there."""
        sdk = require("daytona", extra="daytona")
        with provider_errors("run a command", sdk.DaytonaError):
            # The shell there may be any; both streams come back in one.
            done = self._sandbox.process.exec(f"sh -c {quote(command)}", timeout=int(seconds) + 1)
        return str(done.result)

    def snapshot(self) -> str:
        """Save its disk under a new name."""
        sdk = require("daytona", extra="daytona")
        name = f"hermes-{os.urandom(8).hex()}"
        with provider_errors("take a snapshot", sdk.DaytonaError):
            self._sandbox.create_snapshot(name)
        return name

    def destroy(self) -> None:
        """Delete the sandbox."""
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            sdk = require("daytona", extra="daytona")
            with provider_errors("delete the sandbox", sdk.DaytonaError):
                self._client.delete(sandbox)

    def sandboxes(self) -> list[ListedSandbox]:
        """The sandboxes of the organisation, with their labels."""
        sdk = require("daytona", extra="daytona")
        with provider_errors("list the sandboxes", sdk.DaytonaError):
            listed = self._connected(sdk).list()
            return [ListedSandbox(str(one.id), one.labels or {}) for one in listed]

    def remove(self, id_: str) -> None:
        """Delete a listed sandbox."""
        sdk = require("daytona", extra="daytona")
        with provider_errors("delete a sandbox", sdk.DaytonaError):
            client = self._connected(sdk)
            client.delete(client.get(id_))
