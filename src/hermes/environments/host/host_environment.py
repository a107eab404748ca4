"""`LocalEnvironment`: commands on this machine; its base class serves the sandbox too."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Protocol

from hermes.core.errors import ToolError
from hermes.core.paths import MARK
from hermes.environments.background import MAX_LEFT_RUNNING, Background, stop_excess
from hermes.environments.command import (
    HEAD,
    Collector,
    CommandRequest,
    CommandResult,
    Isolation,
    encode_text,
    inherited_variables,
)
from hermes.environments.command_wait import follow
from hermes.environments.disk.local_disk import LocalDisk
from hermes.environments.environment import Environment
from hermes.environments.host.guardian_client import guardian
from hermes.environments.host.launch import Launcher, plain_argv, search, shell, start_error
from hermes.environments.host.process import Poller, Process, run_to_end

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hermes.core.context import Cancellation
    from hermes.environments.command_wait import WaitOutcome
    from hermes.environments.disk.protocol import Disk
    from hermes.environments.environment import SharedSettings
    from hermes.environments.host.guardian_client import GuardianClient

# Between SIGTERM and SIGKILL for what a program left running.
_LEFT_GRACE = 0.2
_LOW_SPACE = 200 * 1024 * 1024
_LOW_SHARE = 0.01
# A background command that uses more of a core than this, for so long, gets a note.
BUSY_SHARE = 0.9
BUSY_SECONDS = 30.0


class Host(Protocol):
    """Where commands start: this machine, or a sandbox on it."""

    @property
    def guardian(self) -> GuardianClient:
        """The guardian that starts and ends commands there."""
        ...

    def shell(self) -> tuple[bytes, bool]:
        """The path of the shell, and whether it is bash."""
        ...

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder."""
        ...

    def variables(self, pass_env: Sequence[str]) -> dict[str, str]:
        """The variables of this program that commands inherit."""
        ...

    def plain(self, command: str, variables: Mapping[str, str]) -> tuple[bytes, list[bytes]] | None:
        """Path and arguments of a command that needs no shell; None if unsure."""
        ...


class LocalHost:
    """This machine, with the rights of this program."""

    @property
    def guardian(self) -> GuardianClient:
        return guardian

    def shell(self) -> tuple[bytes, bool]:
        return shell()

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def variables(self, pass_env: Sequence[str]) -> dict[str, str]:
        return inherited_variables(pass_env)

    def plain(self, command: str, variables: Mapping[str, str]) -> tuple[bytes, list[bytes]] | None:
        return plain_argv(command, variables)


class HostedEnvironment(Environment):
    """Runs commands on a host, each in a fresh shell with the state of the last one.

    A subclass provides the host, its files (`_files`) and `info`.
    """

    _files: Disk
    _max_left = MAX_LEFT_RUNNING

    def __init__(
        self,
        cwd: str,
        host: Host,
        shared: SharedSettings | None,
        *,
        release: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(cwd, shared, release=release)
        self._host = host
        self._launcher = Launcher(host, self._task, self._shared.pass_env)
        self._cpu_samples: dict[int, tuple[float, float]] = {}
        self._last_state: tuple[bytes, Mapping[str, str]] | None = None

    @property
    def disk(self) -> Disk:
        """The files that commands see."""
        return self._files

    def run_script(self, script: str, data: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run an internal script: its exit code, stdout and stderr."""
        path, _ = self._host.shell()
        argv = [path, b"-c", script.encode("utf-8", "surrogateescape")]
        with self._idle:
            return run_to_end(self._host.guardian, argv, data=data)

    def cleanup(self) -> None:
        """End all commands that were not detached."""
        self._idle.close()
        self._end_backgrounds(lambda: self._host.guardian.stop_task(self._task))

    def _run(self, request: CommandRequest) -> CommandResult:
        folder = self._launcher.folder(request, self.cwd)
        notes = []
        if request.cwd is None and folder != self.cwd:
            notes.append(f"{self.cwd} is gone; the command ran in {folder}")
            self.cwd = folder
        collector = self._collector()
        variables = self._launcher.variables(request, self.env, folder)
        start = time.monotonic()
        process, outcome = self._followed(request, collector, folder, variables)
        if process.failure is not None:
            process.close()
            raise start_error(process.failure, folder)
        background = None
        if outcome.alive:
            left_behind = outcome.reason != "needs input"
            background = self._background(process, request, folder, left_behind=left_behind)
            background.started_at -= time.monotonic() - start
            if left_behind:
                notes += stop_excess(background, process.left, self._max_left)
            else:
                background.seed(collector.recent().encode())
        else:
            process.close()
        if process.lost:
            process.guardian.sweep(self._task, process.pid)
        if outcome.reason == "exited":
            self._carry(process.state, variables, folder if request.cwd is None else None)
            notes += self._state_notes(request.command, process.state)
        return CommandResult(
            process.exit_code,
            self._output(collector),
            cwd=self.cwd,
            duration=time.monotonic() - start,
            ended=outcome.reason,
            cpu_seconds=process.cpu_seconds,
            background=background,
            background_pids=process.left,
            prompt=outcome.prompt,
            ordered=process.ordered,
            notes=[*notes, *outcome.notes, *_disk_notes(folder), *self._cpu_notes()],
        )

    def _followed(
        self,
        request: CommandRequest,
        collector: Collector,
        folder: str,
        variables: dict[str, str],
    ) -> tuple[Process, WaitOutcome]:
        """Start a command and wait for its outcome; a plain program that fails goes to a shell."""
        for plain in (True, False):
            process = Process(collector.feed, self._host.guardian, ordered=True)
            poller = Poller()
            try:
                by_shell = self._launcher.start(
                    process, request, folder, variables, self.definitions,
                    keep=True, plain=plain, poller=poller,
                )  # fmt: skip
                outcome = follow(process, collector, request, task=self._task, poller=poller)
            except BaseException:
                if process.id:
                    process.guardian.stop(process.id)
                process.close()
                collector.discard()
                raise
            finally:
                poller.close()
            if process.failure is None or by_shell:
                break
            process.close()
        return process, outcome

    def _begin(self, request: CommandRequest) -> Background:
        folder = self._launcher.folder(request, self.cwd)
        process = Process(lambda *_: None, self._host.guardian)
        variables = self._launcher.variables(request, self.env, folder)
        theirs = stdin = -1
        if request.stdin is None and not request.pty:
            theirs, stdin = os.pipe()
            os.set_blocking(stdin, False)
        try:
            self._launcher.start(
                process, request, folder, variables, self.definitions, stdin=theirs
            )
        except BaseException:
            if stdin >= 0:
                os.close(stdin)
            raise
        finally:
            if theirs >= 0:
                os.close(theirs)
        background = self._background(process, request, folder, stdin=stdin)
        background.wait(5.0, until=lambda: bool(process.pid or process.gone))
        if process.failure is not None:
            raise start_error(process.failure, folder)
        return background

    def _background(
        self,
        process: Process,
        request: CommandRequest,
        folder: str,
        *,
        left_behind: bool = False,
        stdin: int = -1,
    ) -> Background:
        """Register a background command, or the processes that a command left running."""
        background = self._backgrounds.add(
            lambda name: Background(
                process,
                name=name,
                command=request.command,
                cwd=folder,
                task=self._task,
                stdin=stdin,
                make_spill=self._spill,
                ansi=self._shared.ansi,
            ),
            request.name,
        )
        background.left_behind = left_behind
        if left_behind and process.left:
            background.pid = process.left[0]
        background.follow()
        return background

    def _carry(self, data: bytes, given: Mapping[str, str], folder: str | None) -> bool:
        if (data, given) != self._last_state:
            unchanged = super()._carry(data, given, folder)
            self._last_state = (data, given) if unchanged else None
        return self._last_state is not None

    def _cpu_notes(self) -> list[str]:
        running = self._backgrounds.running()
        return _busy_notes(running, self._cpu_samples) if running else []


class LocalEnvironment(HostedEnvironment):
    """Runs commands on this machine, with the rights of this program."""

    label = "this machine"

    def __init__(
        self, cwd: str = "", *, shared: SharedSettings | None = None, host: Host | None = None
    ) -> None:
        super().__init__(os.path.abspath(cwd or os.getcwd()), host or LocalHost(), shared)
        self._files = LocalDisk()

    def run_program(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        cancellation: Cancellation | None = None,
    ) -> CommandResult:
        """Run a program without a shell, with these variables; whatever it leaves running is ended.

        Raises `ToolError` where it can't be started.
        """
        variables = {**env, MARK: self._task}
        program = argv[0] if "/" in argv[0] else search(argv[0], variables.get("PATH", os.defpath))
        if not program:
            raise ToolError(f"{argv[0]} was not found")
        collector = Collector(tail=HEAD)
        process = Process(collector.feed, self._host.guardian, ordered=True)
        request = CommandRequest(argv[0], cancellation=cancellation)
        poller = Poller()
        start = time.monotonic()
        try:
            process.start(
                [encode_text(word) for word in argv],
                program=encode_text(program),
                task=self._task,
                env={encode_text(name): encode_text(text) for name, text in variables.items()},
                cwd=cwd,
                files={},
                poller=poller,
            )
            outcome = follow(process, collector, request, task=self._task, poller=poller)
            if outcome.alive:
                process.guardian.stop(process.id, grace=_LEFT_GRACE)
        except BaseException:
            if process.id:
                process.guardian.stop(process.id)
            raise
        finally:
            poller.close()
            process.close()
        if process.failure is not None:
            raise ToolError(f"{argv[0]} can't be started: {process.failure.strerror}")
        return CommandResult(
            process.exit_code,
            collector.output(),
            cwd=cwd,
            duration=time.monotonic() - start,
            notes=list(outcome.notes),
            ended=outcome.reason,
            prompt=outcome.prompt,
        )

    def info(self) -> Isolation:
        """No isolation, but every process is owned."""
        missing = ["files", "network", "memory"]
        if sys.platform != "linux":
            missing.append("processes that leave their process group are not found again")
        return Isolation(
            "local",
            processes="every process is owned by its task and ended with it",
            not_enforced=tuple(missing),
        )


def _disk_notes(folder: str) -> list[str]:
    """A warning when the disk of a folder is nearly full."""
    try:
        usage = os.statvfs(folder)
    except OSError:
        return []
    free = usage.f_bavail * usage.f_frsize
    total = usage.f_blocks * usage.f_frsize
    if not total or free >= max(_LOW_SPACE, min(_LOW_SHARE * total, 5 * _LOW_SPACE)):
        return []
    return [f"the disk is nearly full: {free // 1_000_000} MB free"]


def _busy_notes(
    running: Sequence[Background], samples: dict[int, tuple[float, float]]
) -> list[str]:
    """A note for each background command that kept a core busy since its last sample.

    `samples` has the time and the CPU seconds of the last sample, by pid.
    """
    notes = []
    now = time.monotonic()
    for background in running:
        before = samples.get(background.pid)
        if before is not None and now - before[0] < BUSY_SECONDS:
            continue
        used = sum(map(_cpu_seconds, background.host_pids()))
        samples[background.pid] = now, used
        if before is not None and (used - before[1]) / (now - before[0]) > BUSY_SHARE:
            notes.append(
                f"{background.name} (pid {background.pid}) in the background keeps a CPU core busy"
            )
    return notes


def _cpu_seconds(pid: int) -> float:
    import psutil

    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
