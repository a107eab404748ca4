"""Where there is nothing of Unix, Hermes can be imported, and its file tools work."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_importing_and_reading_need_nothing_that_only_unix_has() -> None:
    program = Path(__file__).parent / "without_posix.py"
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"imports": [], "calls": []}
