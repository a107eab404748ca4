"""Relay: programs in a cloud sandbox, with stdin, output and status pipes like local ones.

A service runs one command and returns its output. So a program there reads from a FIFO and writes
to files, in a folder of its own; a thread here copies the bytes, a request for each exchange. The
service is polled only while output is expected, so that an idle sandbox can expire.
"""

from __future__ import annotations

import base64
import binascii
import os
import select
import threading
import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

from hermes.environments.cloud.provider import ProviderError
from hermes.environments.host.guardian_client import GRACE_SECONDS, GuardianClient
from hermes.environments.host.process import buffered
from hermes.environments.remote_shell.scripts import quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes.environments.cloud.provider import Provider

# Limits of one request: bytes of each stream that come back, bytes of stdin that are sent.
MAX_RECEIVED = 4_000_000
MAX_SENT = 45_000
# How long a request waits for output: longer with each one that brings none.
FIRST_WAIT, LONGEST_WAIT = 0.2, 2.0
# Output is expected for so much longer than asked for, or after stdin was sent.
EXPECT_SECONDS = 1.0
# Time that the service itself may need.
_SLACK_SECONDS = 15.0
_RETRY_SECONDS = (0.5, 1.0, 2.0)
_START = """
W=$PWD; export W
mkdir -p {folder} && cd {folder} && mkfifo in && : >out && : >err || {{ echo failed; exit 0; }}
exec </dev/null >/dev/null 2>&1
(exec 3<>in; exec sleep 2147483647) & echo $! >hold
X=$(command -v setsid)
$X sh -c {program} & echo $! >pid
"""
# The process that holds the FIFO open keeps its reader from the end of its stdin.
_PROGRAM = (
    '(cd "$W" && unset W; exec {words}) <in >out 2>err; '
    "echo $? >code.new; mv code.new code; kill $(cat hold)"
)
_POLL = """
cd {folder} 2>/dev/null || {{ echo lost; exit 0; }}
{send}n=0
while :; do
  c=; [ ! -e code ] || c=$(cat code)
  [ -n "$c" ] || kill -0 "$(cat pid)" 2>/dev/null || c=lost
  e=$(wc -c <err); o=$(wc -c <out)
  [ -z "$c" ] && [ "$o" -le {out} ] && [ "$e" -le {err} ] && [ "$n" -lt {steps} ] || break
  n=$((n + 1)); sleep 0.1
done
echo "$((o)) $((e)) ${{c:--}}"
tail -c +$(({out} + 1)) out | head -c {most} | base64 | tr -d '\\n'; echo
# Standard error after all output that was printed before it.
[ "$((o - {out}))" -gt {most} ] || m=$((e - {err}))
[ "${{m:=0}}" -le {most} ] || m={most}
tail -c +$(({err} + 1)) err | head -c "$m" | base64 | tr -d '\\n'; echo
"""
_STOP = """
cd {folder} 2>/dev/null || exit 0
p=$(cat pid); kill -{signal} "-$p" || kill -{signal} "$p"; kill "$(cat hold)"
"""


class _Program:
    """A program in the sandbox: its folder there, its pipes here, the thread that copies."""

    def __init__(self, id_: int, task: str, folder: str, files: Mapping[int, int]) -> None:
        self.id = id_
        self.task = task
        self.folder = folder
        self.stdin, self.out, self.err = (os.dup(files[number]) for number in (0, 1, 2))
        self.status_read, self.status = os.pipe()
        self.wake_read, self.wake = os.pipe()
        self.expected_until = 0.0
        self.wait = FIRST_WAIT
        # Number of completed exchanges.
        self.exchanges = 0
        self.sizes = [0, 0]
        self.ended = False
        self.thread: threading.Thread | None = None

    def close(self) -> None:
        for file in (self.stdin, self.out, self.err, self.wake_read, self.wake):
            os.close(file)


class SandboxRelay(GuardianClient):
    """Starts programs in the sandbox that a provider has now."""

    def __init__(self, provider: Provider) -> None:
        super().__init__()
        self._provider = provider
        self._ids = count(1)
        self._folder = f"/tmp/hermes-{os.urandom(8).hex()}"
        self._programs: dict[int, _Program] = {}
        # Those whose threads have not ended.
        self._running: set[_Program] = set()
        self._changed = threading.Condition()

    def run(
        self,
        argv: Sequence[bytes],
        *,
        program: bytes = b"",  # noqa: ARG002
        task: str,
        env: Mapping[bytes, bytes],  # noqa: ARG002
        cwd: str,  # noqa: ARG002
        files: Mapping[int, int],
        tty: str | None = None,  # noqa: ARG002
        announce: bool = False,  # noqa: ARG002
    ) -> tuple[int, int]:
        """Start a program there; its id, and the status pipe."""
        id_ = next(self._ids)
        folder = f"{self._folder}/{id_}"
        words = " ".join(quote(os.fsdecode(word)) for word in argv)
        text = _START.format(folder=folder, program=quote(_PROGRAM.format(words=words)))
        if "failed" in self._provider.run(text, seconds=_SLACK_SECONDS):
            raise ProviderError("no folder for working files can be made in the sandbox")
        started = _Program(id_, task, folder, files)
        with self._changed:
            self._programs[id_] = started
            self._running.add(started)
        started.thread = threading.Thread(
            target=self._copy, args=(started,), name="hermes-relay", daemon=True
        )
        started.thread.start()
        return id_, started.status_read

    def expect_output(self, id_: int, seconds: float) -> None:
        """Poll for the output of a program during the next seconds."""
        with self._changed:
            program = self._programs.get(id_)
            if program is None:
                return
            idle = program.expected_until <= time.monotonic()
            program.expected_until = time.monotonic() + seconds + EXPECT_SECONDS
            if idle:
                program.wait = FIRST_WAIT
                os.write(program.wake, b".")

    def refresh(self, *, seconds: float = 3.0) -> None:
        """Exchange bytes with all programs once, so that their state is known."""
        with self._changed:
            before = {program: program.exchanges for program in self._programs.values()}
        for program in before:
            self.expect_output(program.id, seconds)
        with self._changed:
            self._changed.wait_for(
                lambda: all(each.ended or each.exchanges > n for each, n in before.items()),
                seconds,
            )

    def signal(self, id_: int, number: int) -> None:
        program = self._programs.get(id_)
        if program is not None:
            text = _STOP.format(folder=program.folder, signal=int(number))
            with suppress(ProviderError):
                self._provider.run(text, seconds=_SLACK_SECONDS)

    def stop(self, id_: int, *, grace: float = GRACE_SECONDS) -> None:  # noqa: ARG002
        """Kill a program."""
        self.signal(id_, 9)
        self.expect_output(id_, LONGEST_WAIT)

    def stop_task(
        self,
        task: str,
        *,
        grace: float = GRACE_SECONDS,
        within: float = 5.0,  # noqa: ARG002
    ) -> bool:
        """Kill all programs of a task."""
        for program in list(self._programs.values()):
            if program.task == task:
                self.stop(program.id, grace=grace)
        return True

    def reset(self) -> None:
        """End the threads of all programs, before the sandbox itself is ended."""
        with self._changed:
            programs = list(self._running)
        for program in programs:
            self._end(program, b"")
        for program in programs:
            if program.thread is not None:
                program.thread.join(LONGEST_WAIT + _SLACK_SECONDS)

    def detach(self, id_: int) -> None:
        """Nothing outlives its sandbox."""

    def pids(self, task: str) -> dict[int, list[int]]:  # noqa: ARG002
        return {}

    def open(self) -> None:
        """There is no process to start."""

    def sweep(self, task: str, leader: int) -> None:
        """The sandbox ends with all its processes."""

    # -- copying ------------------------------------------------------------------------------

    def _copy(self, program: _Program) -> None:
        """Copy bytes until the program has ended; runs in a thread, which owns its pipes."""
        poll = select.poll()
        poll.register(program.wake_read, select.POLLIN)
        poll.register(program.stdin, select.POLLIN)
        failures = 0
        while not program.ended:
            expected = program.expected_until > time.monotonic()
            ready = [file for file, _ in poll.poll(0 if expected else None)]
            if program.wake_read in ready:
                os.read(program.wake_read, 4096)
            send = ""
            if program.stdin in ready:
                data = os.read(program.stdin, MAX_SENT)
                if not data:
                    poll.unregister(program.stdin)
                send = _send(data)
                # The program may answer at once; more stdin must not wait for that.
                program.wait = 0.0 if len(data) == MAX_SENT else FIRST_WAIT
                program.expected_until = max(
                    program.expected_until, time.monotonic() + EXPECT_SECONDS
                )
            try:
                self._exchange(program, send)
                failures = 0
            except (ProviderError, ValueError, IndexError, binascii.Error):
                if send or failures == len(_RETRY_SECONDS):
                    self._end(program, b"")
                else:
                    time.sleep(_RETRY_SECONDS[failures])
                    failures += 1
        with self._changed:
            self._running.discard(program)
            program.close()

    def _exchange(self, program: _Program, send: str) -> None:
        text = _POLL.format(
            folder=program.folder, send=send, out=program.sizes[0], err=program.sizes[1],
            steps=round(program.wait * 10), most=MAX_RECEIVED,
        )  # fmt: skip
        reply = self._provider.run(text, seconds=LONGEST_WAIT + _SLACK_SECONDS)
        if program.ended:
            return
        head, _, rest = reply.partition("\n")
        words = head.split()
        if words == ["lost"]:
            self._end(program, b"")
            return
        out_size, err_size, code = int(words[0]), int(words[1]), words[2]
        idle = program.sizes == [out_size, err_size]
        longer = max(FIRST_WAIT, min(LONGEST_WAIT, program.wait * 1.5))
        program.wait = longer if idle else FIRST_WAIT
        complete = True
        for at, (line, file, size) in enumerate(
            zip(rest.split("\n"), (program.out, program.err), (out_size, err_size), strict=False)
        ):
            data = base64.b64decode(line)
            program.sizes[at] += len(data)
            complete = complete and program.sizes[at] >= size
            if data and file == program.err:
                _wait_until_read(program.out)
            view = memoryview(data)
            with suppress(OSError):
                while view:
                    view = view[os.write(file, view) :]
        if code == "lost":
            self._end(program, b"")
        elif code != "-" and complete:
            with suppress(ProviderError):
                self._provider.run(f"rm -rf {program.folder}", seconds=_SLACK_SECONDS)
            self._end(program, f"exited 0 {int(code) << 8} 0.0\ngone\n".encode())
        with self._changed:
            program.exchanges += 1
            self._changed.notify_all()

    def _end(self, program: _Program, status: bytes) -> None:
        """Close the pipes of a program; without a status it is lost."""
        with self._changed:
            if program.ended:
                return
            program.ended = True
            self._programs.pop(program.id, None)
            if status:
                with suppress(OSError):
                    os.write(program.status, status)
            os.close(program.status)
            if program in self._running:
                os.write(program.wake, b".")
            self._changed.notify_all()


def _wait_until_read(file: int) -> None:
    """Wait until a pipe is empty, so that its reader takes the other stream after it."""
    deadline = time.monotonic() + LONGEST_WAIT
    while buffered(file) and time.monotonic() < deadline:
        time.sleep(0.002)


def _send(data: bytes) -> str:
    """The commands that write to a program's stdin, or close it when there is no more."""
    if not data:
        return 'kill "$(cat hold)"\n'
    text = base64.b64encode(data).decode()
    return f"printf %s {text} | base64 -d | timeout 20 dd of=in bs=65536 2>/dev/null\n"
