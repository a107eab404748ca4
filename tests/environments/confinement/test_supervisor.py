"""The supervisor of Landlock: calls on files inside work, those on files outside fail."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.environments.confinement.conftest import require

from hermes.environments.confinement import ConfinedEnvironment, ConfinedMachine, Settings, landlock

PYTHON = "python3 - <<'END'\nimport ctypes, os, socket, threading\n{}\nEND"


def environment(work: Path, *, network: str = "open") -> ConfinedEnvironment:
    settings = Settings(network=network)
    machine = ConfinedMachine(str(work), settings, task="s", mechanisms=["landlock"])
    return ConfinedEnvironment(str(work), settings, machine=machine)


@pytest.fixture
def confined(tmp_path: Path) -> Iterator[ConfinedEnvironment]:
    require("landlock")
    (tmp_path / "work").mkdir()
    made = environment(tmp_path / "work")
    yield made
    made.cleanup()


def run(confined: ConfinedEnvironment, code: str) -> str:
    done = confined.execute(PYTHON.format(code), timeout=60)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_every_way_to_change_a_file_inside_works(confined: ConfinedEnvironment) -> None:
    said = run(
        confined,
        """
open("a", "w").close(); os.symlink("a", "link"); os.mkdir("d"); open("d/b", "w").close()
os.chmod("a", 0o640); print(oct(os.stat("a").st_mode & 0o777))
file = os.open("a", os.O_RDWR); os.fchmod(file, 0o604); print(oct(os.stat("a").st_mode & 0o777))
os.chmod(f"/proc/self/fd/{file}", 0o600); print(oct(os.stat("link").st_mode & 0o777))
folder = os.open("d", os.O_RDONLY); os.chmod("b", 0o611, dir_fd=folder)
os.chdir("d"); os.chmod("../link", 0o622); os.chdir("..")
print(oct(os.stat("d/b").st_mode & 0o777), oct(os.stat("a").st_mode & 0o777))
os.utime("a", (5, 6)); os.utime(file, (7, 8)); print(os.stat("a").st_atime, os.stat("a").st_mtime)
os.utime("link", (1, 2), follow_symlinks=False)
print(os.lstat("link").st_mtime, os.stat("a").st_mtime)
os.utime("a"); print(os.stat("a").st_mtime > 1e9)
os.chown("a", os.getuid(), -1); os.lchown("link", -1, os.getgid())
os.unlink("a"); os.fchmod(file, 0o600); print(oct(os.fstat(file).st_mode & 0o777))
one, other = os.pipe(); os.fchmod(one, 0o600)
os.fchmod(os.memfd_create("m"), 0o600)
try: os.chmod("missing", 0o600)
except FileNotFoundError: print("missing")
""",
    )

    assert said.split("\n") == [
        "0o640", "0o604", "0o600", "0o611 0o622", "7.0 8.0", "2.0 8.0", "True", "0o600", "missing",
        "",
    ]  # fmt: skip


def test_a_name_that_changes_while_it_is_judged_changes_nothing_outside(
    confined: ConfinedEnvironment, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    outside.chmod(0o600)
    run(
        confined,
        f"""
inside = os.path.abspath("inside").encode(); open(inside, "w").close()
outside = {str(outside)!r}.encode()
memory = ctypes.create_string_buffer(inside, 4096)
libc = ctypes.CDLL(None); ended = False
def swap():
    while not ended:
        ctypes.memmove(memory, outside + b"\\0", len(outside) + 1)
        ctypes.memmove(memory, inside + b"\\0", len(inside) + 1)
        try: os.symlink(outside, "n"); os.rename("n", "l"); os.symlink(inside, "n"); os.rename("n", "l")
        except OSError: pass
thread = threading.Thread(target=swap); thread.start()
done = [libc.chmod(memory, 0o777) for _ in range(1500)]
done += [libc.chmod(b"l", 0o777) for _ in range(1500)]
ended = True; thread.join()
""",
    )

    assert outside.stat().st_mode & 0o777 == 0o600


def test_sockets_inside_and_tcp_can_be_reached_and_others_not(
    confined: ConfinedEnvironment, tmp_path: Path
) -> None:
    received: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as outside, socket.create_server(("127.0.0.1", 0)) as tcp:
        outside.bind(str(tmp_path / "outside.sock"))
        outside.listen()
        outside.settimeout(0.2)

        def serve() -> None:
            with tcp.accept()[0] as client:
                received.append(client.recv(10))

        thread = threading.Thread(target=serve)
        thread.start()
        said = run(
            confined,
            f"""
server = socket.socket(socket.AF_UNIX); server.bind("inside.sock"); server.listen()
client = socket.socket(socket.AF_UNIX); client.connect("inside.sock"); client.send(b"x")
print(server.accept()[0].recv(10))
socket.create_connection(("127.0.0.1", {tcp.getsockname()[1]}), 5).send(b"tcp")
for name in ("../outside.sock", "/proc/self/cwd/../outside.sock", "\\0abstract"):
    try: socket.socket(socket.AF_UNIX).connect(name); print("reached")
    except OSError as error: print(error.errno)
try: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); print("datagram")
except OSError as error: print(error.errno)
socket.socketpair()
""",
        )
        thread.join()
        with pytest.raises(TimeoutError):
            outside.accept()

    assert said == "b'x'\n1\n1\n111\n93\n"
    assert received == [b"tcp"]


@pytest.mark.parametrize("mechanism", ["bubblewrap", "landlock"])
def test_addresses_that_give_out_keys_of_a_cloud_machine_are_closed(
    mechanism: str, tmp_path: Path
) -> None:
    require(mechanism)
    code = """
for family, host in ((2, "169.254.169.254"), (10, "::ffff:169.254.169.254"), (2, "127.0.0.1")):
    try: socket.socket(family).connect((host, 9))
    except OSError as error: print(error.errno)
"""
    machine = ConfinedMachine(str(tmp_path), Settings(), task="m", mechanisms=[mechanism])
    confined = ConfinedEnvironment(str(tmp_path), Settings(), machine=machine)
    try:
        assert run(confined, code) == "13\n13\n111\n"
    finally:
        confined.cleanup()


def test_a_descriptor_that_changes_reaches_no_other_socket(
    confined: ConfinedEnvironment, tmp_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX) as outside:
        outside.bind(str(tmp_path / "outside.sock"))
        outside.listen()
        outside.settimeout(0.2)
        run(
            confined,
            """
import struct
local, inet = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_INET)
local.setblocking(False); inet.setblocking(False)
number = os.dup(inet.fileno())
tcp = struct.pack("H", 2) + (9).to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8)
named = struct.pack("H", 1) + b"../outside.sock\\0"
memory = ctypes.create_string_buffer(tcp, 110); libc = ctypes.CDLL(None); ended = False
def swap():
    while not ended:
        os.dup2(local.fileno(), number); ctypes.memmove(memory, named, len(named))
        os.dup2(inet.fileno(), number); ctypes.memmove(memory, tcp, len(tcp))
thread = threading.Thread(target=swap); thread.start()
for _ in range(2000): libc.connect(number, memory, 30)
ended = True; thread.join()
""",
        )
        with pytest.raises(TimeoutError):
            outside.accept()


def test_limits_and_priorities_of_own_processes_can_be_set(confined: ConfinedEnvironment) -> None:
    result = confined.execute(
        "sleep 5 & renice -n 5 -p $!; taskset -p 1 $!; prlimit --pid $! --nofile=50:50; kill $!",
        timeout=20,
    )

    assert result.exit_code == 0, result.stderr


def test_without_scopes_of_the_kernel_signals_stay_inside_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("landlock")
    monkeypatch.setattr(landlock, "abi", lambda: 4)
    confined = environment(tmp_path)
    victim = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        inside = confined.execute(
            "sleep 60 & kill -9 $!; wait $!; test $? = 137 && timeout -k 1 1 sleep 60; "
            "set -m; sleep 60 & kill -- -$!; wait $!; test $? = 143 && kill -0 $$",
            timeout=30,
        )
        assert inside.exit_code == 0, inside.stderr
        for command in (
            f"kill -9 {victim.pid}",
            f"kill -9 -- -{victim.pid}",
            "trap '' TERM; kill -- -1",
            f"python3 -c 'import os; os.kill({victim.pid}, 15)'",
            f"perl -e 'syscall(424, syscall(434, {victim.pid}, 0), 9, 0, 0) == 0 or exit 1'",
        ):
            assert confined.execute(command, timeout=20).exit_code, command
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()
        confined.cleanup()


def test_a_closed_network_has_no_other_protocol(tmp_path: Path) -> None:
    require("landlock")
    confined = environment(tmp_path, network="off")
    try:
        said = run(
            confined,
            """
for family, kind, protocol in ((2, 2, 0), (10, 2, 0), (2, 1, 262), (2, 1, 132), (2, 3, 1), (40, 1, 0)):
    try: socket.socket(family, kind, protocol); print("open", family, kind, protocol)
    except OSError: pass
plain = socket.socket()
for reach in (lambda: plain.connect(("127.0.0.1", 9)), lambda: plain.sendto(b"x", 0x20000000, ("127.0.0.1", 9))):
    try: reach()
    except OSError as error: print(error.errno)
""",
        )
    finally:
        confined.cleanup()

    assert said == "13\n95\n"


def test_the_processes_end_with_the_guardian_or_the_supervisor(tmp_path: Path) -> None:
    require("landlock")
    for killed in ("guardian", "supervisor"):
        confined = environment(tmp_path)
        confined.start("sleep 613.25; true")
        pid = confined.machine.guardian.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(int(children[0]) if killed == "guardian" else pid, 9)

        _until(lambda: not processes("sleep 613.25"))
        assert confined.execute("echo again", timeout=20).stdout == "again\n"
        confined.cleanup()
        _until(lambda: not processes("import supervisor"))


def processes(words: str) -> list[str]:
    from tests.tools.conftest import processes

    return [str(found) for found in processes(words)]


def _until(done: object) -> None:
    import time

    until = time.monotonic() + 20
    while not done() and time.monotonic() < until:  # type: ignore[operator]
        time.sleep(0.05)
    assert done()  # type: ignore[operator]
