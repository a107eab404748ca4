"""Vercel backend: sandboxes through its own library (the `vercel` extra)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hermes.core.availability import require
from hermes.environments.cloud.provider import ListedSandbox, provider_errors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class VercelProvider:
    """One sandbox. Without a token the library finds one in the environment."""

    name = "vercel_sandbox"

    def __init__(
        self, *, token: str = "", team_id: str = "", project_id: str = "", base_url: str = ""
    ) -> None:
        self._credentials = {"token": token, "team_id": team_id, "project_id": project_id}
        self._base_url = base_url
        self._client: Any = None
        self._sandbox: Any = None

    def create(
        self, *, image: str, snapshot: str, seconds: float, labels: Mapping[str, str]
    ) -> None:
        """Start a sandbox that the service stops after its lifetime."""
        sdk = _sdk()
        with provider_errors("create a sandbox", *_errors()):
            given: dict[str, Any] = {"execution_time_limit": seconds, "tags": dict(labels)}
            if snapshot:
                given["source"] = sdk.SnapshotSource(snapshot_id=snapshot)
            elif image:
                given["image"] = image
            self._sandbox = self._connected(sdk).create_sandbox(**given)

    def _connected(self, sdk: Any) -> Any:
        if self._client is None:
            self._client = sdk.SyncSandboxClient.create(options=self._options(sdk))
        return self._client

    def _options(self, sdk: Any) -> Any:
        given: dict[str, Any] = {}
        if self._base_url:
            given["base_url"] = self._base_url
        if self._credentials["token"]:
            given["credentials_factory"] = lambda: sdk.SandboxCredentials(**self._credentials)
        return sdk.SandboxServiceOptions(**given) if given else None

    def run(self, command: str, *, seconds: float) -> str:
        """The output of a command there."""
        with provider_errors("run a command", *_errors()):
            # Left to itself the library would print to our own terminal.
            done = self._sandbox.run_process(
                "sh", ["-c", command], capture_output=True, kill_after=seconds
            )
        return f"{done.stderr or ''}{done.stdout or ''}"

    def snapshot(self) -> str:
        """Save its disk. The service stops the sandbox for that; the next command resumes it."""
        with provider_errors("take a snapshot", *_errors()):
            return str(self._sandbox.snapshot().id)

    def destroy(self) -> None:
        """Delete the sandbox, and leave its snapshots."""
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            with provider_errors("delete the sandbox", *_errors()):
                sandbox.destroy()
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def sandboxes(self) -> list[ListedSandbox]:
        """The sandboxes of the project, with their tags."""
        with provider_errors("list the sandboxes", *_errors()):
            listed = self._connected(_sdk()).query_sandboxes()
            return [ListedSandbox(one.name, dict(one.tags or {})) for one in listed]

    def remove(self, id_: str) -> None:
        """Delete a listed sandbox."""
        with provider_errors("delete a sandbox", *_errors()):
            self._connected(_sdk()).get_sandbox(name=id_).destroy()


def _sdk() -> Any:
    return require("vercel.sandbox.sync", extra="vercel")


def _errors() -> tuple[type[Exception], ...]:
    """The exceptions of the library and of its HTTP client."""
    clients = [sys.modules.get(name) for name in ("httpx2", "httpx")]
    return (_sdk().SandboxError, *(client.HTTPError for client in clients if client is not None))
