"""The request of a search: pattern, filters, counts, deadline."""

from __future__ import annotations

import re
import threading
import time
import warnings
from contextlib import contextmanager, suppress

from hermes.core.errors import ToolError

TYPE_CHECKING = False

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Collection, Iterator, Sequence
    from typing import BinaryIO, Protocol

    from hermes.core.context import Cancellation


if TYPE_CHECKING:

    class Opens(Protocol):
        """A disk, or a wrapper that converts its files."""

        def open(self, path: str) -> BinaryIO:
            """A file for reading, positioned at its start."""
            ...


class Choice:
    """Whether hidden, ignored and binary files are searched."""

    __slots__ = ("binary", "hidden", "ignored")

    def __init__(
        self,
        *,
        hidden: bool = False,
        ignored: bool = False,
        binary: bool = False,
    ) -> None:
        self.hidden = hidden
        self.ignored = ignored
        self.binary = binary


class Skipped:
    """Numbers of skipped entries by reason; a skipped folder counts as one."""

    __slots__ = ("binary", "hidden", "ignored", "large", "links", "unreadable")

    def __init__(self) -> None:
        self.hidden = self.ignored = self.binary = self.large = self.unreadable = self.links = 0


class Query:
    """Request to an engine: search all files below `root`, or only those of `among`."""

    __slots__ = ("above", "among", "choice", "most", "pattern", "root")

    def __init__(
        self,
        root: str,
        pattern: Pattern,
        choice: Choice,
        *,
        among: Collection[str] | None = None,
        most: bool = False,
        above: bool = True,
    ) -> None:
        self.root = root
        self.pattern = pattern
        self.choice = choice
        # Paths below the root.
        self.among = among
        # Whether that is most of what there is.
        self.most = most
        # Whether ignore files of the folders above have a say.
        self.above = above


class Tally:
    """How many lines match in each file that has any, by its path below the root."""

    __slots__ = ("binary", "counts", "finished", "scanned", "skipped")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        # The files that were left out as binary, as the engine names them.
        self.binary: list[str] = []
        self.scanned = 0
        self.skipped = Skipped()
        self.finished = True


SECONDS = 30.0


class SearchDeadline:
    """Deadline, cancellation and progress of one search."""

    def __init__(
        self,
        seconds: float = SECONDS,
        *,
        cancellation: Cancellation | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._cancellation = cancellation
        self._progress = progress
        self._told = time.monotonic()

    @property
    def left(self) -> float:
        """Seconds that are left; never below 0."""
        return max(0.0, self._end - time.monotonic())

    @property
    def expired(self) -> bool:
        """Whether the time is up; raises `CancelledError` when the search was cancelled."""
        if self._cancellation is not None:
            self._cancellation.check()
        return time.monotonic() >= self._end

    def tell(self, text: str) -> None:
        """Say how far the search is, at most once a second."""
        if self._progress is not None and time.monotonic() - self._told >= 1:
            self._told = time.monotonic()
            self._progress(text)

    @contextmanager
    def over(
        self, process: subprocess.Popen[bytes], *, seconds: float | None = None
    ) -> Iterator[None]:
        """Kill a process when its time (all that is left) is up or the search is cancelled."""
        seconds = self.left if seconds is None else min(seconds, self.left)
        timer = threading.Timer(seconds, process.kill)
        timer.daemon = True
        timer.start()
        forget = None
        if self._cancellation is not None:
            forget = self._cancellation.on_cancel(process.kill)
        try:
            yield
        finally:
            timer.cancel()
            if forget is not None:
                forget()
            if process.poll() is None:
                process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    with suppress(OSError):
                        # What it was not told any more.
                        pipe.close()


# NUL and lone surrogates.
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")
# Characters by number or by script.
_NON_ASCII_ESCAPE = re.compile(r"\\[uUxpP]")
# Errors of ripgrep: it wraps a pattern in `(?:…)` before PCRE2 compiles it.
_PCRE2_ERROR = re.compile(r"PCRE2: error compiling pattern at offset (\d+): (.+)")
_RUST_ERROR = re.compile(r"^error: (.+)", re.MULTILINE)
_WRAPPER = len("(?:")


class PatternError(ToolError):
    """The pattern is invalid; `position` is the offset of the fault, None when it is unknown."""

    def __init__(self, reason: str, position: int | None = None) -> None:
        where = "" if position is None else f" at character {position + 1}"
        super().__init__(
            f"invalid pattern{where}: {reason}",
            hint="Escape special characters with a backslash, or use literal=true.",
        )
        self.position = position


class Pattern:
    """A pattern as the caller wrote it."""

    __slots__ = ("ignore_case", "literal", "source")

    def __init__(self, source: str, *, literal: bool = False, ignore_case: bool = False) -> None:
        self.source = source
        self.literal = literal
        self.ignore_case = ignore_case

    @property
    def non_ascii(self) -> bool:
        """Whether it matches characters beyond ASCII: their bytes depend on the encoding."""
        escaped = not self.literal and _NON_ASCII_ESCAPE.search(self.source) is not None
        return escaped or not self.source.isascii()

    @property
    def required(self) -> bytes:
        """Bytes that every match contains, for a quick no; empty when there are none."""
        return b"" if self.ignore_case or not self.literal else self.source.encode()

    def ripgrep_flags(self) -> Sequence[str]:
        """PCRE2 takes over where the default engine does not know the syntax."""
        engine = "--fixed-strings" if self.literal else "--engine=auto"
        return (engine, "--ignore-case") if self.ignore_case else (engine,)

    def python(self) -> tuple[str, int]:
        """The pattern and the flags for `re`; raises `PatternError`."""
        source = re.escape(self.source) if self.literal else self.source
        flags = int(re.IGNORECASE) if self.ignore_case else 0
        try:
            with warnings.catch_warnings():
                # Python warns of sets such as `[[` that a later version may read otherwise.
                warnings.simplefilter("ignore", FutureWarning)
                re.compile(source, flags)
        except re.error as error:
            raise PatternError(error.msg, error.pos) from None
        except (OverflowError, RecursionError) as error:
            raise PatternError(str(error)) from None
        return source, flags


def read_pattern(source: str, *, literal: bool = False, ignore_case: bool = False) -> Pattern:
    """Check that a pattern can match within a line; other errors are reported by the engine."""
    if not source:
        raise ToolError("the pattern is empty", hint="Say what to look for.")
    if "\n" in source:
        raise PatternError("it spans lines, and the search is by line", source.index("\n"))
    if match := _NOT_TEXT.search(source):
        raise PatternError(f"no text contains U+{ord(match[0]):04X}", match.start())
    return Pattern(source, literal=literal, ignore_case=ignore_case)


def ripgrep_error(text: str, pattern: Pattern) -> PatternError | None:
    """The error for ripgrep's message about a pattern; None for any other message."""
    if match := _PCRE2_ERROR.search(text):
        return PatternError(match[2], min(int(match[1]) - _WRAPPER, len(pattern.source) - 1))
    if match := _RUST_ERROR.search(text):
        return PatternError(match[1])
    return None
