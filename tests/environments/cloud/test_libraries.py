"""The services' libraries, where they are not installed beside Hermes: in a folder of their own.

They are large and bring versions of others along, so that whoever works on Hermes does without. With
`CI=true` or `HERMES_TEST_CLOUD=1` they are fetched once into a cache and `test_services.py` is run
with them in a process of its own, where nothing of it may be skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LIBRARIES = ("modal", "daytona", "vercel")


@pytest.fixture
def libraries() -> Path:
    """A folder with the libraries of all three services."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [one for name in LIBRARIES for one in project["optional-dependencies"][name]]
    key = sha256(repr((wanted, sys.version_info[:2])).encode()).hexdigest()[:16]
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = caches / "hermes-tests" / f"cloud-{key}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as fresh:
            uv = shutil.which("uv")
            fetch = [uv, "pip"] if uv else [sys.executable, "-m", "pip"]
            words = [*fetch, "install", "--quiet", "--target", f"{fresh}/all", *wanted]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr[-2000:]
            Path(fresh, "all").rename(folder)
    return folder


@pytest.mark.skipif(
    os.environ.get("CI") != "true" and os.environ.get("HERMES_TEST_CLOUD") != "1",
    reason="the libraries of the services are fetched only with CI=true or HERMES_TEST_CLOUD=1",
)
@pytest.mark.skipif(all(map(find_spec, LIBRARIES)), reason="they are installed beside Hermes")
def test_the_services_do_what_is_asked_with_their_own_libraries(libraries: Path) -> None:
    env = {**os.environ, "PYTHONPATH": f"{libraries}{os.pathsep}{ROOT}"}
    # What the libraries leave to be collected is not ours.
    quiet = [
        word
        for kind in (
            "ResourceWarning",
            "DeprecationWarning",
            "pytest.PytestUnraisableExceptionWarning",
        )
        for word in ("-W", f"ignore::{kind}")
    ]
    words = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *quiet]

    done = subprocess.run(
        [*words, str(Path(__file__).with_name("test_services.py"))],
        cwd=ROOT, env=env, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout[-4000:]
    assert "SKIPPED" not in done.stdout
