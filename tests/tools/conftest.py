from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tools.bench import Bench

from hermes.runtime.app import App


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """The tools of Hermes in a workspace of their own."""
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    app = App()
    yield Bench(app, work)
    app.close()


def processes(words: str) -> list[int]:
    """The numbers of processes here whose command line begins so."""
    import psutil

    return [
        found.pid
        for found in psutil.process_iter(["cmdline"])
        if " ".join(found.info["cmdline"] or ()).startswith(words)
    ]
