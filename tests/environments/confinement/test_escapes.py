"""Commands that try to leave a mark outside of the workspace: none may, by whichever mechanism.

The commands are data (`tests/data/escapes.txt`). Each runs in one confined environment; after each
everything outside is compared with the state before.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
import tempfile
import termios
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from tests.environments.confinement.conftest import require

from hermes.environments.confinement import ConfinedEnvironment, ConfinedMachine, Settings

DATA = Path(__file__).parents[2] / "data" / "escapes.txt"
SECRET = "SECRET-7f3a9c51"
SYSTEM = ("/", "/etc", "/usr/local/bin", "/var/lib", "/opt", "/root")


# Landlock has no rule for one terminal among others; docs and `info` say so.
NOT_BY_LANDLOCK = ("terminals",)


def commands(*, without: Sequence[str] = ()) -> list[str]:
    found, section = [], ""
    for line in DATA.read_text(encoding="utf-8").splitlines():
        if line.startswith("# -- "):
            section = line.removeprefix("# -- ")
        elif line and not line.startswith("#") and section not in without:
            found.append(line)
    return found


class Outside:
    """A person's home, another workspace, our own home, a process and sockets, to be left alone."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "person"
        self.other = folder / "other"
        self.hermes = self.home / ".hermes"
        self.workspace = self.home / "work" / "project"
        for name in (".ssh", ".aws", ".config/gh", ".config/fish", ".config/git", ".cargo/bin",
                     ".config/systemd/user", ".local/bin", ".local/lib", ".cache", "Documents",
                     "empty", ".hermes/plugins", ".hermes/audit", "work/project"):  # fmt: skip
            (self.home / name).mkdir(parents=True, exist_ok=True)
        self.other.mkdir()
        # Package managers may write there.
        self.caches: list[str] = []
        for name in (".ssh/id_rsa", ".aws/credentials", ".git-credentials", ".bash_history",
                     ".hermes/.env", ".hermes/config.yaml", ".config/gh/hosts.yml"):  # fmt: skip
            (self.home / name).write_text(f"{SECRET}\n")
        (self.home / ".netrc").write_text(f"machine x login y password {SECRET}\n")
        (self.home / ".npmrc").write_text(f"//x/:_authToken={SECRET}\n")
        for name in (".bashrc", ".profile", "Documents/letter"):
            (self.home / name).write_text("a line\n")
        (self.home / ".gitconfig").write_text("[user]\n\tname = n\n\temail = e@x\n")
        (self.hermes / "audit" / "audit.jsonl").write_text("{}\n")
        self.victim = subprocess.Popen(
            ["sleep", "600"], env={"TOKEN": SECRET, "PATH": os.environ["PATH"]}, cwd="/"
        )
        self.received: list[bytes] = []
        self.sock = self._listen(str(self.home / "agent.sock"))
        self.abstract = f"hermes-test-{os.getpid()}-{id(self)}"
        self._listen("\0" + self.abstract)
        self.fifo = str(self.home / "fifo")
        os.mkfifo(self.fifo)
        self._pipe = os.open(self.fifo, os.O_RDWR | os.O_NONBLOCK)
        self._terminal, terminal = os.openpty()
        os.set_blocking(self._terminal, False)
        self.tty = os.ttyname(terminal)
        self._tty = terminal
        self.shm, self._memory = _shared_memory(SECRET.encode())
        subprocess.run(["git", "init", "-q", str(self.other / "repo")], check=True)
        git = ["git", "-C", str(self.other / "repo"), "-c", "user.name=n", "-c", "user.email=e@x"]
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
        (self.other / "repo" / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\n")
        subprocess.run([*git, "config", "core.pager", "less"], check=True)
        self.late = str(self.home / "late.sock")

    def command(self, template: str, number: int) -> str:
        """A line of the list with its placeholders filled in."""
        return template.format(
            home=self.home, other=self.other, hermes=self.hermes, tmp=tempfile.gettempdir(),
            mark=f"mark{number}", victim=self.victim.pid, sock=self.sock, asock=self.abstract,
            port=9, late=self.late, fifo=self.fifo, tty=self.tty, shm=self.shm,
        )  # fmt: skip

    def begin(self) -> None:
        """Make what a person makes after the first command."""
        for name in (".kube/config", ".vault-token", ".config/op/session"):
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text(f"{SECRET}\n")
        self._listen(self.late)

    def _listen(self, address: str) -> str:
        server = socket.socket(socket.AF_UNIX)
        server.bind(address)
        server.listen()

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    client.settimeout(2)
                    self.received.append(client.recv(100))

        threading.Thread(target=serve, daemon=True).start()
        self._servers = [*getattr(self, "_servers", []), server]
        return address

    def state(self) -> dict[str, object]:
        """Everything that a command could have changed."""
        found: dict[str, object] = {}
        for root in (self.home, self.other):
            for above, folders, files in os.walk(root):
                if Path(above) == self.workspace.parent or above in self.caches:
                    folders.clear()
                    continue
                for name in [*folders, *files]:
                    path = os.path.join(above, name)
                    status = os.lstat(path)
                    content = b""
                    if os.path.isfile(path) and not os.path.islink(path):
                        content = Path(path).read_bytes()
                    changed = 0 if name in ("work", "project") else status.st_mtime_ns
                    if path in self.caches:
                        continue
                    found[path] = (status.st_mode, status.st_uid, status.st_gid, changed, content)
                    found[path + "@"] = sorted(os.listxattr(path, follow_symlinks=False))
        for folder in (*SYSTEM, tempfile.gettempdir()):
            names = os.listdir(folder) if os.access(folder, os.R_OK) else []
            found[folder] = sorted(name for name in names if name.startswith("mark"))
        found["victim"] = self.victim.poll()
        status_file = Path(f"/proc/{self.victim.pid}/status").read_text()
        found["stopped"] = "T (stopped)" in status_file
        found["limits"] = Path(f"/proc/{self.victim.pid}/limits").read_text()
        found["score"] = Path(f"/proc/{self.victim.pid}/oom_score_adj").read_text()
        found["nice"] = os.getpriority(os.PRIO_PROCESS, self.victim.pid)
        found["cpus"] = os.sched_getaffinity(self.victim.pid)
        found["host"] = socket.gethostname(), Path("/proc/sys/kernel/domainname").read_text()
        found["received"] = list(self.received)
        found["pipe"] = _waiting(self._pipe)
        found["terminal"] = _waiting(self._terminal)
        found["flags"] = termios.tcgetattr(self._tty)[:4], os.stat(self.tty).st_mode
        found["memory"] = self._memory()
        found["keys"] = Path("/proc/keys").read_text().count("mark")
        return found

    def close(self) -> None:
        self.victim.kill()
        self.victim.wait()
        ctypes.CDLL(None).shmctl(self.shm, 0, None)
        for file in (self._pipe, self._terminal, self._tty):
            os.close(file)
        for server in self._servers:
            server.close()


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> Iterator[Outside]:
    # Not below /tmp, which a confined command does not see.
    base = next(path for path in ("/srv", "/var/lib", str(Path.home())) if os.access(path, os.W_OK))
    folder = tempfile.mkdtemp(prefix="hermes-escapes-", dir=base)
    found = Outside(Path(folder))
    monkeypatch.setenv("HOME", str(found.home))
    monkeypatch.setenv("HERMES_HOME", str(found.hermes))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    yield found
    found.close()
    shutil.rmtree(folder, ignore_errors=True)


def _waiting(file: int) -> bytes:
    """What was written to a pipe or terminal since the last look."""
    try:
        return os.read(file, 4096)
    except BlockingIOError:
        return b""


def _shared_memory(content: bytes) -> tuple[int, Callable[[], bytes]]:
    """A segment of System V that holds some bytes; its number, and what reads it."""
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    number = libc.shmget(0, 4096, 0o1600)
    address = libc.shmat(number, None, 0)
    ctypes.memmove(address, content, len(content))
    return (
        number,
        lambda: ctypes.string_at(address, 64) + bytes([libc.shmctl(number, 2, bytes(200)) == 0]),
    )


def prepare(workspace: Path) -> None:
    """The workspace as each command finds it."""
    shutil.rmtree(workspace, ignore_errors=True)
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / "a.txt").write_text("a\n")
    (workspace / "change.patch").write_text("--- a\n+++ b\n@@ -1 +1,2 @@\n a line\n+x\n")
    (workspace / "change2.patch").write_text("--- /dev/null\n+++ new\n@@ -0,0 +1 @@\n+x\n")
    template = workspace.parent / "template.git"
    if not template.exists():
        git = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-C", str(workspace)]
        for words in (["init", "-q"], ["add", "a.txt"], ["commit", "-qm", "a"],
                      ["commit", "-qm", "b", "--allow-empty"]):  # fmt: skip
            subprocess.run([*git, *words], check=True)
        shutil.copytree(workspace / ".git", template)
    else:
        shutil.copytree(template, workspace / ".git")


def difference(before: dict[str, object], after: dict[str, object]) -> list[str]:
    return [key for key in {*before, *after} if before.get(key) != after.get(key)]


@pytest.mark.parametrize("mechanism", ["bubblewrap", "landlock"])
def test_no_command_leaves_a_mark_outside(mechanism: str, outside: Outside) -> None:
    require(mechanism)
    prepare(outside.workspace)
    machine = ConfinedMachine(
        str(outside.workspace), Settings(), task="escapes", mechanisms=[mechanism]
    )
    environment = ConfinedEnvironment(str(outside.workspace), Settings(), machine=machine)
    tried = commands(without=NOT_BY_LANDLOCK if mechanism == "landlock" else ())
    assert len(tried) >= 450
    failures = []
    try:
        environment.execute("true", timeout=20)
        outside.begin()
        environment.execute("true", timeout=20)
        assert machine.plan is not None
        outside.caches = machine.plan.write
        before = outside.state()
        for number, template in enumerate(tried):
            command = outside.command(template, number)
            workspace = outside.workspace
            for name in os.listdir(workspace):
                if name not in (".git", "a.txt", "change.patch", "change2.patch"):
                    path = workspace / name
                    if path.is_dir() and not path.is_symlink():
                        shutil.rmtree(path, ignore_errors=True)
                    else:
                        path.unlink(missing_ok=True)
            environment.execute(command, timeout=20, cwd=str(workspace))
            after = outside.state()
            changed = difference(before, after)
            leaked = [
                str(path) for path in workspace.rglob("*")
                if path.is_file() and not path.is_symlink() and SECRET.encode() in path.read_bytes()
            ]  # fmt: skip
            if changed or leaked:
                failures.append(f"{command}: {changed[:4]} {leaked[:2]}")
                before = after
    finally:
        environment.cleanup()
    assert not failures, "\n".join(failures)
