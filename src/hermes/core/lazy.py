"""Lazy exports of a package: each name is imported from its module on first access."""

from __future__ import annotations

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable


def names_from(package: str, homes: dict[str, str]) -> Callable[[str], object]:
    """A `__getattr__` for a package; `homes` says which module of it has which name."""

    def bring(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        import sys
        from importlib import import_module

        found: object = getattr(import_module(_module(package, homes[name])), name)
        setattr(sys.modules[package], name, found)
        return found

    return bring


def _module(package: str, home: str) -> str:
    return home if home.startswith("hermes.") else f"{package}.{home}"
