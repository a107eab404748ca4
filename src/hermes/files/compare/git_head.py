"""A file as the last commit has it, read by a git that runs nothing a repository names."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    Said = subprocess.CompletedProcess[bytes]
    # A place and a script; exit code, output and errors of the script, run in the place's folder.
    Far = Callable[[str, str], tuple[int, bytes, bytes]]

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
_SETTINGS = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": _SILENT,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
}


def committed(
    real_path: str, check: Callable[[], object] = lambda: None, far: Far | None = None
) -> bytes | None:
    """The bytes of a file in `HEAD`; None where the commit does not have it.

    Args:
        check: Called again and again; may raise to stop.
        far: Runs a script beside the file, where the file is on another machine.
    """
    folder, name = os.path.split(real_path)

    def git(*words: str) -> Said:
        return run_git(folder, words, check) if far is None else _far_git(real_path, words, far)

    if far is None and not os.path.isdir(folder):
        raise ToolError(f"{folder} is no folder")
    top = git("rev-parse", "--show-toplevel")
    if top.returncode:
        raise ToolError(
            f"git has nothing for {real_path}: {_said(top)}",
            hint="Compare with another file instead.",
        )
    if git("rev-parse", "--verify", "--quiet", "HEAD^{commit}").returncode:
        raise ToolError(f"the repository of {real_path} has no commit yet")
    blob = f"HEAD:./{name}"
    listed = git("cat-file", "-s", blob)
    if listed.returncode:
        return None
    size = int(listed.stdout)
    if size > MOST_BYTES:
        raise ToolError(
            f"{real_path} has {size} bytes in HEAD, more than {MOST_BYTES} are not read"
        )
    content = git("cat-file", "blob", blob)
    if content.returncode:
        raise ToolError(f"{real_path} can't be read from HEAD: {_said(content)}")
    return content.stdout


def _far_git(real_path: str, words: tuple[str, ...], far: Far) -> Said:
    command = ["git", *_OPTIONS, *words]
    settings = [f"{name}={value}" for name, value in _SETTINGS.items()]
    code, out, err = far(real_path, shlex.join(["env", *settings, *command]))
    if code == 127:
        raise ToolError("git is not installed there")
    return subprocess.CompletedProcess(command, code, out, err)


def run_git(
    folder: str, words: tuple[str, ...], check: Callable[[], object] = lambda: None
) -> Said:
    """Run git in a folder without hooks, filters and the person's settings."""
    command = ["git", "-C", folder, *_OPTIONS, *words]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**_wanted(), **_SETTINGS},
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


def _wanted() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}


def _said(done: Said) -> str:
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else f"exit code {done.returncode}"
