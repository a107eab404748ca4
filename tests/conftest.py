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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow files first: one that begins last is waited for by all other workers."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """New folders, numbered; `mktemp` reads the whole folder of thousands for each."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def home(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """This test's `HERMES_HOME`; it does not exist yet."""
    folder = next(homes)
    folder.mkdir()
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
