"""What was typed before a question was shown: it is no answer to it."""

from __future__ import annotations

import sys

TOO_EARLY = "(what was typed before this was asked is no answer to it)"


def forget_typed() -> bool:
    """Throw away what was typed so far, also a line without its end; whether there was any."""
    try:
        import array
        import fcntl
        import termios
    except ImportError:
        # Not on this system.
        return False
    try:
        before = termios.tcgetattr(sys.stdin)
        # Half a line shows up only where no whole lines are waited for.
        loose = [*before]
        loose[3] = before[3] & ~termios.ICANON
        termios.tcsetattr(sys.stdin, termios.TCSANOW, loose)
        try:
            waiting = array.array("i", [0])
            fcntl.ioctl(sys.stdin, termios.FIONREAD, waiting)
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSANOW, before)
    except (termios.error, OSError):
        # It is no terminal.
        return False
    return waiting[0] > 0
