"""File state of YAML tools: list of registered files, last valid copy of each, and change
detection.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import ExitStack, contextmanager

from hermes.core.errors import ConfigError
from hermes.core.paths import locked, make_private, write_private
from hermes.runtime.discovery import digest
from hermes.runtime.yaml_tools.document import MOST_BYTES, DefinitionError, Problem

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.core.entry import ToolEntry
    from hermes.runtime.yaml_tools.spec import Definition


if TYPE_CHECKING:
    Signature = tuple[int, int, int, int]

# A file changed this shortly before it was read may change again without its times showing it.
_TICK_NS = 50_000_000


class WatchedFile:
    """A file, the tools that stand for it in the registry, and why there are no newer ones."""

    __slots__ = ("_sure", "entries", "path", "problem", "signature", "text", "tools", "without")

    def __init__(self, path: str, without: list[str]) -> None:
        self.path = path
        # Names of tools in the file that were unregistered one by one.
        self.without = without
        self.entries: dict[str, ToolEntry] = {}
        self.tools: dict[str, Definition] = {}
        self.problem: str | None = None
        self.signature: Signature | None = None
        self._sure = False
        # What was last read, good or not.
        self.text: str | None = None

    def may_have_changed(self) -> bool:
        """Whether the file has to be read again to know."""
        known = self.signature
        return known is None or not self._sure or signature_of(self.path) != known

    def read(self) -> str:
        """The file's text; raises `ConfigError` or `DefinitionError` when there is none."""
        self.signature, self._sure, self.text = None, False, None
        try:
            # Not blocking: a pipe put in the place of the file must not stop every call.
            handle = os.open(self.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except FileNotFoundError:
            raise ConfigError(f"{self.path} is gone") from None
        except OSError as error:
            raise ConfigError(f"{self.path} can't be read: {error.strerror}") from None
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise ConfigError(f"{self.path} is not a file")
            with open(handle, "rb", closefd=False) as stream:
                data = stream.read(MOST_BYTES + 1)
        except OSError as error:
            raise ConfigError(f"{self.path} can't be read: {error.strerror}") from None
        finally:
            os.close(handle)
        self.signature = _signature(status)
        self._sure = time.time_ns() - status.st_ctime_ns > _TICK_NS
        try:
            self.text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            self.text = repr(data)
            line = data.count(b"\n", 0, error.start) + 1
            raise DefinitionError(self.path, [Problem(line, "not UTF-8 text")]) from None
        return self.text


def signature_of(path: str) -> Signature | None:
    """Signature of a file (size, time, inode); None when it is missing."""
    try:
        return _signature(os.stat(path))
    except OSError:
        return None


def _signature(status: os.stat_result) -> Signature:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


LOCK_SECONDS = 10.0

# Path -> names of tools in it that were unregistered one by one.
Files = dict[str, list[str]]


class RegisteredFiles:
    """The list of files and their copies, below `home`/yaml_tools."""

    def __init__(self, home: str) -> None:
        self.folder = os.path.join(home, "yaml_tools")
        self.path = os.path.join(self.folder, "registered.json")

    def files(self) -> Files:
        """The registered files in order, each with the tools left out."""
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
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(path, timeout=LOCK_SECONDS))
        except TimeoutError:
            raise ConfigError(f"another process has held {path} for {LOCK_SECONDS:g} s") from None
        yield
