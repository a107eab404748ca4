"""Who registers right now: what is defined while a plugin loads belongs to that plugin."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Iterator

_owner: ContextVar[tuple[str, str] | None] = ContextVar("hermes_owner", default=None)


@contextmanager
def owned_by(origin: str, owner: str) -> Iterator[None]:
    """Everything registered inside belongs to `owner`."""
    token = _owner.set((origin, owner))
    try:
        yield
    finally:
        _owner.reset(token)


def current_owner(module: str) -> tuple[str, str]:
    """Origin and owner of something that `module` registers now."""
    if module.startswith("hermes.tools."):
        return "builtin", ""
    return _owner.get() or ("custom", "")
