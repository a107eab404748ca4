"""Packages that a launcher fetches and runs (`npx`, `uvx`): malware check, newest version, version
pin.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ConfigError
from hermes.core.json_text import to_json
from hermes.core.paths import find_program, home_path, write_private

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.mcp.client.settings import Server, Settings


QUERY_SECONDS = 4.0
CACHE_SECONDS = 86_400.0
_NPM = re.compile(r"(@[\w.~-]+/)?[\w.~-]+\Z")
_PYPI = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
# Options with a value.
_VALUE_OPTIONS = frozenset(
    ("-p", "--package", "--registry", "--cache", "--userconfig", "--prefix", "-c", "--call",
     "--python", "--index-url", "--extra-index-url", "--index", "--default-index", "--with",
     "--cache-dir", "--directory", "--project", "--spec", "--pip-args")
)  # fmt: skip
_RUNNERS = {
    "npx": "npm", "bunx": "npm", "pnpx": "npm", "npm": "npm", "pnpm": "npm", "yarn": "npm",
    "bun": "npm", "uvx": "PyPI", "uv": "PyPI", "pipx": "PyPI",
}  # fmt: skip
_VERBS = frozenset(("exec", "x", "dlx", "run", "tool"))


class Package(NamedTuple):
    """A package that a launcher fetches and runs; `version` is empty for the newest."""

    ecosystem: str
    name: str
    version: str

    @property
    def pinned(self) -> bool:
        """Whether the version is exact."""
        return bool(re.match(r"v?\d+(\.\d+)+", self.version))


def package_of(command: str, args: Sequence[str]) -> Package | None:
    """The package that a command line fetches and runs; None if it is no launcher."""
    runner = os.path.basename(command).removesuffix(".cmd").removesuffix(".exe")
    ecosystem = _RUNNERS.get(runner)
    if ecosystem is None:
        return None
    spec = ""
    words = iter(args)
    verbs = 0 if runner in ("npx", "bunx", "pnpx", "uvx") else 2
    for word in words:
        if word in ("-p", "--package", "--from", "--spec"):
            spec = next(words, "")
            break
        if word.startswith(("--package=", "--from=", "--spec=")):
            spec = word.partition("=")[2]
            break
        if word in _VALUE_OPTIONS:
            next(words, "")
        elif word.startswith("-"):
            continue
        elif verbs and word in _VERBS:
            verbs -= 1
        else:
            spec = word
            break
    return _parse(ecosystem, spec)


def _parse(ecosystem: str, spec: str) -> Package | None:
    if ecosystem == "npm":
        name, at, version = spec.rpartition("@")
        if not at or not name:
            name, version = spec, ""
        return Package("npm", name, version) if _NPM.match(name) else None
    parts = re.split(r"(==|@|\[|[<>=!~]=?)", spec, maxsplit=1)
    name = parts[0].strip()
    rest = "".join(parts[1:])
    match = re.search(r"(?:==|@)\s*([\w.!+-]+)", rest)
    return Package("PyPI", name, match.group(1) if match else "") if _PYPI.match(name) else None


async def check_package(server: Server, settings: Settings, notes: list[str]) -> None:
    """Refuse a server whose package is reported as malware; remarks go to `notes`."""
    if server.remote:
        return
    package = package_of(server.command, server.args)
    if package is None:
        return
    del notes[:]
    if not package.pinned:
        notes.append(f"{package.name} is not pinned to a version")
    if settings.osv == "off":
        return
    reports = _cached_reports(package)
    if reports is None:
        try:
            reports = await _query(package, settings.osv_url)
        except (OSError, ValueError) as error:
            problem = f"the malware database can't be reached ({type(error).__name__})"
            if settings.osv == "block":
                raise ConfigError(
                    f"{problem}, and {package.name} is not started unchecked",
                    hint="hermes config set mcp.osv warn",
                ) from None
            notes.append(f"{package.name} was not checked: {problem}")
            return
        _cache_reports(package, reports)
    if reports:
        raise ConfigError(
            f"the package {package.name} is reported as malware: {', '.join(reports[:3])}",
            hint=f"hermes mcp remove {server.name}",
        )


async def _query(package: Package, url: str) -> list[str]:
    import httpx2

    question: dict[str, object] = {
        "package": {"name": package.name, "ecosystem": package.ecosystem}
    }
    if package.pinned:
        question["version"] = package.version.removeprefix("v")
    try:
        async with httpx2.AsyncClient(timeout=QUERY_SECONDS) as client:
            answer = await client.post(url, json=question)
            answer.raise_for_status()
            report = answer.json()
    except httpx2.HTTPError as error:
        raise OSError(str(error)) from error
    reports = report.get("vulns") if isinstance(report, dict) else None
    if not isinstance(report, dict) or not isinstance(reports, list | None):
        # A proxy or captive portal may have answered.
        raise ValueError("the answer is no report")
    ids = [str(item.get("id", "")) for item in reports or () if isinstance(item, dict)]
    return [name for name in ids if name.startswith("MAL-")]


def _cache_file() -> str:
    return home_path("cache", "mcp", "malware-reports.json")


def _load() -> dict[str, list[object]]:
    import json

    try:
        with open(_cache_file(), encoding="utf-8") as file:
            cache = json.load(file)
    except (OSError, ValueError):
        return {}
    return cache if isinstance(cache, dict) else {}


def _cached_reports(package: Package) -> list[str] | None:
    entry = _load().get("/".join(package))
    if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], (int, float)):
        return None
    fresh = 0 <= time.time() - entry[0] < CACHE_SECONDS
    return [str(name) for name in entry[1]] if fresh and isinstance(entry[1], list) else None


def _cache_reports(package: Package, reports: list[str]) -> None:
    cache = {**_load(), "/".join(package): [time.time(), reports]}
    with suppress(OSError):
        # A full disk must not prevent the start of a server.
        write_private(_cache_file(), to_json(cache).encode())


_SECONDS = 20.0
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")


def newest(package: Package) -> str:
    """The newest version of a package by `npm` or `pip`; empty if unknown.

    These tools honour the person's mirrors and private registries.
    """
    command = (
        [find_program("npm") or os.devnull, "view", package.name, "version"]
        if package.ecosystem == "npm"
        else [sys.executable, "-P", "-m", "pip", "index", "versions", package.name]
    )
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            # Not in the project, whose settings of npm are not the person's.
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = _VERSION.search(done.stdout) if done.returncode == 0 else None
    return match.group() if match else ""


def with_version(args: Sequence[str], package: Package, version: str) -> list[str]:
    """The arguments with the package pinned to a version."""
    pinned = f"{package.name}{'@' if package.ecosystem == 'npm' else '=='}{version}"
    spellings = {package.name, f"{package.name}@{package.version}"}
    result = []
    for word in args:
        option, equals, value = word.partition("=")
        if word in spellings:
            result.append(pinned)
        elif equals and option.startswith("-") and value in spellings:
            result.append(f"{option}={pinned}")
        else:
            result.append(word)
    return result
