"""Naming the version of a package that is fetched to be run, so that it stays the same one."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.mcp.client.packages import Package

_SECONDS = 20.0
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")


def newest(package: Package) -> str:
    """The newest version of a package, asked of where packages come from here; nothing if unknown.

    The person's own tools are asked, so that mirrors and private registries are honoured.
    """
    command = (
        ["npm", "view", package.name, "version"]
        if package.ecosystem == "npm"
        else [sys.executable, "-m", "pip", "index", "versions", package.name]
    )
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = _VERSION.search(done.stdout) if done.returncode == 0 else None
    return found.group() if found else ""


def with_version(args: Sequence[str], package: Package, version: str) -> list[str]:
    """A command's arguments with the package spelled with that version."""
    joined = f"{package.name}{'@' if package.ecosystem == 'npm' else '=='}{version}"
    as_given = {package.name, f"{package.name}@{package.version}"}
    found = []
    for word in args:
        option, equals, value = word.partition("=")
        if word in as_given:
            found.append(joined)
        elif equals and option.startswith("-") and value in as_given:
            found.append(f"{option}={joined}")
        else:
            found.append(word)
    return found
