"""Server-sent events: bytes as they arrive in, the JSON of each event out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from typing import Any

# What OpenAI's API sends when everything was said.
DONE: Final = "[DONE]"
# No event of an honest server is longer; without a limit one without a line end fills the memory.
_LONGEST = 32 * 1024 * 1024

_decode = msgspec.json.Decoder().decode


class EventError(ValueError):
    """What came is no event of a model's answer."""


class EventReader:
    """Collects bytes; gives the events that are complete, parsed."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        # When set, the last bytes were a comment or a blank: alive, but nothing new.
        self.comments = 0

    def feed(self, chunk: bytes) -> list[Any]:
        """The events that this piece completes: objects, or `DONE`."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > _LONGEST:
            raise EventError(f"an event of more than {_LONGEST:,} bytes")
        events: list[Any] = []
        for line in lines:
            line = line.rstrip(b"\r")
            if not line:
                events += self._complete()
            elif line.startswith(b"data:"):
                self._data.append(line[5:].strip())
            elif line.startswith(b":"):
                self.comments += 1
            elif line.startswith(b"{"):
                # Some servers put an error into the stream as it is.
                events += [*self._complete(), _parsed(line)]
        return events

    def end(self) -> list[Any]:
        """The last event, where the line end after it is missing."""
        rest, self._rest = self._rest.strip(), b""
        if rest.startswith(b"data:"):
            self._data.append(rest[5:].strip())
        elif rest.startswith(b"{"):
            return [*self._complete(), _parsed(rest)]
        return self._complete()

    def _complete(self) -> list[Any]:
        data, self._data = self._data, []
        if not data:
            return []
        if len(data) > 1:
            # One event over several lines; or several events, from a server without blank lines.
            try:
                return [_parsed(b"\n".join(data))]
            except EventError:
                pass
        return [_parsed(line) for line in data if line]


def _parsed(data: bytes) -> Any:
    if data == b"[DONE]":
        return DONE
    try:
        value = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        shown = data[:80].decode("utf-8", "replace")
        raise EventError(f"an event that is not JSON: {shown}") from None
    if not isinstance(value, dict):
        raise EventError(f"an event that is no object: {str(value)[:80]}")
    return value
