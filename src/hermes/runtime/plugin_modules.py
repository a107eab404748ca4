"""How a plugin becomes a module: from a file or folder, or from an installed package.

Trust in a project's plugins is for the text of their files. Python would rather run a compiled
copy lying beside a text, which nobody has looked at; for these plugins it is not given the choice.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    # Gives the plugin's module, or the object in it that has to be called.
    Loader = Callable[[], Any]

PACKAGE = "hermes_plugins"


def from_file(name: str, path: str, *, is_folder: bool, compiled: bool) -> Loader:
    """Imports a file, or a folder by its `__init__.py`; `compiled` allows compiled copies."""
    full_name = f"{PACKAGE}.{name}"

    def load() -> ModuleType:
        from importlib.util import module_from_spec, spec_from_file_location

        _namespace()
        places = [os.path.dirname(path)] if is_folder else None
        loader = None if compiled else _text_loader()(full_name, path)
        if is_folder and not compiled:
            sys.meta_path.insert(0, _TextFinder(full_name))
        spec = spec_from_file_location(
            full_name, path, loader=loader, submodule_search_locations=places
        )
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} can't be imported")
        module = module_from_spec(spec)
        sys.modules[full_name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            forget(name)
            raise
        return module

    return load


def from_package(target: str) -> Loader:
    """Imports what an entry point names: `module`, or `module:object`."""
    module_name, _, inside = target.partition(":")

    def load() -> Any:
        from importlib import import_module

        found: Any = import_module(module_name.strip())
        for part in inside.partition("[")[0].strip().split("."):
            found = getattr(found, part) if part else found
        return found

    return load


def forget(name: str) -> None:
    """Take a plugin's modules away again."""
    full_name = f"{PACKAGE}.{name}"
    for module in [m for m in sys.modules if m == full_name or m.startswith(f"{full_name}.")]:
        del sys.modules[module]


def _namespace() -> None:
    """The package that plugins are imported under."""
    if PACKAGE not in sys.modules:
        from types import ModuleType

        package = ModuleType(PACKAGE)
        package.__path__ = []
        sys.modules[PACKAGE] = package


class _TextFinder:
    """Finds the inner modules of one plugin by their text."""

    def __init__(self, full_name: str) -> None:
        self._below = f"{full_name}."

    def find_spec(
        self,
        name: str,
        places: Sequence[str] | None = None,
        target: ModuleType | None = None,  # noqa: ARG002 - as the import system calls it
    ) -> ModuleSpec | None:
        """The module of that name, if it is this plugin's."""
        if not name.startswith(self._below):
            return None
        from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder

        kinds = ((ExtensionFileLoader, EXTENSION_SUFFIXES), (_text_loader(), [".py"]))
        for place in places or ():
            found = FileFinder(place, *kinds).find_spec(name)
            if found is not None:
                return found
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _text_loader() -> Any:
    from importlib.machinery import SourceFileLoader

    class TextLoader(SourceFileLoader):
        """Compiles the text, whatever compiled copies there are, and leaves none."""

        def get_code(self, fullname: str) -> Any:
            path = self.get_filename(fullname)
            return self.source_to_code(self.get_data(path), path)

    return TextLoader
