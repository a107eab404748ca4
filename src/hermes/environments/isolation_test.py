"""Isolation test: start a backend and probe files, network, processes and limits from inside."""

from __future__ import annotations

import os
import re
import socket
import tempfile
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.environments.environment import SharedSettings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from hermes.environments.backends import Backend, Setting
    from hermes.environments.command import Isolation
    from hermes.environments.environment import Environment

SECONDS = 30.0
KINDS = ("files", "network", "processes", "memory")
# Tried with a small limit, so that asking for more costs little where nothing holds it back.
_MEMORY = 96 * 1024**2
_PROCESSES = 64
_ASKED = 160 * 1024**2
_LOOK = """
echo it works > hermes-probe && cat hermes-probe && rm -f hermes-probe
echo "user=$(id -u)"
if cat "$SECRET" >/dev/null 2>&1; then echo files=open; else echo files=apart; fi
if [ ! -r /proc/net/tcp ]; then echo network=unknown
elif grep -qi ":$PORT " /proc/net/tcp; then echo network=ours
elif [ "$(wc -l </proc/net/route)" -gt 1 ]; then echo network=another
else echo network=none; fi
if [ ! -d /proc/self ]; then echo processes=unknown
elif [ "$(sed 's/.*) //' "/proc/$PID/stat" 2>/dev/null | cut -d ' ' -f 20)" = "$BEGUN" ]
then echo processes=open; else echo processes=apart; fi
sleep "$LEFT" >/dev/null 2>&1 &
"""
_FILL = f"dd if=/dev/zero of=/dev/null bs={_ASKED} count=1 2>/dev/null"
# Some shells give up when nothing more can be started, others say so and try again. What was
# started holds the pipe, so that the command ends only when there is room again.
_FORK = """
sh -c 'i=0; while [ $i -lt "$MOST" ]; do sleep 1 & i=$((i+1)); done; echo all' 2>&1 | tail -n 3
"""
# More than so many are not started for a trial.
_MOST = 600
_NETWORK = {"none": "none", "another": "a network of its own", "ours": "open: this machine's"}
_PROCESS = {"apart": "kept apart", "open": "open: ours can be seen"}
_AT_MOST = re.compile(r"at most (\d+)")


def probe_backend(backend: Backend, setting: Setting) -> dict[str, Any]:
    """What comes of starting one: whether it works, and what was found of each kind of wall.

    `problems` has what was promised and is not kept; `problem` and `hint` why it did not start.
    """
    report: dict[str, Any] = {"name": backend.name, "works": False, "problems": []}
    begun = time.monotonic()
    place: Environment | None = None
    # A command line that nobody else has.
    left = str(10**8 + int.from_bytes(os.urandom(4), "big"))
    with tempfile.TemporaryDirectory(prefix="hermes-test-", ignore_cleanup_errors=True) as folder:
        try:
            place = backend.make(folder, _small(setting), SharedSettings(task="test"))
            _try(place, report, left)
        except HermesError as error:
            report["problem"] = str(error)
            report["hint"] = error.hint
        except OSError as error:
            # Such as no more processes or files to be had.
            report["works"], report["problem"] = False, str(error)
        finally:
            if place is not None:
                place.cleanup()
    if _runs(left):
        report["problems"].append("processes: something still runs after the end")
    report["seconds"] = round(time.monotonic() - begun, 2)
    return report


def probe_backends(
    backends: Iterable[Backend], setting: Setting, *, seconds: float = SECONDS
) -> list[dict[str, Any]]:
    """The same for several at once; one that takes too long is said to."""
    found: dict[str, dict[str, Any]] = {}
    threads: dict[str, threading.Thread] = {}
    for one in backends:

        def look(one: Backend = one) -> None:
            found[one.name] = probe_backend(one, setting)

        threads[one.name] = threading.Thread(target=look, daemon=True, name=f"try-{one.name}")
        threads[one.name].start()
    until = time.monotonic() + seconds
    for name, thread in threads.items():
        thread.join(max(0.0, until - time.monotonic()))
        if thread.is_alive():
            late = {"problem": f"it gave no answer within {seconds:g} s", "problems": []}
            found[name] = {"name": name, "works": False, **late}
    return [found[name] for name in threads]


def _try(place: Environment, report: dict[str, Any], left: str) -> None:
    """Fill in the report, and leave something running."""
    with tempfile.NamedTemporaryFile(prefix="hermes-secret-") as secret, socket.socket() as ours:
        ours.bind(("127.0.0.1", 0))
        ours.listen()
        given = {
            "SECRET": secret.name,
            "PORT": f"{ours.getsockname()[1]:04X}",
            "PID": str(os.getpid()),
            "BEGUN": _begun(os.getpid()),
            "LEFT": left,
        }
        result = place.execute(_LOOK, timeout=SECONDS, env=given)
    lines = result.stdout.splitlines()
    saw = dict(line.split("=", 1) for line in lines if "=" in line)
    promised = place.info()
    report["works"] = result.exit_code == 0 and lines[:1] == ["it works"]
    report["user"] = saw.get("user", "")
    if not report["works"]:
        report["problem"] = result.stderr.strip()[-300:] or f"exit code {result.exit_code}"
    report["notes"] = result.notes
    report["not_enforced"] = list(promised.not_enforced)
    report.update(_judged(place, promised, saw, report["problems"]))


def _judged(
    place: Environment, promised: Isolation, saw: dict[str, str], problems: list[str]
) -> dict[str, str]:
    """Each kind of wall, in words: what was found, and where that is less than was promised."""
    apart = {
        "files": saw.get("files") == "apart",
        "network": saw.get("network") == "none",
        "processes": saw.get("processes") == "apart",
    }
    limited = {"processes": "", "memory": ""}
    if promised.backend in ("sandbox", "docker"):
        limited["memory"] = _memory(place)
        limited["processes"] = _processes(place, promised)
    words = {
        "files": "kept apart" if apart["files"] else "open: a private file of ours was read",
        "network": _NETWORK.get(saw.get("network", ""), "not known"),
        "processes": _PROCESS.get(saw.get("processes", ""), "not known"),
        "memory": limited["memory"] or promised.memory or "not limited",
    }
    if limited["processes"]:
        words["processes"] += f", {limited['processes']}"
    if promised.backend == "local":
        words["processes"] = promised.processes
    if promised.backend in ("sandbox", "docker", "singularity"):
        broken = [kind for kind, kept in apart.items() if getattr(promised, kind) and not kept]
        problems += [f"{kind}: {words[kind]}" for kind in broken]
    problems += [f"{kind}: {text}" for kind, text in limited.items() if text.startswith("NOT")]
    return words


def _memory(place: Environment) -> str:
    result = place.execute(_FILL, timeout=SECONDS)
    if result.exit_code == 0:
        return "NOT limited: more than allowed was had"
    return "limited"


def _processes(place: Environment, promised: Isolation) -> str:
    found = _AT_MOST.search(promised.processes)
    if found is None:
        return ""
    most = int(found[1]) + 8
    if most > _MOST:
        return f"{found[0]} (not tried)"
    result = place.execute(_FORK, timeout=SECONDS, env={"MOST": str(most)})
    if result.stdout == "all\n":
        return f"NOT limited: {most} were started"
    return "limited"


def _small(setting: Setting) -> Setting:
    """The settings, with little memory and few processes."""
    small = {"terminal.sandbox.memory": _MEMORY, "terminal.docker.memory": _MEMORY}
    small["terminal.docker.pids"] = _PROCESSES
    if os.getuid() == 0:
        # Where there is no cgroup, all that an ordinary user has running would be counted.
        small["terminal.sandbox.pids"] = _PROCESSES
    return lambda name, default: small.get(name) or setting(name, default)


def _begun(pid: int) -> str:
    """When a process began, as Linux counts; a word that no other has elsewhere."""
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[19].decode()
    return "unknown"


def _runs(seconds: str) -> bool:
    """Whether a `sleep` of so many seconds runs on this machine, in a container too."""
    wanted = f"sleep\0{seconds}\0".encode()
    with suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError), open(f"/proc/{name}/cmdline", "rb") as file:
                if file.read(100).endswith(wanted):
                    return True
    return False
