"""`CloudEnvironment`: commands in a sandbox of a cloud service (Modal, Daytona, Vercel)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hermes.environments.cloud.provider import Lifecycle
from hermes.environments.cloud.relay import SandboxRelay
from hermes.environments.command import BackendError, Isolation
from hermes.environments.remote_shell.connection import Transport
from hermes.environments.remote_shell.remote_environment import RemoteShellEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes.environments.background import Background
    from hermes.environments.cloud.provider import Provider
    from hermes.environments.command import CommandRequest, CommandResult
    from hermes.environments.environment import SharedSettings


class CloudTransport(Transport):
    """The way into a sandbox: programs start through the relay."""

    start_seconds = 60.0
    terminal = "remote"
    ends_with_connection = False
    detachable = False

    def __init__(self, provider: Provider) -> None:
        self.name = provider.name
        self.label = f"the {provider.name} sandbox"
        self.relay = self.guardian = SandboxRelay(provider)
        # Called when the connection is closed.
        self.on_close: Callable[[], None] = lambda: None

    def prepare(self, task: str) -> None:
        """The lifecycle has made the sandbox."""

    def argv(self, words: Sequence[str], *, tty: bool = False, first: bool = False) -> list[str]:  # noqa: ARG002
        return list(words)

    def explain(self, errors: str, code: int | None) -> BackendError:
        """The error for a shell that did not start."""
        cause = " ".join(errors.split())[-300:] or f"exit code {code}"
        return BackendError(f"{self.label} gave no shell: {cause}", hint="Use another image.")

    def info(self) -> Isolation:
        """A machine of the service."""
        return Isolation(
            self.name,
            files="a machine of the service's",
            processes="a machine of the service's, ended with the task",
            memory="as the service limits it",
            not_enforced=("network: as the service has it",),
        )

    def close(self) -> None:
        self.on_close()


class CloudEnvironment(RemoteShellEnvironment):
    """Runs commands in a sandbox, which is made at the first one from the task's last snapshot."""

    def __init__(
        self,
        provider: Provider,
        cwd: str = "",
        *,
        image: str,
        lifetime: float = 3600.0,
        persistent: bool = True,
        shared: SharedSettings | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        transport = CloudTransport(provider)
        super().__init__(transport, cwd, shared=shared)
        self.label = f"{provider.name} {self._task}"
        self.idle_note = (
            f"the sandbox was ended after {self._idle.seconds / 60:.3g} minutes without use, "
            "and a new one was made from its last snapshot"
        )
        self._relay = transport.relay
        self._lifecycle = Lifecycle(
            provider,
            task=self._shared.task,
            image=image,
            seconds=lifetime,
            persistent=persistent,
            clock=clock,
            on_end=self._relay.reset,
        )
        transport.on_close = self._lifecycle.end

    def open(self) -> list[str]:
        """Make a sandbox and connect, if need be; notes for the model."""
        notes = self._lifecycle.open()
        reconnected = super().open()
        return notes or reconnected

    def processes(self) -> Sequence[Background]:
        """All background commands, and processes that commands left running; ended ones too."""
        if self._backgrounds.running():
            self._relay.refresh()
        return super().processes()

    def _run(self, request: CommandRequest) -> CommandResult:
        notes = self.open()
        limit = max(1.0, self._lifecycle.left - 1.0)
        limited = request.timeout is None or request.timeout > limit
        result = super()._run(request._replace(timeout=limit) if limited else request)
        if limited and result.timed_out:
            notes.append("it was stopped because the sandbox was about to end")
        result.notes[:0] = notes
        result.notes.extend(self._lifecycle.watch())
        return result
