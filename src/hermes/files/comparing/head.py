"""A file as the last commit has it, read by a git that runs nothing a repository names."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_BYTES = 64 * 1024 * 1024
_SECONDS = 30
_SILENT = os.devnull
# No hooks, filters, conversion, pagers or prompts, and what is missing is not fetched.
_OPTIONS = (
    "--no-pager",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=",
    "-c",
    f"core.hooksPath={_SILENT}",
    "-c",
    "protocol.allow=never",
)


def committed(place: str, check: Callable[[], object] = lambda: None) -> bytes | None:
    """The bytes of a file in `HEAD`; None where the commit does not have it."""
    folder, name = os.path.split(place)
    if not os.path.isdir(folder):
        raise ToolError(f"{folder} is no folder")
    top = _git(folder, "rev-parse", "--show-toplevel", check=check)
    if top.returncode:
        raise ToolError(
            f"git has nothing for {place}: {_said(top)}", hint="Compare with another file instead."
        )
    if _git(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", check=check).returncode:
        raise ToolError(f"the repository of {place} has no commit yet")
    blob = f"HEAD:./{name}"
    listed = _git(folder, "cat-file", "-s", blob, check=check)
    if listed.returncode:
        return None
    size = int(listed.stdout)
    if size > MOST_BYTES:
        raise ToolError(f"{place} has {size} bytes in HEAD, more than {MOST_BYTES} are not read")
    found = _git(folder, "cat-file", "blob", blob, check=check)
    if found.returncode:
        raise ToolError(f"{place} can't be read from HEAD: {_said(found)}")
    return found.stdout


def _git(
    folder: str, *words: str, check: Callable[[], object]
) -> subprocess.CompletedProcess[bytes]:
    command = ["git", "-C", folder, *_OPTIONS, *words]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
            start_new_session=True,
        )
    except FileNotFoundError:
        raise ToolError("git is not installed here") from None
    with process:
        try:
            waited = 0.0
            while True:
                try:
                    out, err = process.communicate(timeout=0.2)
                except subprocess.TimeoutExpired:
                    check()
                    waited += 0.2
                    if waited > _SECONDS:
                        raise ToolError(f"git gave no answer in {_SECONDS} s") from None
                else:
                    return subprocess.CompletedProcess(command, process.returncode, out, err)
        except BaseException:
            process.kill()
            raise


def _environment() -> dict[str, str]:
    wanted = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    return {
        **wanted,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": _SILENT,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else f"exit code {done.returncode}"
