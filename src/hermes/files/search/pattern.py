"""Search pattern: a regular expression or plain text, for ripgrep and for Python's `re`."""

from __future__ import annotations

import re

from hermes.core.errors import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

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
