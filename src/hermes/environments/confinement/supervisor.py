"""Supervisor: carries out system calls for commands, where their target allows it.

Read-only mounts do not keep a command from a socket. Landlock has no rules for sockets with a name,
for modes, owners, times and attributes of files, and for priorities and limits of processes. The
filter of `seccomp` stops a command at such a call until the supervisor has answered. Of files and
sockets the supervisor opens the target itself, compares what it opened with the paths that are
open to the task, and makes the call on what it opened: a command that changes a path or its memory
meanwhile changes nothing.

Runs in the guardian's parent process, with nothing of Hermes imported.
"""

from __future__ import annotations

import ctypes
import errno
import marshal
import os
import select
import struct
import sys

# Not `threading`, which takes long to import.
from _thread import allocate_lock, start_new_thread

try:
    from fcntl import ioctl
except ImportError:
    # Not a Unix system: importing must not fail, and nothing here is used.
    ioctl = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

if TYPE_CHECKING or __package__:
    import hermes.environments.confinement.landlock as landlock
    import hermes.environments.confinement.seccomp as seccomp
else:
    # By their short names: the package itself is not imported in this process.
    import landlock
    import seccomp

_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_NOTIFICATION, _ANSWER = struct.Struct("QIIiIQ6Q"), struct.Struct("QqiI")
_CONTINUE = 1
_AT_FDCWD, _NOFOLLOW, _EMPTY_PATH = -100, 0x100, 0x1000
_LONGEST_PATH, _LONGEST_VALUE = 4096, 65_536
_SOL_SOCKET, _SO_DOMAIN = 1, 39
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_MAPPED = bytes(10) + b"\xff\xff"
_PTRACE = 19
# Objects without a path, which belong to whoever has them open.
_UNNAMED = ("pipe:[", "socket:[", "anon_inode:", "/memfd:")

_libc = ctypes.CDLL(None, use_errno=True)


def received() -> dict[str, object]:
    """The rules, which Hermes sends first."""
    size = int.from_bytes(os.read(0, 4), "little")
    data = b""
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            raise SystemExit(1)
        data += piece
    rules: dict[str, object] = marshal.loads(data)
    return rules


def confine(rules: dict[str, object]) -> int:
    """Restrict this process, with a supervisor as its parent; the pid that Hermes knows.

    Returns in a new process: the one that Hermes started is the supervisor, and an ancestor of
    every command, since some systems let only ancestors look into a process.
    """
    if rules.get("listen"):
        hand_over(rules["listen"])  # type: ignore[arg-type]
    closed = rules.get("ports") is not None
    # For the supervisor too, since it makes the connections of commands.
    landlock.restrict({"ports": rules.get("ports"), "scope": True, "abi": rules["abi"]})
    scopes = int(str(rules["abi"])) >= landlock.SCOPES
    files = bool(rules.get("files"))
    words = seccomp.program(files=files, signals=files and not scopes, tcp_only=closed)
    told, tell = os.pipe()
    asked, ask = os.pipe()
    pid = os.fork()
    if pid:
        os.close(0)
        os.close(tell)
        os.close(asked)
        Supervisor(rules, pid, told, ask).serve()
    parent = os.getppid()
    os.close(told)
    os.close(ask)
    landlock.restrict({**rules, "ports": None})
    if files:
        landlock.drop_capabilities()
    listener = seccomp.install(words)
    os.write(tell, b"%d" % listener)
    # The other end takes the listener out of this process, and answers then.
    if not os.read(asked, 1):
        raise SystemExit(1)
    for file in (tell, asked, listener):
        os.close(file)
    return parent


def hand_over(ports: list[int]) -> None:
    """Listen on the loopback of this network namespace, and give Hermes the sockets (proxy.py)."""
    import socket

    listeners = [socket.create_server(("127.0.0.1", port)) for port in ports]
    with socket.socket(fileno=os.dup(0)) as channel:
        socket.send_fds(channel, [b"+"], [listener.fileno() for listener in listeners])
    for listener in listeners:
        listener.close()


class Call:
    """A system call that waits for its answer."""

    def __init__(self, data: bytearray) -> None:
        self.id, self.pid, _, self.number, _, _, *arguments = _NOTIFICATION.unpack(data)
        self.arguments: list[int] = arguments

    def signed(self, index: int) -> int:
        """An argument of type `int`."""
        return ctypes.c_int(self.arguments[index] & 0xFFFFFFFF).value

    def memory(self, index: int, size: int) -> bytes:
        """What a pointer points to, up to the end of the page where memory ends."""
        file = os.open(f"/proc/{self.pid}/mem", os.O_RDONLY)
        try:
            return os.pread(file, size, self.arguments[index])
        finally:
            os.close(file)

    def text(self, index: int, size: int = _LONGEST_PATH) -> bytes:
        """The string that a pointer points to."""
        found, ended, _ = self.memory(index, size).partition(b"\0")
        if not ended:
            raise OSError(errno.ENAMETOOLONG, "no end")
        return found


class Supervisor:
    """Answers calls until no process of the guardian is left."""

    def __init__(self, rules: dict[str, object], guardian: int, told: int, ask: int) -> None:
        write: list[str] = rules.get("write") or []  # type: ignore[assignment]
        sockets: list[str] = rules["sockets"]  # type: ignore[assignment]
        self._files = bool(rules.get("files"))
        self._write = tuple(map(os.fsencode, write))
        self._sockets = tuple(map(os.fsencode, sockets))
        self._closed: list[bytes] = rules["closed"]  # type: ignore[assignment]
        self._abstract = int(str(rules["abi"])) >= landlock.SCOPES
        self._guardian = guardian
        self._told, self._ask = told, ask
        self._listener = -1
        self._sending = allocate_lock()
        self._calls: dict[int, Callable[[Call], int | None]] = {}
        for names, handler in (
            (("chmod", "fchmod", "fchmodat", "fchmodat2"), self._chmod),
            (("chown", "lchown", "fchown", "fchownat"), self._chown),
            (("utime", "utimes", "futimesat", "utimensat"), self._utime),
            (("setxattr", "lsetxattr", "fsetxattr"), self._setxattr),
            (("removexattr", "lremovexattr", "fremovexattr"), self._removexattr),
            (("connect",), self._connect),
            (("setpriority", "ioprio_set"), self._set_priority),
            (("kill",), self._kill),
            (("pidfd_send_signal",), self._signal_by_descriptor),
        ):  # fmt: skip
            self._calls.update({seccomp.number(name): handler for name in names})
        self._names = {seccomp.number(name): name for name in seccomp.NUMBERS}

    def serve(self) -> None:
        """Answer until the end, and exit."""
        code = 1
        try:
            number = os.read(self._told, 16)
            if number:
                pidfd = os.pidfd_open(self._guardian)
                self._listener = _checked(
                    _libc.syscall(seccomp.number("pidfd_getfd"), pidfd, int(number), 0)
                )
                if self._files:
                    landlock.drop_capabilities(_PTRACE)
                os.write(self._ask, b"y")
                os.close(self._ask)
                self._serve(pidfd)
                code = 0
        finally:
            os._exit(code)

    def _serve(self, pidfd: int) -> None:
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        poll.register(pidfd, select.POLLIN)
        while True:
            for file, event in poll.poll():
                if file == pidfd:
                    poll.unregister(pidfd)
                    _, status = os.waitpid(self._guardian, 0)
                    if os.WIFSIGNALED(status) or not self._files:
                        return  # Hermes, or the end of the namespace, ends what it left
                elif event & select.POLLIN:
                    self._answer()
                else:
                    return  # no process is left

    def _answer(self) -> None:
        data = bytearray(_NOTIFICATION.size)
        try:
            ioctl(self._listener, _RECEIVE, data)
        except OSError:
            return  # the caller was killed meanwhile
        call = Call(data)
        handler = self._calls.get(call.number, self._own_process)
        self._respond(call, handler)

    def _respond(self, call: Call, handler: Callable[[Call], int | None]) -> None:
        flags = error = 0
        try:
            result = handler(call)
            if result is None:
                return  # answered by a thread
            flags = result
        except OSError as failed:
            error = -(failed.errno or errno.EPERM)
        except Exception:  # noqa: BLE001
            # Whatever went wrong here: the caller must not wait for ever.
            error = -errno.EPERM
        self._send(call, error, flags)

    def _send(self, call: Call, error: int, flags: int = 0) -> None:
        try:
            with self._sending:
                ioctl(self._listener, _SEND, _ANSWER.pack(call.id, 0, error, flags))
        except OSError:
            return  # the caller was killed meanwhile

    # -- files --------------------------------------------------------------------------------

    def _target(self, call: Call) -> int:
        """The file that a call names, opened as a path; raises `OSError` where it is outside."""
        name = self._names[call.number]
        if name in ("fchmod", "fchown", "fsetxattr", "fremovexattr"):
            return self._opened(call, _descriptor(call, call.signed(0)), b"", self._write)
        at = name in ("fchmodat", "fchmodat2", "fchownat", "futimesat", "utimensat")
        base = call.signed(0) if at else _AT_FDCWD
        path = call.text(1 if at else 0) if call.arguments[1 if at else 0] else b""
        index = {"fchmodat2": 3, "fchownat": 4, "utimensat": 3}.get(name)
        flags = call.arguments[index] if index is not None else 0
        null_path = name in ("utimensat", "futimesat") and not call.arguments[1]
        if not path and not (null_path or flags & _EMPTY_PATH):
            raise OSError(errno.ENOENT, "no path")
        follow = not (name.startswith("l") or flags & _NOFOLLOW)
        return self._opened(call, _descriptor(call, base), path, self._write, follow=follow)

    def _opened(
        self, call: Call, base: str, path: bytes, roots: tuple[bytes, ...], *, follow: bool = True
    ) -> int:
        flags = os.O_PATH | os.O_CLOEXEC
        for prefix in (b"/proc/self/", b"/proc/thread-self/", b"/dev/fd/"):
            if path.startswith(prefix):
                inner = b"fd/" if prefix == b"/dev/fd/" else b""
                path = b"/proc/%d/%s%s" % (call.pid, inner, path[len(prefix) :])
        if not path:
            file = os.open(base, flags)
        elif path.startswith(b"/"):
            file = os.open(path, flags | (0 if follow else os.O_NOFOLLOW))
        else:
            folder = os.open(base, flags)
            try:
                file = os.open(path, flags | (0 if follow else os.O_NOFOLLOW), dir_fd=folder)
            finally:
                os.close(folder)
        try:
            ioctl(self._listener, _IS_VALID, struct.pack("Q", call.id))
            if not _lies_below(file, roots):
                raise OSError(errno.EPERM, "outside")
        except BaseException:
            os.close(file)
            raise
        return file

    def _chmod(self, call: Call) -> int:
        mode = call.arguments[2 if self._names[call.number].startswith("fchmodat") else 1]
        return self._apply(call, lambda path: os.chmod(path, mode & 0o7777))

    def _chown(self, call: Call) -> int:
        first = 2 if self._names[call.number] == "fchownat" else 1
        owner, group = call.signed(first), call.signed(first + 1)
        return self._apply(call, lambda path: os.chown(path, owner, group))

    def _utime(self, call: Call) -> int:
        name = self._names[call.number]
        index = 1 if name in ("utime", "utimes") else 2
        times = None
        if call.arguments[index]:
            size = 16 if name == "utime" else 32
            values = struct.unpack(f"{size // 8}q", call.memory(index, size))
            if name == "utime":
                values = (values[0], 0, values[1], 0)
            elif name != "utimensat":
                values = (values[0], values[1] * 1000, values[2], values[3] * 1000)
            times = struct.pack("4q", *values)
        number = seccomp.number("utimensat")
        return self._apply(
            call, lambda path: _checked(_libc.syscall(number, _AT_FDCWD, path, times, 0))
        )

    def _setxattr(self, call: Call) -> int:
        size = call.arguments[3]
        if size > _LONGEST_VALUE:
            raise OSError(errno.E2BIG, "too long")
        name, value = call.text(1, 256), call.memory(2, size) if size else b""
        flags = call.signed(4)
        return self._apply(call, lambda path: os.setxattr(path, name, value, flags))

    def _removexattr(self, call: Call) -> int:
        name = call.text(1, 256)
        return self._apply(call, lambda path: os.removexattr(path, name))

    def _apply(self, call: Call, change: Callable[[bytes], object]) -> int:
        file = self._target(call)
        try:
            with _As(call.pid):
                change(b"/proc/self/fd/%d" % file)
        finally:
            os.close(file)
        return 0

    # -- sockets ------------------------------------------------------------------------------

    def _connect(self, call: Call) -> int | None:
        """Connect the caller's own socket to an address that was copied once."""
        size = min(call.arguments[2] & 0xFFFFFFFF, 128)
        address = call.memory(1, size) if size else b""
        pidfd = os.pidfd_open(_process(call.pid))
        try:
            number = seccomp.number("pidfd_getfd")
            socket = _checked(_libc.syscall(number, pidfd, call.signed(0), 0))
        finally:
            os.close(pidfd)
        files = [socket]
        try:
            family = ctypes.c_int()
            length = ctypes.c_uint(4)
            _checked(
                _libc.getsockopt(
                    socket, _SOL_SOCKET, _SO_DOMAIN, ctypes.byref(family), ctypes.byref(length)
                )
            )
            if family.value == _AF_UNIX:
                path = address[2:].partition(b"\0")[0]
                if address[:2] != struct.pack("H", _AF_UNIX) or not (path or self._abstract):
                    raise OSError(errno.EPERM, "no socket with a name")
                if path:
                    base = _descriptor(call, _AT_FDCWD)
                    files.append(self._opened(call, base, path, self._sockets))
                    named = b"/proc/self/fd/%d" % files[-1]
                    address = struct.pack("H", _AF_UNIX) + named + b"\0"
            elif _host(address) in self._closed:
                raise OSError(errno.EACCES, "closed")
        except BaseException:
            _close(files)
            raise

        def connect() -> int:
            try:
                with _As(call.pid):
                    _checked(_libc.connect(socket, address, len(address)))
            finally:
                _close(files)
            return 0

        if not os.get_blocking(socket):
            return connect()
        # It may wait for the other side.
        start_new_thread(self._respond, (call, lambda _: connect()))
        return None

    # -- processes ----------------------------------------------------------------------------

    def _own_process(self, call: Call) -> int:
        """Let a call go on whose first argument is a process of the task."""
        return self._go_on(call.signed(0))

    def _set_priority(self, call: Call) -> int:
        one = 0 if self._names[call.number] == "setpriority" else 1
        if call.signed(0) != one:
            raise OSError(errno.EPERM, "of a group or a user")
        return self._go_on(call.signed(1) or call.pid)

    def _kill(self, call: Call) -> int:
        pid = call.signed(0)
        if pid > 0:
            return self._go_on(pid)
        members = [] if pid in (0, -1) else _group(-pid)
        if pid == -1 or not all(map(self._is_inside, members)):
            raise OSError(errno.EPERM, "outside")
        return _CONTINUE

    def _signal_by_descriptor(self, call: Call) -> int:
        with open(f"/proc/{call.pid}/fdinfo/{call.signed(0)}", encoding="ascii") as file:
            rows = dict(line.split(":", 1) for line in file if ":" in line)
        pid = int(rows.get("Pid", "-1"))
        if not self._is_inside(pid):
            raise OSError(errno.EPERM, "outside")
        os.kill(pid, call.signed(1))
        return 0

    def _go_on(self, pid: int) -> int:
        if not self._is_inside(pid):
            raise OSError(errno.EPERM, "outside")
        return _CONTINUE

    def _is_inside(self, pid: int) -> bool:
        """Whether a process descends from the guardian; orphans become its children."""
        while pid > 1:
            pid = int(_status(pid)[1])
            if pid == self._guardian:
                return True
        return False


class _As:
    """The rights of a process, where they are others than those of the supervisor."""

    def __init__(self, pid: int) -> None:
        status = os.stat(f"/proc/{pid}")
        self._ids = status.st_uid, status.st_gid
        self._own = os.geteuid(), os.getegid()

    def __enter__(self) -> None:
        if self._ids != self._own:
            # Of this thread alone: the functions of the C library change all threads.
            _checked(_libc.syscall(seccomp.number("setresgid"), -1, self._ids[1], -1))
            _checked(_libc.syscall(seccomp.number("setresuid"), -1, self._ids[0], -1))

    def __exit__(self, *_: object) -> None:
        if self._ids != self._own:
            _checked(_libc.syscall(seccomp.number("setresuid"), -1, self._own[0], -1))
            _checked(_libc.syscall(seccomp.number("setresgid"), -1, self._own[1], -1))


def _lies_below(file: int, roots: tuple[bytes, ...]) -> bool:
    status = os.fstat(file)
    for _ in range(3):
        path = os.readlink(b"/proc/self/fd/%d" % file)
        if path.startswith(tuple(name.encode() for name in _UNNAMED)):
            return True
        if not any(path == root or path.startswith(root + b"/") for root in roots):
            return False
        if not status.st_nlink:
            return True
        # The name may be one of another mount namespace.
        try:
            if os.path.samestat(os.lstat(path), status):
                return True
        except OSError:
            continue
    return False


def _host(address: bytes) -> bytes:
    """The bytes of an address of the network; IPv4 within IPv6 as IPv4."""
    family = int.from_bytes(address[:2], sys.byteorder)
    if family == _AF_INET:
        return address[4:8]
    host = address[8:24] if family == _AF_INET6 else b""
    return host[12:] if host[:12] in (_MAPPED, bytes(12)) else host


def _descriptor(call: Call, number: int) -> str:
    if number == _AT_FDCWD:
        return f"/proc/{call.pid}/cwd"
    if number < 0:
        raise OSError(errno.EBADF, "no descriptor")
    return f"/proc/{call.pid}/fd/{number}"


def _process(thread: int) -> int:
    """The process that a thread belongs to."""
    with open(f"/proc/{thread}/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("Tgid:"):
                return int(line.split()[1])
    return thread


def _status(pid: int) -> list[bytes]:
    """State, parent, group and so on."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()


def _group(leader: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if int(_status(int(name))[2]) == leader:
                    found.append(int(name))
            except OSError:
                continue
    return found


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
