"""The file that a flood of output goes to, so that none of it has to be in memory."""

from __future__ import annotations

import os

from hermes.core.home import home_path, make_private
from hermes.environments.output.decoding import live_decoder

LARGEST = 32 * 1024 * 1024
# The rest of the disk is not ours to fill.
_SHARE = 10
_PIECE = 1 << 20


class Spill:
    """Takes in bytes up to a limit; `full` from then on. Nothing of it stays unless it is kept."""

    def __init__(self, folder: str | None = None, *, largest: int = LARGEST) -> None:
        self._folder = folder or home_path("artifacts")
        self.path = os.path.join(make_private(self._folder), f"{os.urandom(8).hex()}.new")
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        state = os.fstatvfs(self._file)
        self._room = min(largest, state.f_bavail * state.f_frsize // _SHARE)
        self.size = 0
        self.full = False
        self._ascii = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Take in the next piece, as far as it fits."""
        view = memoryview(data)
        if self.full:
            return
        if len(view) > self._room - self.size:
            view = view[: self._room - self.size]
            self.full = True
        self._ascii = self._ascii and bytes(view).isascii()
        try:
            while view:
                written = os.write(self._file, view)
                self.size += written
                view = view[written:]
        except OSError:
            # The disk is full: what is there is worth keeping.
            self.full = True

    def keep(self) -> str:
        """Close the file; its path. It is UTF-8 text now, and whoever's asked."""
        os.close(self._file)
        if not self._ascii:
            self._make_text()
        return self.path

    def _make_text(self) -> None:
        decoder = live_decoder()
        draft = f"{self.path}.text"
        with open(self.path, "rb") as raw, open(draft, "xb", opener=_private) as text:
            while piece := raw.read(_PIECE):
                text.write(decoder.decode(piece).encode("utf-8", "replace"))
            text.write(decoder.decode(b"", True).encode("utf-8", "replace"))
        os.replace(draft, self.path)

    def discard(self) -> None:
        """Close and remove the file."""
        os.close(self._file)
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            return


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
