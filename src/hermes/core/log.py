"""Lazy loggers: `logging` (13 ms to import) is loaded with the first record."""

from __future__ import annotations

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    import logging
    from typing import Any


class Log:
    """`logging.getLogger(name)`, made at the first line."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def warning(self, message: str, *values: object, exc_info: bool = False) -> None:
        """Something that a person may want to know of."""
        self._logger().warning(message, *values, exc_info=exc_info)

    def info(self, message: str, *values: object, exc_info: bool = False) -> None:
        """Log a record for debugging."""
        self._logger().info(message, *values, exc_info=exc_info)

    def exception(self, message: str, *values: Any) -> None:
        """A bug, with its traceback."""
        self._logger().exception(message, *values)

    def _logger(self) -> logging.Logger:
        import logging

        ours = logging.getLogger("hermes")
        if not ours.handlers:
            # Without a handler of the program's own, Python would print warnings to stderr.
            ours.addHandler(logging.NullHandler())
        return logging.getLogger(self.name)
