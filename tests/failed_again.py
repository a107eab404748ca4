"""Run once more, with nothing beside it, what failed in the last run; say what passed only so.

Many tests meet real programs and wait for them, on machines that may be busy with anything else. A
test that fails twice, the second time alone, has found something. More than a few that fail at once
have, too, and are not asked again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_FAILED = Path(".pytest_cache/v/cache/lastfailed")
_AT_MOST = 4


def main() -> int:
    """The exit code: 0 where each of them passes now."""
    failed = sorted(json.loads(_FAILED.read_text())) if _FAILED.exists() else []
    if not 0 < len(failed) <= _AT_MOST:
        print(f"{len(failed)} failed; more than {_AT_MOST} or none are not run again")
        return 1
    done = subprocess.run([sys.executable, "-m", "pytest", *failed], check=False)
    if done.returncode == 0:
        print("passed only when run again, alone:", *failed, sep="\n  ")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
