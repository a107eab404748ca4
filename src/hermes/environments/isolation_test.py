"""Isolation test: start a backend, and probe files, network, processes and limits from inside.

A small command looks for a file, a socket and a process of this program; two more ask for too much
memory and too many processes. At the end this machine is searched for processes that were left.
"""

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
from hermes.environments.host.process_table import start_time

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from hermes.environments.backends import Backend, Setting
    from hermes.environments.command import Isolation
    from hermes.environments.environment import Environment

SECONDS = 30.0
KINDS = ("files", "network", "processes", "memory")
# Small limits, so that an attempt to exceed them costs little if they are not enforced.
_MEMORY_LIMIT = 96 * 1024**2
_PROCESS_LIMIT = 64
_MEMORY_ASKED = 160 * 1024**2
_PROBE = """
echo it works > hermes-probe && cat hermes-probe && rm -f hermes-probe
echo "user=$(id -u)"
if cat "$SECRET" >/dev/null 2>&1; then echo files=open; else echo files=apart; fi
if [ ! -r /proc/net/tcp ]; then echo network=unknown
elif grep -qi ":$PORT " /proc/net/tcp; then echo network=ours
elif [ "$(wc -l </proc/net/route)" -gt 1 ]; then echo network=another
else echo network=none; fi
if [ ! -d /proc/self ]; then echo processes=unknown
elif [ "$(sed 's/.*) //' "/proc/$PID/stat" 2>/dev/null | cut -d ' ' -f 20)" = "$STARTED" ]
then echo processes=open; else echo processes=apart; fi
sleep "$LEFT" >/dev/null 2>&1 &
"""
_ALLOCATE = f"dd if=/dev/zero of=/dev/null bs={_MEMORY_ASKED} count=1 2>/dev/null"
# Each child outlives the time it takes to start all. Some shells give up when no more can be
# started, others report it and try again. The second loop runs without a process of its own.
_FORK = """
sh -c 'i=0; while [ $i -lt "$COUNT" ]; do sleep 5 & echo $! >>hermes-pids; i=$((i+1)); done
  echo all' 2>&1
while read -r p; do kill "$p"; done <hermes-pids
rm -f hermes-pids
"""
# No more than this are started for a test.
_MAX_FORKS = 600
_NETWORK = {"none": "none", "another": "a network of its own", "ours": "open: this machine's"}
_PROCESSES = {"apart": "kept apart", "open": "open: ours can be seen"}
_AT_MOST = re.compile(r"at most (\d+)")


def probe_backend(backend: Backend, setting: Setting) -> dict[str, Any]:
    """Start a backend and test it: whether it works, and one finding per kind of isolation.

    `problems` has isolation that is promised and not enforced; `problem` and `hint` say why it did
    not start.
    """
    report: dict[str, Any] = {"name": backend.name, "works": False, "problems": []}
    start = time.monotonic()
    environment: Environment | None = None
    # Makes the command line of a `sleep` unique.
    left = str(10**8 + int.from_bytes(os.urandom(4), "big"))
    with tempfile.TemporaryDirectory(prefix="hermes-test-", ignore_cleanup_errors=True) as folder:
        try:
            environment = backend.make(folder, _small(setting), SharedSettings(task="test"))
            _probe(environment, report, left)
        except HermesError as error:
            report["problem"] = str(error)
            report["hint"] = error.hint
        except OSError as error:
            # For example, out of processes or descriptors.
            report["works"], report["problem"] = False, str(error)
        finally:
            if environment is not None:
                environment.cleanup()
    if _is_running(left):
        report["problems"].append("processes: something still runs after the end")
    report["seconds"] = round(time.monotonic() - start, 2)
    return report


def probe_backends(
    backends: Iterable[Backend], setting: Setting, *, seconds: float = SECONDS
) -> list[dict[str, Any]]:
    """Test several backends at once; one that takes too long gets a report that says so."""
    reports: dict[str, dict[str, Any]] = {}
    threads: dict[str, threading.Thread] = {}
    for backend in backends:

        def probe(backend: Backend = backend) -> None:
            reports[backend.name] = probe_backend(backend, setting)

        thread = threading.Thread(target=probe, daemon=True, name=f"test-{backend.name}")
        threads[backend.name] = thread
        thread.start()
    deadline = time.monotonic() + seconds
    for name, thread in threads.items():
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            late = {"problem": f"it gave no answer within {seconds:g} s", "problems": []}
            reports[name] = {"name": name, "works": False, **late}
    return [reports[name] for name in threads]


def _probe(environment: Environment, report: dict[str, Any], left: str) -> None:
    """Fill in the report, and leave a process running."""
    with tempfile.NamedTemporaryFile(prefix="hermes-secret-") as secret, socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        variables = {
            "SECRET": secret.name,
            "PORT": f"{server.getsockname()[1]:04X}",
            "PID": str(os.getpid()),
            "STARTED": start_time(os.getpid()),
            "LEFT": left,
        }
        result = environment.execute(_PROBE, timeout=SECONDS, env=variables)
    lines = result.stdout.splitlines()
    findings = dict(line.split("=", 1) for line in lines if "=" in line)
    promised = environment.info()
    report["works"] = result.exit_code == 0 and lines[:1] == ["it works"]
    report["user"] = findings.get("user", "")
    if not report["works"]:
        report["problem"] = result.stderr.strip()[-300:] or f"exit code {result.exit_code}"
    report["notes"] = result.notes
    report["not_enforced"] = list(promised.not_enforced)
    report.update(_assess(environment, promised, findings, report["problems"]))
    _prove_confinement(environment, report)


def _prove_confinement(environment: Environment, report: dict[str, Any]) -> None:
    from hermes.environments.confinement import ConfinedEnvironment
    from hermes.environments.confinement.confined_environment import NOT_CONFINED
    from hermes.environments.confinement.proof import LIMITS, broken_limits

    if not isinstance(environment, ConfinedEnvironment):
        return
    if not environment.mechanism:
        report["confinement"] = NOT_CONFINED
        return
    broken = broken_limits(environment)
    held = len(LIMITS) - len(broken)
    report["confinement"] = f"{environment.mechanism}: {held} of {len(LIMITS)} limits hold"
    report["problems"] += [f"confinement: not true that {sentence}" for sentence in broken]


def _assess(
    environment: Environment, promised: Isolation, findings: dict[str, str], problems: list[str]
) -> dict[str, str]:
    """A sentence for each kind of isolation; adds to `problems` where less than promised holds."""
    enforced = {
        "files": findings.get("files") == "apart",
        "network": findings.get("network") == "none",
        "processes": findings.get("processes") == "apart",
    }
    limits = {"processes": "", "memory": ""}
    if promised.backend in ("sandbox", "docker"):
        limits["memory"] = _test_memory(environment)
        limits["processes"] = _test_processes(environment, promised)
    texts = {
        "files": "kept apart" if enforced["files"] else "open: a private file of ours was read",
        "network": _NETWORK.get(findings.get("network", ""), "not known"),
        "processes": _PROCESSES.get(findings.get("processes", ""), "not known"),
        "memory": limits["memory"] or promised.memory or "not limited",
    }
    if limits["processes"]:
        texts["processes"] += f", {limits['processes']}"
    if promised.backend == "local":
        texts["processes"] = promised.processes
    if promised.backend in ("sandbox", "docker", "singularity"):
        broken = [kind for kind, held in enforced.items() if getattr(promised, kind) and not held]
        problems += [f"{kind}: {texts[kind]}" for kind in broken]
    problems += [f"{kind}: {text}" for kind, text in limits.items() if text.startswith("NOT")]
    return texts


def _test_memory(environment: Environment) -> str:
    result = environment.execute(_ALLOCATE, timeout=SECONDS)
    return "NOT limited: more than allowed was had" if result.exit_code == 0 else "limited"


def _test_processes(environment: Environment, promised: Isolation) -> str:
    match = _AT_MOST.search(promised.processes)
    if match is None:
        return ""
    count = int(match[1]) + 8
    if count > _MAX_FORKS:
        return f"{match[0]} (not tried)"
    result = environment.execute(_FORK, timeout=SECONDS, env={"COUNT": str(count)})
    return f"NOT limited: {count} were started" if result.stdout == "all\n" else "limited"


def _small(setting: Setting) -> Setting:
    """The settings, with little memory and few processes."""
    small = {"terminal.sandbox.memory": _MEMORY_LIMIT, "terminal.docker.memory": _MEMORY_LIMIT}
    small["terminal.docker.pids"] = _PROCESS_LIMIT
    if os.getuid() == 0:
        # Without a cgroup, the limit would count all processes of an ordinary user.
        small["terminal.sandbox.pids"] = _PROCESS_LIMIT
    return lambda name, default: small.get(name) or setting(name, default)


def _is_running(seconds: str) -> bool:
    """Whether a `sleep` with that argument runs on this machine or in a container on it."""
    ending = f"sleep\0{seconds}\0".encode()
    with suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError), open(f"/proc/{name}/cmdline", "rb") as file:
                if file.read(100).endswith(ending):
                    return True
    return False
