"""`Process`: one command under the guardian, with its pipes and status; polling, stdin, run to the
end.
"""

from __future__ import annotations

import os
import select
import sys
import time
from typing import TYPE_CHECKING

from hermes.environments.command import PlaceError
from hermes.environments.host.guardian_client import guardian

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from hermes.environments.host.guardian_client import Guardian


class Ready:
    """Waits for files. Linux knows which was first; elsewhere they come as they are named."""

    def __init__(self) -> None:
        self._epoll = select.epoll() if hasattr(select, "epoll") else None
        self._known: set[int] = set()

    def wait(self, files: Sequence[int], seconds: float) -> list[int]:
        """Those that can be read, after at most so many seconds."""
        seconds = max(0.0, seconds)
        if self._epoll is None:
            poll = select.poll()
            for file in files:
                poll.register(file, select.POLLIN)
            return [file for file, _ in poll.poll(seconds * 1000)]
        # One that was closed has left by itself.
        self._known.intersection_update(files)
        self.add(files)
        return [file for file, _ in self._epoll.poll(seconds)]

    def add(self, files: Iterable[int]) -> None:
        """Begin to note when files come to have something."""
        if self._epoll is None:
            return
        for file in files:
            if file not in self._known:
                self._epoll.register(file, select.EPOLLIN)
                self._known.add(file)

    def close(self) -> None:
        """Let go of it."""
        if self._epoll is not None:
            self._epoll.close()


def readable(data: bytes) -> int:
    """A file without a name that holds `data`, at its start; the caller closes it."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("stdin")
    else:
        import tempfile

        handle, path = tempfile.mkstemp()
        os.unlink(path)
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


_PIECE = 1 << 16
_CHUNK = 1 << 20
OUT, ERR = 1, 2


class Process:
    """A command that the guardian started. `take` reads whatever one of its files has to say."""

    __slots__ = (
        "_buffer",
        "cpu_seconds",
        "exit_code",
        "failure",
        "feed",
        "files",
        "gone",
        "id",
        "left",
        "lost",
        "master",
        "ordered",
        "owner",
        "pid",
        "slave",
        "state",
        "state_file",
        "status",
        "status_text",
    )

    def __init__(
        self,
        feed: Callable[[int, memoryview], None],
        owner: Guardian = guardian,
        *,
        ordered: bool = False,
    ) -> None:
        self.feed = feed
        # Whoever starts it and ends it.
        self.owner = owner
        self.id = 0
        self.pid = 0
        # Files that output comes from, and the stream that each is.
        self.files: dict[int, int] = {}
        # Whether the pieces are known to come in the order in which they were printed.
        self.ordered = ordered
        self.status = -1
        self.status_text = b""
        self.state_file = -1
        self.state = b""
        self.exit_code: int | None = None
        self.cpu_seconds = 0.0
        # What it left running, by process id.
        self.left: tuple[int, ...] = ()
        # Nothing of it is left; or the guardian itself is gone and nobody knows.
        self.gone = False
        self.lost = False
        self.failure: OSError | None = None
        self.master = self.slave = -1
        self._buffer: bytearray | None = None

    def start(
        self,
        argv: Sequence[bytes],
        *,
        program: bytes = b"",
        task: str,
        env: Mapping[bytes, bytes],
        cwd: str,
        given: Mapping[int, int],
        state_place: int | None = None,
        pty: bool = False,
        announce: bool = False,
        ready: Ready | None = None,
    ) -> None:
        """Have it started: its first word, or `program` under that name.

        `given` are files of ours by the number it knows them by. What is to wait for its output can
        begin before there is any: `ready`.
        """
        theirs: dict[int, int] = dict(given)
        made: list[int] = []
        tty = None
        try:
            if pty:
                self.master, self.slave = _terminal()
                self.files[self.master] = OUT
                tty = os.ttyname(self.slave)
            else:
                for stream in (OUT, ERR):
                    ours, theirs[stream] = os.pipe()
                    made.append(theirs[stream])
                    os.set_blocking(ours, False)
                    self.files[ours] = stream
            if state_place is not None:
                self.state_file, theirs[state_place] = os.pipe()
                made.append(theirs[state_place])
                os.set_blocking(self.state_file, False)
                _widen(self.state_file)
            if ready is not None:
                ready.add(self.files)
            self.id, self.status = self.owner.run(
                argv,
                program=program,
                task=task,
                env=env,
                cwd=cwd,
                files=theirs,
                tty=tty,
                announce=announce or pty,
            )
            os.set_blocking(self.status, False)
        except BaseException:
            self.close()
            raise
        finally:
            for file in made:
                os.close(file)

    def watched(self) -> list[int]:
        """The files that may have something to say."""
        found = list(self.files)
        if self.status >= 0:
            found.append(self.status)
        return found

    def take(self, file: int) -> bool:
        """Read what a file has; whether it may have more."""
        if file in self.files:
            return self._take_output(file)
        try:
            data = os.read(file, _PIECE)
        except BlockingIOError:
            return False
        if file == self.state_file:
            self.state += data
            if not data:
                self._close_state()
            return bool(data)
        if not data:
            os.close(self.status)
            self.status = -1
            if not self.gone and self.failure is None:
                self.lost = self.gone = True
            return False
        self.status_text += data
        *lines, self.status_text = self.status_text.split(b"\n")
        for line in lines:
            self._hear(line.decode("utf-8", "replace").split(" "))
        return True

    def drain(self) -> None:
        """Read whatever is there already."""
        for file in list(self.files):
            while file in self.files and self.take(file):
                pass
        self.take_state()

    def take_state(self) -> None:
        """Read the state that the shell has written so far; it waits when it can't write more."""
        while self.state_file >= 0 and self.take(self.state_file):
            pass

    def close(self) -> None:
        """Let go of all files."""
        for file in [*self.files, self.status, self.state_file, self.slave]:
            if file >= 0:
                os.close(file)
        self.files = {}
        self.status = self.state_file = self.slave = self.master = -1

    def _hear(self, words: list[str]) -> None:
        what = words[0]
        if what == "started":
            self.pid = int(words[1])
            if self.slave >= 0:
                os.close(self.slave)
                self.slave = -1
        elif what == "failed":
            number = int(words[1])
            self.failure = OSError(number, os.strerror(number), " ".join(words[2:]))
            self.gone = True
        elif what == "exited":
            self.pid = int(words[1])
            code = os.waitstatus_to_exitcode(int(words[2]))
            self.exit_code = code if code >= 0 else 128 - code
            self.cpu_seconds = float(words[3])
            if len(words) > 4:
                self.left = tuple(int(pid) for pid in words[4].split(","))
        elif what == "gone":
            self.gone = True
            self.left = ()

    def _take_output(self, file: int) -> bool:
        most = _PIECE if self._buffer is None else _CHUNK
        if self.ordered and len(self.files) > 1:
            most = min(most, self._before_others(file))
        try:
            if self._buffer is None:
                data = memoryview(os.read(file, most))
            else:
                view = memoryview(self._buffer)[:most]
                data = view[: os.readv(file, [view])]
        except BlockingIOError:
            return False
        except OSError:
            # The other end of a terminal is gone.
            data = memoryview(b"")
        if not data:
            os.close(file)
            del self.files[file]
            if file == self.master:
                self.master = -1
            return False
        self.feed(self.files[file], data)
        if len(data) == _PIECE and self._buffer is None:
            # It has a lot to say: fewer and larger pieces from now on.
            self._buffer = bytearray(_CHUNK)
            _widen(file)
        return True

    def _before_others(self, file: int) -> int:
        """How much of a file is older than anything on the others; all of it where nobody knows."""
        mine = _waiting(file)
        # In this order: what comes there from now on is newer than what is here already.
        if mine and not any(_waiting(other) for other in self.files if other != file):
            return mine
        self.ordered = not mine
        return _CHUNK

    def _close_state(self) -> None:
        os.close(self.state_file)
        self.state_file = -1


def _terminal() -> tuple[int, int]:
    import termios

    master, slave = os.openpty()
    os.set_blocking(master, False)
    termios.tcsetwinsize(slave, (40, 120))
    return master, slave


def _waiting(file: int) -> int:
    """How many bytes a pipe holds."""
    import fcntl
    import termios

    answer = fcntl.ioctl(file, termios.FIONREAD, b"\0\0\0\0")
    return int.from_bytes(answer, sys.byteorder)


def _widen(file: int) -> None:
    """Let a pipe hold more, where that can be."""
    import fcntl

    try:
        fcntl.fcntl(file, getattr(fcntl, "F_SETPIPE_SZ", 1031), _CHUNK)
    except OSError:
        # No pipe, or more than a person may have.
        return


ANSWER_SECONDS = 60.0
_PATH = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def answer(
    owner: Guardian,
    argv: Sequence[bytes],
    *,
    data: bytes = b"",
    env: Mapping[bytes, bytes] | None = None,
    seconds: float = ANSWER_SECONDS,
) -> tuple[int, bytes, bytes]:
    """Run a program that reads `data`; its exit code and what it printed on each stream."""
    said = {1: bytearray(), 2: bytearray()}
    process = Process(lambda stream, piece: said[stream].extend(piece), owner)
    ready = Ready()
    stdin = readable(data)
    try:
        process.start(
            argv,
            task=f"answers/{os.getpid()}",
            env={b"PATH": _PATH, b"LC_ALL": b"C", **(env or {})},
            cwd="/",
            given={0: stdin},
            ready=ready,
        )
        until = time.monotonic() + seconds
        while process.exit_code is None and not process.gone:
            left = until - time.monotonic()
            if left <= 0:
                owner.stop(process.id)
                raise PlaceError(f"no answer within {seconds:g} s")
            for file in ready.wait(process.watched(), left):
                process.take(file)
        process.drain()
        if process.failure is not None:
            raise PlaceError(f"{os.fsdecode(argv[0])} can't be run: {process.failure.strerror}")
        if process.exit_code is None:
            raise PlaceError("the process that watches over commands was killed")
        return process.exit_code, bytes(said[1]), bytes(said[2])
    finally:
        os.close(stdin)
        ready.close()
        process.close()
