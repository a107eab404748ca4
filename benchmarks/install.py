"""What a base install brings: distributions and megabytes, in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path(__file__).parent.parent


def rows() -> Iterator[Row]:
    """Installs without extras into a fresh environment and looks at it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        packages = next(Path(folder).glob("lib/python*/site-packages"))
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "--quiet",
                "install",
                "--no-compile",
                "--target",
                packages,
                _ROOT,
            ],
            check=True,
        )
        found = list(packages.glob("*.dist-info"))
        size = sum(
            f.stat().st_size for f in packages.rglob("*") if f.is_file() and not f.is_symlink()
        )
        yield Row("base install", len(found), "distributions", 30)
        yield Row("base install", size / 1e6, "MB", 80)
        assert os.path.isdir(packages / "hermes")
