"""Lazy exports of a package: each name is imported from its module on first access."""

from __future__ import annotations

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable


def names_from(package: str, modules: dict[str, str]) -> Callable[[str], object]:
    """A `__getattr__` for a package.

    `modules` maps a module of the package, or a full module name, to the names it exports.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        import sys
        from importlib import import_module

        module = homes[name]
        full = module if module.startswith("hermes.") else f"{package}.{module}"
        value: object = getattr(import_module(full), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
