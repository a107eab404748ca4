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
from hermes.core.home import home_path, write_private
from hermes.core.json_text import to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.mcp.client.settings import Server, Settings


ASK_SECONDS = 4.0
REMEMBERED_SECONDS = 86_400.0
_NPM = re.compile(r"(@[\w.~-]+/)?[\w.~-]+\Z")
_PYPI = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
# Options that are followed by a value, which is no package.
_VALUED = frozenset(
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
    """A package that a command would fetch and run. `version` is empty when any will do."""

    ecosystem: str
    name: str
    version: str

    @property
    def pinned(self) -> bool:
        """Whether exactly one version is meant."""
        return bool(re.match(r"v?\d+(\.\d+)+", self.version))


def package_of(command: str, args: Sequence[str]) -> Package | None:
    """The package that a command line would fetch and run; None when it fetches none."""
    runner = os.path.basename(command).removesuffix(".cmd").removesuffix(".exe")
    ecosystem = _RUNNERS.get(runner)
    if ecosystem is None:
        return None
    named = ""
    words = iter(args)
    verbs = 0 if runner in ("npx", "bunx", "pnpx", "uvx") else 2
    for word in words:
        if word in ("-p", "--package", "--from", "--spec"):
            # What is fetched, whatever is run of it.
            named = next(words, "")
            break
        if word.startswith(("--package=", "--from=", "--spec=")):
            named = word.partition("=")[2]
            break
        if word in _VALUED:
            next(words, "")
        elif word.startswith("-"):
            continue
        elif verbs and word in _VERBS:
            verbs -= 1
        else:
            named = word
            break
    return _read(ecosystem, named)


def _read(ecosystem: str, named: str) -> Package | None:
    if ecosystem == "npm":
        name, at, version = named.rpartition("@")
        if not at or not name:
            name, version = named, ""
        return Package("npm", name, version) if _NPM.match(name) else None
    parts = re.split(r"(==|@|\[|[<>=!~]=?)", named, maxsplit=1)
    name = parts[0].strip()
    rest = "".join(parts[1:])
    found = re.search(r"(?:==|@)\s*([\w.!+-]+)", rest)
    return Package("PyPI", name, found.group(1) if found else "") if _PYPI.match(name) else None


async def check_package(server: Server, settings: Settings, notes: list[str]) -> None:
    """Refuse a server whose package is known malware; remarks go to `notes`."""
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
    reports = _remembered(package)
    if reports is None:
        try:
            reports = await _asked(package, settings.osv_url)
        except (OSError, ValueError) as error:
            trouble = f"the malware database can't be reached ({type(error).__name__})"
            if settings.osv == "block":
                raise ConfigError(
                    f"{trouble}, and {package.name} is not started unchecked",
                    hint="hermes config set mcp.osv warn",
                ) from None
            notes.append(f"{package.name} was not checked: {trouble}")
            return
        _remember(package, reports)
    if reports:
        raise ConfigError(
            f"the package {package.name} is reported as malware: {', '.join(reports[:3])}",
            hint=f"hermes mcp remove {server.name}",
        )


async def _asked(package: Package, url: str) -> list[str]:
    import httpx2

    question: dict[str, object] = {
        "package": {"name": package.name, "ecosystem": package.ecosystem}
    }
    if package.pinned:
        question["version"] = package.version.removeprefix("v")
    try:
        async with httpx2.AsyncClient(timeout=ASK_SECONDS) as client:
            answer = await client.post(url, json=question)
            answer.raise_for_status()
            found = answer.json()
    except httpx2.HTTPError as error:
        raise OSError(str(error)) from error
    reports = found.get("vulns") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(reports, list | None):
        # Somebody else answers in its place: that is no word on the package.
        raise ValueError("what was answered is no report")
    named = [str(one.get("id", "")) for one in reports or () if isinstance(one, dict)]
    return [name for name in named if name.startswith("MAL-")]


def _place() -> str:
    return home_path("cache", "mcp", "malware-reports.json")


def _load() -> dict[str, list[object]]:
    import json

    try:
        with open(_place(), encoding="utf-8") as file:
            known = json.load(file)
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _remembered(package: Package) -> list[str] | None:
    said = _load().get("/".join(package))
    if not isinstance(said, list) or len(said) != 2 or not isinstance(said[0], (int, float)):
        return None
    fresh = 0 <= time.time() - said[0] < REMEMBERED_SECONDS
    return [str(one) for one in said[1]] if fresh and isinstance(said[1], list) else None


def _remember(package: Package, reports: list[str]) -> None:
    known = {**_load(), "/".join(package): [time.time(), reports]}
    with suppress(OSError):
        # A full disk must not keep a server from being started; it is asked again then.
        write_private(_place(), to_json(known).encode())


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
