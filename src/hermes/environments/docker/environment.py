"""`DockerEnvironment`: commands in a container of their own."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes.environments.docker.complaints import ContainerGoneError
from hermes.environments.docker.link import DockerLink
from hermes.environments.docker.settings import DockerSettings, workspace_of
from hermes.environments.far import FarEnvironment
from hermes.environments.far.channel import BrokenChannelError
from hermes.environments.far.scripts import quoted
from hermes.environments.shared_folder import SharedFolderDisk
from hermes.environments.sharing import Shared

if TYPE_CHECKING:
    from hermes.environments.order import Order
    from hermes.environments.results import CommandResult
    from hermes.environments.shell_disk import ShellDisk

_KILLED = 137


class DockerEnvironment(FarEnvironment):
    """Runs commands in one container, which is started with the first of them.

    The workspace is mounted under its own name, so that a path means the same inside and out.
    Raises `ConfigError` at once for what can't be.
    """

    def __init__(
        self,
        cwd: str = "",
        settings: DockerSettings | None = None,
        *,
        shared: Shared | None = None,
    ) -> None:
        settings = settings or DockerSettings()
        shared = shared or Shared()
        self.workspace = workspace_of(cwd or os.getcwd()) if settings.mount_workspace else ""
        self._container = DockerLink(settings, workspace=self.workspace, task=shared.task)
        super().__init__(
            self._container,
            self.workspace or cwd or "/",
            shared=shared,
        )
        # Whether what is written to the workspace inside is seen out here.
        self.persistent: bool | None = None
        self._probed = 0
        self._killed = 0

    @property
    def disk(self) -> ShellDisk | SharedFolderDisk:
        """The files inside; those of the workspace are reached from here where they are here."""
        self.open()
        if self.persistent:
            return SharedFolderDisk(self.workspace, self.workspace, self._disk)
        return self._disk

    def open(self) -> list[str]:
        """Start the container, if need be; what there is to say of that."""
        notes = super().open()
        if self._probed != self._container.count:
            self._probed = self._container.count
            self._killed = self._out_of_memory()
            self._probe()
            if not self.persistent:
                notes.append(
                    "the workspace is not persistent: what is written inside is not seen outside, "
                    "and goes with the container"
                )
        return notes

    def _run(self, order: Order) -> CommandResult:
        try:
            result = super()._run(order)
        except ContainerGoneError:
            self._connection.drop()
            result = super()._run(order)
            result.notes.append(self._anew)
        if result.exit_code == _KILLED:
            killed = self._out_of_memory()
            if killed > self._killed:
                limit = self._container.settings.memory // 1_000_000
                result.notes.append(f"it was killed: out of memory (the limit is {limit} MB)")
            self._killed = max(killed, self._killed)
        return result

    def run_script(self, text: str, data: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run a script of ours there: its exit code, standard output and standard error."""
        try:
            return super().run_script(text, data)
        except ContainerGoneError:
            self._connection.drop()
            return super().run_script(text, data)

    def _probe(self) -> None:
        """Find out whether the workspace inside is the one out here."""
        self.persistent = False
        if not self.workspace:
            return
        word = os.urandom(8).hex()
        place = os.path.join(self.workspace, f".hermes-probe-{word}")
        with suppress(BrokenChannelError, OSError):
            self._connection.ask(f"echo {word} >{quoted(place)}")
            try:
                with open(place, encoding="ascii") as file:
                    self.persistent = file.read().strip() == word
            finally:
                self._connection.ask(f"rm -f {quoted(place)}")

    def _out_of_memory(self) -> int:
        """How often something in the container was killed for want of memory."""
        try:
            said = self._connection.ask(
                "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control "
                "2>/dev/null"
            )
        except BrokenChannelError:
            return 0
        for line in said.splitlines():
            words = line.split()
            if len(words) == 2 and words[0] == b"oom_kill":
                return int(words[1])
        return 0
