"""`Provider` protocol: create, run, snapshot and delete a sandbox of a cloud service."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from hermes.environments.command import BackendError
from hermes.environments.owner_labels import is_stale

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any


class ProviderError(BackendError):
    """The service refused or failed; the message has its own text."""


class Provider(Protocol):
    """One sandbox at a time of one service. Failures are `ProviderError`."""

    # For people and for the names of files: `modal`, `daytona`, `vercel_sandbox`.
    name: str

    def create(
        self, *, image: str, snapshot: str, seconds: float, labels: Mapping[str, str]
    ) -> None:
        """Start a sandbox with a lifetime, from a snapshot if one is given."""
        ...

    def run(self, command: str, *, seconds: float) -> str:
        """The output of `sh -c COMMAND` there, which is plain ASCII."""
        ...

    def snapshot(self) -> str:
        """Take a snapshot of its disk; the name to start from."""
        ...

    def destroy(self) -> None:
        """End the sandbox, if there is one."""
        ...

    def sandboxes(self) -> list[ListedSandbox]:
        """All sandboxes at the service, with their labels."""
        ...

    def remove(self, id_: str) -> None:
        """End a listed sandbox."""
        ...


class ListedSandbox(NamedTuple):
    """A sandbox at a service."""

    id: str
    labels: Mapping[str, str]


def prune(provider: Provider) -> list[str]:
    """End orphaned sandboxes; their ids. Raises `ProviderError`."""
    stale = [one.id for one in provider.sandboxes() if is_stale(one.labels)]
    for id_ in stale:
        provider.remove(id_)
    return stale


def provider_of(name: str, setting: Callable[[str, Any], Any]) -> Provider:
    """The provider of a name, with its settings below `terminal.NAME`."""
    if name == "modal":
        from hermes.environments.modal import ModalProvider

        return ModalProvider(app=setting("terminal.modal.app", "hermes"))
    if name == "daytona":
        from hermes.environments.daytona import DaytonaProvider

        return DaytonaProvider(api_url=setting("terminal.daytona.api_url", ""))
    from hermes.environments.vercel import VercelProvider

    return VercelProvider(base_url=setting("terminal.vercel_sandbox.base_url", ""))


@contextmanager
def provider_errors(doing: str, *theirs: type[Exception]) -> Iterator[None]:
    """Raise the errors of a library or of the network as `ProviderError`."""
    expected: tuple[type[Exception], ...] = (*theirs, OSError, ValueError)
    try:
        yield
    except expected as error:
        said = " ".join(str(error).split())[:300] or type(error).__name__
        raise ProviderError(
            f"the service could not {doing}: {said}", hint="Check its status page and the token."
        ) from error
