"""Modal backend: sandboxes through its own library (the `modal` extra)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.availability import require
from hermes.environments.cloud.provider import ListedSandbox, provider_errors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class ModalProvider:
    """One sandbox. The library finds its token in the environment or in its own file."""

    name = "modal"

    def __init__(self, *, app: str = "hermes") -> None:
        self._app = app
        self._sandbox: Any = None

    def create(
        self, *, image: str, snapshot: str, seconds: float, labels: Mapping[str, str]
    ) -> None:
        """Start a sandbox that the service ends after its lifetime."""
        sdk = _sdk()
        with provider_errors("create a sandbox", sdk.exception.Error):
            app = sdk.App.lookup(self._app, create_if_missing=True)
            if snapshot or image.startswith("im-"):
                source = sdk.Image.from_id(snapshot or image)
            else:
                source = sdk.Image.from_registry(image) if image else sdk.Image.debian_slim()
            self._sandbox = sdk.Sandbox.create(
                app=app, image=source, timeout=max(1, int(seconds)), tags=dict(labels)
            )

    def run(self, command: str, *, seconds: float) -> str:
        """The output of a command there."""
        with provider_errors("run a command", _sdk().exception.Error):
            process = self._sandbox.exec("sh", "-c", command, timeout=int(seconds) + 1)
            printed = process.stdout.read()
            process.wait()
        return str(printed)

    def snapshot(self) -> str:
        """Save its disk as an image."""
        with provider_errors("take a snapshot", _sdk().exception.Error):
            return str(self._sandbox.snapshot_filesystem().object_id)

    def destroy(self) -> None:
        """Terminate the sandbox."""
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            with provider_errors("end the sandbox", _sdk().exception.Error):
                sandbox.terminate()

    def sandboxes(self) -> list[ListedSandbox]:
        """The sandboxes of the app, with their tags."""
        sdk = _sdk()
        with provider_errors("list the sandboxes", sdk.exception.Error):
            app = sdk.App.lookup(self._app, create_if_missing=True)
            listed = sdk.Sandbox.list(app_id=app.app_id)
            return [ListedSandbox(one.object_id, one.get_tags()) for one in listed]

    def remove(self, id_: str) -> None:
        """Terminate a listed sandbox."""
        sdk = _sdk()
        with provider_errors("end a sandbox", sdk.exception.Error):
            sdk.Sandbox.from_id(id_).terminate()


def _sdk() -> Any:
    return require("modal", extra="modal")
