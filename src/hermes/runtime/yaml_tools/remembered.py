"""Which files are registered, and the last good copy of each: two things kept in the home folder.

Several processes may register at the same time, so every change is made under a lock, on what is
in the file at that moment.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager

from hermes.core.errors import ConfigError
from hermes.core.home import make_private, write_private
from hermes.runtime.manifest import digest

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Iterator

LOCK_SECONDS = 10.0

# Path -> names of tools in it that were unregistered one by one.
Files = dict[str, list[str]]


class Remembered:
    """The list of files and their copies, below `home`/yaml_tools."""

    def __init__(self, home: str) -> None:
        self.folder = os.path.join(home, "yaml_tools")
        self.path = os.path.join(self.folder, "registered.json")

    def files(self) -> Files:
        """The registered files, in the order they were registered; each with what is left out."""
        import json

        try:
            with open(self.path, encoding="utf-8") as file:
                value = json.load(file)
            return {str(row["path"]): [str(n) for n in row["without"]] for row in value["files"]}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"{self.path} can't be read: {type(error).__name__}: {error}",
                hint="Move it away and register the files again.",
            ) from None

    def put(self, path: str, without: list[str]) -> None:
        """Remember a file."""
        with self._changing() as files:
            files[path] = without

    def drop(self, path: str) -> None:
        """Forget a file and its copy."""
        with self._changing() as files:
            files.pop(path, None)
        try:
            os.unlink(self._copy(path))
        except FileNotFoundError:
            return

    def keep(self, path: str, text: str) -> None:
        """Keep this text as the last good version of a file."""
        if self.kept(path) == text:
            return
        with _writing(self.folder):
            write_private(self._copy(path), text.encode())

    def kept(self, path: str) -> str | None:
        """The last good version of a file."""
        try:
            with open(self._copy(path), encoding="utf-8", newline="") as file:
                return file.read()
        except (OSError, UnicodeDecodeError):
            return None

    def _copy(self, path: str) -> str:
        # Not `hashlib`, which costs 3 ms to load at every start.
        name = digest(path.encode("utf-8", "surrogateescape"))
        return os.path.join(self.folder, "last_good", f"{name}.yaml")

    @contextmanager
    def _changing(self) -> Iterator[Files]:
        import json

        with _writing(self.folder), _locked(os.path.join(self.folder, "lock")):
            files = self.files()
            before = dict(files)
            yield files
            if files == before:
                return
            rows = [{"path": path, "without": without} for path, without in files.items()]
            write_private(self.path, json.dumps({"version": 1, "files": rows}, indent=1).encode())


@contextmanager
def _writing(folder: str) -> Iterator[None]:
    try:
        make_private(folder)
        yield
    except OSError as error:
        raise ConfigError(f"{folder} can't be written: {error.strerror}") from None


@contextmanager
def _locked(path: str) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ConfigError(
                        f"another process has held {path} for {LOCK_SECONDS:g} s"
                    ) from None
                time.sleep(0.01)
        yield
    finally:
        os.close(handle)
