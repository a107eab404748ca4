"""What a tool needs to work here, said as data, so that a listing can check it without imports."""

from __future__ import annotations

import os

from hermes.core.errors import UnavailableError

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


class Requirement:
    """A `check_fn` that knows its reason. Touches neither the network nor anything installed."""

    __slots__ = ("env", "extra", "install", "modules", "platforms", "programs")

    def __init__(
        self,
        *,
        modules: tuple[str, ...] = (),
        programs: tuple[str, ...] = (),
        env: tuple[str, ...] = (),
        platforms: tuple[str, ...] = (),
        extra: str = "",
        install: str = "",
    ) -> None:
        self.modules = modules
        self.programs = programs
        self.env = env
        self.platforms = platforms
        self.extra = extra
        self.install = install

    def __call__(self) -> bool:
        return self.missing() is None

    def missing(self) -> str | None:
        """Why it can't work here, with what would help; None when it can."""
        import sys

        if self.platforms and not sys.platform.startswith(self.platforms):
            return f"works on {' and '.join(self.platforms)} only"
        absent = [f"Python package {m}" for m in self.modules if not _importable(m)]
        absent += [f"program {p}" for p in self.programs if not _on_path(p)]
        absent += [f"environment variable {v}" for v in self.env if not os.environ.get(v)]
        if not absent:
            return None
        return f"missing {', '.join(absent)}{self.remedy}"

    @property
    def remedy(self) -> str:
        """How to get it, as the end of a sentence."""
        command = self.install or (
            f"pip install 'hermes-tools[{self.extra}]'" if self.extra else ""
        )
        return f"; {command}" if command else ""

    def to_dict(self) -> dict[str, Any]:
        """The requirement as plain values; empty ones left out."""
        return {slot: value for slot in self.__slots__ if (value := getattr(self, slot))}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Requirement:
        """What `to_dict` made, back again."""
        several: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
        return cls(**several)


def needs(
    *modules: str,
    programs: tuple[str, ...] | str = (),
    env: tuple[str, ...] | str = (),
    platforms: tuple[str, ...] | str = (),
    extra: str = "",
    install: str = "",
) -> Requirement:
    """A `check_fn`: the named packages, programs and environment variables must be there."""

    def several(value: tuple[str, ...] | str) -> tuple[str, ...]:
        return (value,) if isinstance(value, str) else tuple(value)

    return Requirement(
        modules=modules,
        programs=several(programs),
        env=several(env),
        platforms=several(platforms),
        extra=extra,
        install=install,
    )


def require(module: str, *, extra: str = "") -> ModuleType:
    """Import an optional package, or raise `UnavailableError` naming the extra that brings it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        wanted = Requirement(modules=(module.partition(".")[0],), extra=extra)
        raise UnavailableError(
            f"{module} can't be imported: {error}", hint=wanted.remedy[2:]
        ) from None


def _importable(module: str) -> bool:
    from importlib.util import find_spec

    try:
        # Only the top: asking for a submodule would import its parents.
        return find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def _on_path(program: str) -> bool:
    from shutil import which

    return which(program) is not None
