"""Signal handling: SIGTERM and SIGHUP end a command like Ctrl-C, with clean-up."""

from __future__ import annotations

import signal
from contextlib import contextmanager

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NAMES = ("SIGTERM", "SIGHUP")


def heeded() -> list[int]:
    """The signals that tell to end and are not ignored, as they are for what `nohup` started."""
    found = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    return [number for number in found if signal.getsignal(number) is not signal.SIG_IGN]


@contextmanager
def interruptible(how: type[BaseException] = KeyboardInterrupt) -> Iterator[None]:
    """In the block, being told to end raises `how`, once."""
    told = False

    def interrupt(*_: object) -> None:
        nonlocal told
        if not told:
            told = True
            raise how

    with _handled(interrupt):
        yield


@contextmanager
def undisturbed() -> Iterator[None]:
    """In the block, which cleans up, being told to end once more changes nothing.

    A window that is closed tells it twice: the system does, and the shell in it.
    """
    with _handled(lambda *_: None):
        yield


@contextmanager
def _handled(handler: Callable[..., None]) -> Iterator[None]:
    before = {}
    try:
        for number in heeded():
            before[number] = signal.signal(number, handler)
    except ValueError:
        # Only the main thread hears signals.
        pass
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)
