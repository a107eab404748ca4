"""One registered file: what was last read from it, and whether it may have changed since."""

from __future__ import annotations

import os
import stat
import time

from hermes.core.errors import ConfigError
from hermes.runtime.yaml_tools.document import MOST_BYTES, DefinitionError, Problem

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from hermes.core.entry import ToolEntry
    from hermes.runtime.yaml_tools.definition import Definition

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
    """What changes when a file does; None when it is not there."""
    try:
        return _signature(os.stat(path))
    except OSError:
        return None


def _signature(status: os.stat_result) -> Signature:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
