"""Landlock: restrict this process and its children, by system calls alone.

Runs inside the guardian's process with nothing of Hermes imported. `restrict` takes a plain
dictionary:

    write     folders and files that may be changed
    read      folders and files that may be read and executed; None for all
    devices   files below /dev that may be read and written
    scope     whether signals and abstract sockets outside are closed (ABI 6)
    ports     TCP ports that may be connected to; None leaves the network open (ABI 4)
    abi       the version of Landlock to use
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
_VERSION = 1
# The version that has scopes of signals and abstract sockets.
SCOPES = 6
_PATH_BENEATH, _NET_PORT = 1, 2
_NO_NEW_PRIVS = 38

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE = 1 << 13, 1 << 14
# Every right before REFER. Control of devices stays open, for devices are listed one by one.
_ALL = (1 << 13) - 1
_FILE = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE
_CONNECT = 1 << 1
# The version that has rules for TCP connections.
CONNECT_ABI = 4
_ABSTRACT, _SIGNAL = 1 << 0, 1 << 1

_CAPBSET_DROP = 24
_CAPABILITY_VERSION = 0x20080522
# chown, dac_override, fowner, fsetid, kill, setgid, setuid, net_bind_service
_KEPT = (0, 1, 3, 4, 5, 6, 7, 10)

_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """The version that this kernel has; 0 where there is none."""
    found = int(_libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION)))
    return max(0, found)


def restrict(rules: dict[str, object]) -> None:
    """Put the rules into force for good; raises `OSError`."""
    version = int(str(rules["abi"]))
    handled = _ALL | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    if rules.get("read") is None:
        handled &= ~(EXECUTE | READ_FILE | READ_DIR)
    if not rules.get("write"):
        # Whoever has no rule for it can't move files to another folder, in any later layer either.
        handled &= _REFER
    ports = rules.get("ports")
    network = _CONNECT if ports is not None and version >= 4 else 0
    scoped = (_ABSTRACT | _SIGNAL) if rules.get("scope") and version >= SCOPES else 0
    if not (rules.get("write") or network or scoped):
        return
    attributes = struct.pack("QQQ", handled, network, scoped)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _checked(
        _libc.syscall(
            CREATE_RULESET, ctypes.c_char_p(attributes[:size]), ctypes.c_size_t(size),
            ctypes.c_uint32(0),
        )
    )  # fmt: skip
    reads = (EXECUTE | READ_FILE | READ_DIR) & handled
    for path in rules.get("read") or ():  # type: ignore[attr-defined]
        _add_path(ruleset, path, reads)
    for path in rules.get("list") or ():  # type: ignore[attr-defined]
        _add_path(ruleset, path, READ_DIR & handled)
    for path in rules.get("devices") or ():  # type: ignore[attr-defined]
        _add_path(ruleset, path, (READ_FILE | WRITE_FILE | READ_DIR | _TRUNCATE) & handled)
    for path in rules.get("write") or ("/",):  # type: ignore[attr-defined]
        _add_path(ruleset, path, handled & ~((1 << 6) | (1 << 11)))
    if network:
        for port in ports or ():  # type: ignore[attr-defined]
            data = struct.pack("QQ", _CONNECT, port)
            _checked(_libc.syscall(ADD_RULE, ruleset, _NET_PORT, ctypes.c_char_p(data), 0))
    _checked(_libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(_libc.syscall(RESTRICT_SELF, ruleset, ctypes.c_uint32(0)))
    os.close(ruleset)


def drop_capabilities(*extra: int) -> None:
    """As root: keep what working on the files of all users needs, `extra`, and nothing else."""
    if os.geteuid() != 0:
        return
    numbers = {*_KEPT, *extra}
    for number in range(64):
        if number not in numbers:
            # Numbers that this kernel does not have are errors, and nothing to drop.
            _libc.prctl(_CAPBSET_DROP, number, 0, 0, 0)
    kept = sum(1 << number for number in numbers)
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    data = struct.pack("IIIIII", kept, kept, 0, 0, 0, 0)
    _checked(_libc.capset(ctypes.c_char_p(header), ctypes.c_char_p(data)))


def _add_path(ruleset: int, path: str, rights: int) -> None:
    try:
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(file).st_mode):
            rights &= _FILE
        if rights:
            data = struct.pack("=Qi", rights, file)
            _checked(_libc.syscall(ADD_RULE, ruleset, _PATH_BENEATH, ctypes.c_char_p(data), 0))
    finally:
        os.close(file)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(result)
