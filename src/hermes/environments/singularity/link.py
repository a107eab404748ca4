"""The instance of a task: started before its first shell, ended with it."""

from __future__ import annotations

import os
import re
import subprocess
import time
from typing import TYPE_CHECKING

from hermes.environments.far.channel import start
from hermes.environments.local.owner import guardian
from hermes.environments.local.process import Process
from hermes.environments.local.ready import Ready
from hermes.environments.results import Isolation
from hermes.environments.singularity.program import explained, found, start_words
from hermes.environments.variables import passed_variables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.environments.results import PlaceError
    from hermes.environments.singularity.settings import SingularitySettings

_NAME = re.compile(r"hermes-(\d+)-[0-9a-f]{8}")
_LIST_SECONDS = 20.0


class SingularityLink:
    """Gets shells in a container of its own."""

    lasts = False
    gives_terminal = False

    def __init__(self, settings: SingularitySettings) -> None:
        self._settings = settings
        self.label = f"the container of {os.path.basename(settings.image)}"
        self.start_seconds = settings.start_seconds
        self._program = ""
        self._name = ""
        self._process: Process | None = None
        self._task = ""

    def prepare(self, task: str) -> None:
        """Start an instance. What it daemonises is still ours: the guardian is its parent."""
        self.close()
        # Of its own, for it ends after the shells in it.
        self._task = f"{task}/instance"
        self._program = found(self._settings)
        prune(self._program)
        self._name = f"hermes-{os.getpid()}-{os.urandom(4).hex()}"
        said = bytearray()
        process = Process(lambda _, data: said.extend(data[:8000]))
        ready = Ready()
        argv = [self._program, *start_words(self._settings, self._name)]
        os.close(start(process, argv, task=self._task, ready=ready))
        until = time.monotonic() + self.start_seconds
        try:
            while process.exit_code is None and not process.gone:
                left = until - time.monotonic()
                if left <= 0:
                    break
                for file in ready.wait(process.watched(), left):
                    process.take(file)
            process.drain()
        finally:
            ready.close()
        if process.failure is not None or process.exit_code != 0:
            process.close()
            raise self.explain(said.decode("utf-8", "replace"), process.exit_code)
        self._process = process

    def argv(self, words: Sequence[str], *, tty: bool = False, first: bool = False) -> list[str]:  # noqa: ARG002
        """The command line that joins the instance."""
        folder = self._settings.workdir if self._settings.workspace else "/"
        options = ["--cleanenv", "--no-privs", "--pwd", folder]
        return [self._program, "exec", *options, f"instance://{self._name}", *words]

    def explain(self, said: str, code: int | None) -> PlaceError:
        """Why there is no shell."""
        return explained(self._settings, self._program, said, code)

    def info(self) -> Isolation:
        """What the program enforces, as it was asked to."""
        settings = self._settings
        missing = [] if settings.memory else ["memory"]
        if settings.network == "host":
            missing.append("network")
        if settings.pids is None:
            missing.append("number of processes")
        return Isolation(
            "singularity",
            files="the image, and what is bound: " + (", ".join(settings.binds) or "nothing"),
            network="none" if settings.network == "none" else "",
            processes="a process namespace, ended with the task",
            memory=settings.memory,
            not_enforced=tuple(missing),
        )

    def close(self) -> None:
        """End the instance."""
        process, self._process = self._process, None
        if process is None:
            return
        _run(self._program, "instance", "stop", "--timeout", "2", self._name)
        guardian.stop_task(self._task)
        process.close()


def prune(program: str) -> list[str]:
    """End instances of a Hermes that is no more; their names."""
    ended = []
    for match in _NAME.finditer(_run(program, "instance", "list", "--json")):
        if not _lives(int(match[1])) and match[0] not in ended:
            _run(program, "instance", "stop", "--force", match[0])
            ended.append(match[0])
    return ended


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _run(*argv: str) -> str:
    """What a short call of the program prints; nothing when it fails."""
    try:
        done = subprocess.run(
            argv,
            env=passed_variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIST_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")
