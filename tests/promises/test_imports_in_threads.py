"""Modules are imported when they are first needed, which may be in two threads at once.

A package that imports its own modules has one thread hold the package and wait for a module, and
another hold the module and wait for the package. `hermes.core.lazy` is the way round that.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import hermes

ROOT = Path(hermes.__file__).parent
# Loaded before there is a second thread, or never by name from outside.
LOADED_FIRST = {
    "hermes.core",
    "hermes.core.arguments",
    "hermes.core.schema",
    "hermes.testing",
}
BOTH_ENDS = """
import sys, threading
failed = []
def load(name):
    try:
        __import__(name)
    except ImportError as error:
        failed.append(error)
names = sys.argv[1:]
barrier = threading.Barrier(len(names))
def run(name):
    barrier.wait()
    load(name)
threads = [threading.Thread(target=run, args=(name,)) for name in names]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
sys.exit(str(failed) if failed else 0)
"""


def test_no_package_imports_its_own_modules() -> None:
    found = set()
    for path in ROOT.rglob("__init__.py"):
        name = ".".join(("hermes", *path.parent.relative_to(ROOT).parts))
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{name}."):
                found.add(name)
    assert found == LOADED_FIRST, "see hermes.core.lazy"


def test_threads_that_begin_at_both_ends_of_a_package_find_it_whole() -> None:
    names = (
        "hermes.environments.backends",
        "hermes.environments.host.process",
        "hermes.environments.host.host_environment",
        "hermes.environments.sandbox.sandbox_environment",
        "hermes.environments.docker",
        "hermes.environments.ssh",
        "hermes.stores.checkpoints.undo",
        "hermes.safety.shell.path_classes",
    )
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", BOTH_ENDS, *names], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
