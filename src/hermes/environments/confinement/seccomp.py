"""Seccomp filter: system calls that neither namespaces nor Landlock rules cover.

Runs inside the guardian's process with nothing of Hermes imported. The filter is a list of rules;
the first that matches decides, and a call without a rule is allowed. `install` returns the
descriptor at which a supervisor answers the calls that the filter can't judge by itself.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    # Number of the argument, mask, whether it has to be equal, value; of the low 32 bits.
    Condition: TypeAlias = tuple[int, int, bool, int]
    # Name of the call, what to do, and conditions that must all hold.
    Rule: TypeAlias = tuple[str, int, Iterable[Condition]]

# Numbers of system calls: x86-64, aarch64; -1 where there is none.
NUMBERS = {
    "add_key": (248, 217), "chmod": (90, -1), "chown": (92, -1), "connect": (42, 203),
    "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "fchown": (93, 55),
    "fchownat": (260, 54), "fcntl": (72, 25), "file_setattr": (469, 469), "fremovexattr": (199, 16),
    "fsetxattr": (190, 7), "futimesat": (261, -1), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "io_uring_setup": (425, 425), "ioctl": (16, 29),
    "ioprio_set": (251, 30), "keyctl": (250, 219), "kill": (62, 129), "lchown": (94, -1),
    "lremovexattr": (198, 15), "lsetxattr": (189, 6), "mq_open": (240, 180),
    "mq_unlink": (241, 181), "msgctl": (71, 187), "msgget": (68, 186), "msgrcv": (70, 188),
    "msgsnd": (69, 189), "open_by_handle_at": (304, 265), "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "prlimit64": (302, 261),
    "removexattr": (197, 14), "removexattrat": (466, 466), "request_key": (249, 218),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "seccomp": (317, 277), "semctl": (66, 191), "semget": (64, 190), "semop": (65, 193),
    "semtimedop": (220, 192), "sendmmsg": (307, 269), "sendmsg": (46, 211), "sendto": (44, 206),
    "setpriority": (141, 140), "setresgid": (119, 149), "setresuid": (117, 147),
    "setxattr": (188, 5), "setxattrat": (463, 463), "shmat": (30, 196), "shmctl": (31, 195),
    "shmget": (29, 194), "socket": (41, 198), "socketpair": (53, 199), "tgkill": (234, 131),
    "tkill": (200, 130), "userfaultfd": (323, 282), "utime": (132, -1), "utimensat": (280, 88),
    "utimes": (235, -1),
}  # fmt: skip
MACHINE = os.uname().machine if hasattr(os, "uname") else ""
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_ALLOW, _NOTIFY, _ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALL = 0xFFFFFFFF
_LISTENER = 8
# Marks a condition on a pointer: it must not be NULL.
POINTER = -1

_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK, _AF_VSOCK = 1, 2, 10, 16, 40
_STREAM, _SEQPACKET, _TYPE_MASK = 1, 5, 0xF
_FASTOPEN = 0x20000000
# Commands of ioctl that type into a terminal.
_TYPE_INTO_TERMINAL = (0x5412, 0x541C)
# Those that change flags of a file, which needs no right to write it.
_SET_FLAGS = (0x40086602, 0x40046602, 0x401C5820)
# Those that choose who gets the signals of a descriptor; of fcntl and ioctl.
_SET_OWNER = (("fcntl", 8), ("fcntl", 15), ("ioctl", 0x8901), ("ioctl", 0x8902))

METADATA = (
    "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown", "fchownat", "utime",
    "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr", "fsetxattr", "removexattr",
    "lremovexattr", "fremovexattr",
)  # fmt: skip
SIGNALS = (
    "kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal",
)  # fmt: skip
# Memory, semaphores and queues that all programs of a user share; a namespace has its own.
_SHARED = (
    "mq_open", "mq_unlink", "msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop",
    "semtimedop", "shmat", "shmctl", "shmget",
)  # fmt: skip
_PRIORITIES = ("sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler")

_libc = ctypes.CDLL(None, use_errno=True)


def number(name: str) -> int:
    """The number of a system call on this machine; -1 where there is none."""
    return NUMBERS[name][0 if MACHINE == "x86_64" else 1]


def program(*, files: bool, signals: bool, tcp_only: bool) -> bytes:
    """The filter as a BPF program.

    Connections go to the supervisor; with `files` changes of files and priorities too, with
    `signals` signals. `tcp_only`: no other protocol of the network.
    """
    rules: list[Rule] = [
        (name, _ERRNO | errno.ENOSYS, ())
        for name in ("io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd")
    ]
    rules += [
        (name, _ERRNO | errno.EPERM, ())
        for name in ("add_key", "keyctl", "request_key", "open_by_handle_at")
    ]
    rules.append(("socket", _ERRNO | errno.EAFNOSUPPORT, [(0, _ALL, True, _AF_VSOCK)]))
    rules += [_not_with("ioctl", command) for command in _TYPE_INTO_TERMINAL]
    if tcp_only:
        rules += _tcp_only()
    rules.append(("connect", _NOTIFY, ()))
    # A connection by its first segment.
    for name, index in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
        rules.append((name, _ERRNO | errno.EOPNOTSUPP, [(index, _FASTOPEN, True, _FASTOPEN)]))
    # Datagrams name their target in memory, with each message.
    for name in ("socket", "socketpair"):
        datagram = [
            (0, _ALL, True, _AF_UNIX),
            (1, _TYPE_MASK, False, _STREAM),
            (1, _TYPE_MASK, False, _SEQPACKET),
        ]
        rules.append((name, _ERRNO | errno.EPROTONOSUPPORT, datagram))
    if files:
        rules += _files()
    if signals:
        rules += [_not_with(name, command) for name, command in _SET_OWNER]
        rules += [(name, _NOTIFY, ()) for name in SIGNALS]
    words = [
        # Programs of another architecture, such as 32-bit ones, have other numbers.
        _word(_LOAD, 4),
        _word(_EQUAL, _ARCHITECTURES[MACHINE], 1, 0),
        _word(_RETURN, _ERRNO | errno.ENOSYS),
    ]
    if MACHINE == "x86_64":
        words += [
            _word(_LOAD, 0),
            _word(_AT_LEAST, 0x40000000, 0, 1),
            _word(_RETURN, _ERRNO | errno.ENOSYS),
        ]
    for name, action, conditions in rules:
        if number(name) >= 0:
            words += _rule(number(name), action, conditions)
    return b"".join([*words, _word(_RETURN, _ALLOW)])


def install(words: bytes) -> int:
    """Put the filter into force for good; the descriptor to answer at. Raises `OSError`."""
    buffer = ctypes.create_string_buffer(words, len(words))
    header = struct.pack("HxxxxxxQ", len(words) // 8, ctypes.addressof(buffer))
    _libc.prctl(38, 1, 0, 0, 0)  # no new privileges
    done = _libc.syscall(number("seccomp"), 1, _LISTENER, ctypes.c_char_p(header))
    if done < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return int(done)


def is_supported() -> bool:
    """Whether there are numbers for this machine."""
    return MACHINE in _ARCHITECTURES


def _files() -> list[Rule]:
    rules: list[Rule] = [
        (name, _ERRNO | errno.ENOSYS, ())
        for name in ("setxattrat", "removexattrat", "file_setattr", *_SHARED)
    ]
    rules += [(name, _NOTIFY, ()) for name in METADATA]
    rules += [_not_with("ioctl", command) for command in _SET_FLAGS]
    # Calls on the own process name it by 0.
    rules += [(name, _NOTIFY, [(0, _ALL, False, 0)]) for name in _PRIORITIES]
    rules.append(("prlimit64", _NOTIFY, [(0, _ALL, False, 0), (2, POINTER, False, 0)]))
    for name, own in (("setpriority", 0), ("ioprio_set", 1)):
        rules.append((name, _NOTIFY, [(0, _ALL, False, own)]))
        rules.append((name, _NOTIFY, [(1, _ALL, False, 0)]))
    return rules


def _not_with(name: str, command: int) -> Rule:
    """Refuse a call with that command as its second argument."""
    return name, _ERRNO | errno.EPERM, [(1, _ALL, True, command)]


def _tcp_only() -> list[Rule]:
    """Landlock has rules for TCP alone."""
    refused = _ERRNO | errno.EACCES
    rules: list[Rule] = []
    families = (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK)
    rules.append(("socket", refused, [(0, _ALL, False, family) for family in families]))
    for family in (_AF_INET, _AF_INET6):
        inet = (0, _ALL, True, family)
        rules.append(("socket", refused, [inet, (1, _TYPE_MASK, False, _STREAM)]))
        rules.append(("socket", refused, [inet, (2, _ALL, False, 0), (2, _ALL, False, 6)]))
    return rules


def _rule(call: int, action: int, conditions: Iterable[Condition]) -> list[bytes]:
    """A rule: if it is this call and every condition holds, return the action."""
    blocks: list[list[tuple[int, int, str, str]]] = []
    for index, mask, equal, value in conditions:
        load = (_LOAD, 16 + 8 * index, "", "")
        if mask == POINTER:
            high = (_LOAD, 20 + 8 * index, "", "")
            blocks.append([load, (_EQUAL, 0, "", "hold"), high, (_EQUAL, 0, "fail", "hold")])
        else:
            compare = (_EQUAL, value, *(("hold", "fail") if equal else ("fail", "hold")))
            blocks.append([load, (_AND, mask, "", ""), compare])
    size = sum(map(len, blocks)) + 1
    words = [_word(_LOAD, 0), _word(_EQUAL, call, 0, size)]
    at = 0
    for block in blocks:
        end = at + len(block)
        for code, operand, if_true, if_false in block:
            at += 1
            targets = {"": 0, "hold": end - at, "fail": size - at}
            words.append(_word(code, operand, targets[if_true], targets[if_false]))
    return [*words, _word(_RETURN, action)]


def _word(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
