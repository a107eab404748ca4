"""Every test has a home folder of its own, and can run the real command line in it."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from hermes.core.registry import ToolRegistry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

# A busy machine is no failure.
settings.register_profile("hermes", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fast", settings.get_profile("hermes"), max_examples=10)
settings.load_profile("hermes")

HERMES = Path(sys.executable).with_name("hermes")


def pytest_configure() -> None:
    """Have Ctrl-C end what tests start, also where this was started in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Files and folders with servers, containers, models or many processes, the longest first. They begin
# first, for all workers wait for the last one, and `make test FAST=1` does without them.
SLOW = [
    "promises/test_fresh_clone.py",
    "embedded/test_real_model.py",
    "mcp/conformance",
    "mcp/test_soak.py",
    "environments/test_backends.py",
    "interfaces/cli/test_main.py",
    "environments/confinement",
    "environments/cloud/test_libraries.py",
    "agent/test_crash_recovery.py",
    "embedded/test_download.py",
    "files/archives/test_seven_zip.py",
    "interfaces/cli/test_mcp.py",
    "environments/cloud",
    "interfaces/chat",
    "interfaces/cli",
    "mcp",
    "environments",
    "docs",
    "promises/test_gate_matrix.py",
    "promises/test_mcp_security_cases.py",
    "promises/test_start_up.py",
    "promises/test_without_posix.py",
    "tools/test_process.py",
    "stores/memory/test_memory_store.py",
    "stores/sessions/test_crashes.py",
    "stores/checkpoints/test_crashes.py",
    "agent/delegation/test_crashes.py",
]


def _slow(path: Path) -> int | None:
    """The place of a file among the slow ones."""
    tests = Path(__file__).parent
    return next((n for n, slow in enumerate(SLOW) if path.is_relative_to(tests / slow)), None)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import nothing that is left out anyway."""
    if config.option.markexpr == "not slow" and _slow(collection_path) is not None:
        return True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {path: _slow(path) for path in {item.path for item in items}}
    for item in items:
        if places[item.path] is not None:
            item.add_marker("slow")
    items.sort(key=lambda item: len(SLOW) if (place := places[item.path]) is None else place)


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """New folders without end, a hundred in each; pytest's own are thousands in one, all read anew."""
    base = tmp_path_factory.mktemp("t")
    return (base / str(n // 100) / str(n % 100) for n in itertools.count())


@pytest.fixture
def tmp_path(folders: Iterator[Path]) -> Path:
    """A new, empty folder."""
    folder = next(folders)
    folder.mkdir(mode=0o700, parents=True)
    return folder


@pytest.fixture(autouse=True)
def home(folders: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """This test's `HERMES_HOME`; it does not exist yet."""
    folder = next(folders)
    folder.mkdir(mode=0o700, parents=True)
    monkeypatch.setenv("HERMES_HOME", str(folder / "hermes"))
    return folder / "hermes"


def approve_plugins(home: Path) -> None:
    """Approve the plugins of a home as they are now, as `hermes plugins approve` does."""
    from hermes.runtime.plugins import TrustStore

    for path in (home / "plugins").iterdir():
        if path.suffix == ".py" or path.is_dir():
            TrustStore(str(home / "trust.json")).give(str(path))


@pytest.fixture
def registry() -> ToolRegistry:
    """A registry with nothing in it."""
    return ToolRegistry()


class CommandLine:
    """Runs the installed `hermes` in this test's home, with nobody at the terminal."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.home = home
        self.folder = folder

    def environment(self, **changes: str | None) -> dict[str, str]:
        """The variables a command is run with; None takes one away."""
        unwanted = ("NO_COLOR", "COLUMNS", "TERM", "DISPLAY", "WAYLAND_DISPLAY", "PYTHONPATH")
        wanted: dict[str, str | None] = {k: v for k, v in os.environ.items() if k not in unwanted}
        wanted |= {"HERMES_HOME": str(self.home), "PYTHONWARNINGS": "error", **changes}
        return {name: value for name, value in wanted.items() if value is not None}

    def __call__(
        self,
        *words: str | Path,
        stdin: str | bytes = "",
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Run `hermes WORDS` to its end."""
        data = stdin if isinstance(stdin, bytes) else stdin.encode("utf-8", "surrogateescape")
        done = subprocess.run(
            [str(HERMES), *map(str, words)],
            input=data,
            capture_output=True,
            env=self.environment(**(env or {})),
            cwd=cwd or self.folder,
            timeout=60,
            check=False,
            start_new_session=True,
            **options,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )


@pytest.fixture
def hermes(home: Path, tmp_path: Path) -> CommandLine:
    """The command line, run in an empty folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    return CommandLine(home, folder)
