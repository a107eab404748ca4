"""What a package gives, each name brought from its own module when it is first asked for.

Modules are imported when they are needed, which may be in two threads at once. A package that
imports its modules has one thread hold the package and wait for a module, and another hold that
module and wait for the package; Python then hands out halves of them.
"""

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

        found: object = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return bring
