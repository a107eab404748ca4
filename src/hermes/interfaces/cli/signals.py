"""Signal handling: SIGTERM and SIGHUP end a command like Ctrl-C, with clean-up."""

from __future__ import annotations

import signal
from contextlib import contextmanager

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NAMES = ("SIGTERM", "SIGHUP")


def end_signals() -> list[int]:
    """The signals that end a program, without those that are ignored (`nohup`)."""
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


@contextmanager
def interruptible(exception: type[BaseException] = KeyboardInterrupt) -> Iterator[None]:
    """In the block the first end signal raises an exception."""
    raised = False

    def interrupt(*_: object) -> None:
        nonlocal raised
        if not raised:
            raised = True
            raise exception

    with _handled(interrupt):
        yield


@contextmanager
def signals_ignored() -> Iterator[None]:
    """In the block, which cleans up, end signals are ignored.

    Closing a terminal window sends two: one by the system, one by the shell in it.
    """
    with _handled(lambda *_: None):
        yield


@contextmanager
def _handled(handler: Callable[..., None]) -> Iterator[None]:
    before = {}
    try:
        for number in end_signals():
            before[number] = signal.signal(number, handler)
    except ValueError:
        # Only the main thread can handle signals.
        pass
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
