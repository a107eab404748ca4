"""Which modules hold tools, seen from their syntax trees alone.

A module in `hermes/tools/` with a top-level `registry.register(...)` call, or a top-level function
or class under `@tool`, is a tool module; others are helpers and are not imported. Adding a tool is
adding a file. A module that can't be imported hides its own tools and nobody else's.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.core.log import Log
from hermes.core.registry import registry as shared_registry
from hermes.runtime.manifest import Manifest, digest

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from hermes.core.entry import ToolEntry
    from hermes.core.registry import ToolRegistry

log = Log("hermes.discovery")


class Discovery:
    """What was found: how many modules, how many of them had to be imported, what failed."""

    def __init__(self) -> None:
        self.modules: list[str] = []
        self.imported: list[str] = []
        # Module -> why its tools are missing.
        self.failed: dict[str, str] = {}


def discover(
    registry: ToolRegistry, folder: str, package: str, manifest: Manifest | None = None
) -> Discovery:
    """Put the tools of every tool module in `folder` into `registry`, importing what is new."""
    found = Discovery()
    manifest = Manifest.load(folder) if manifest is None else manifest
    present: set[str] = set()
    for module, text in _modules(folder, package):
        name = digest(text)
        tools = manifest.tools(module, name)
        if tools is None:
            if not holds_tools(text):
                tools = []
            else:
                tools = _imported(module, found)
                if tools is None:
                    continue
            manifest.remember(module, name, tools)
        present.add(module)
        if tools:
            found.modules.append(module)
        for entry in tools:
            known = registry.get(entry.name)
            if known is None or known.handler is None or known.toolset != entry.toolset:
                registry.add(entry)
    manifest.keep_only(present)
    manifest.save()
    registry.attach(loader=lambda entry: _load(entry, registry))
    return found


def holds_tools(text: bytes | str) -> bool:
    """Whether a module's syntax tree has a top-level registration."""
    word, mark = ("@", "register(") if isinstance(text, str) else (b"@", b"register(")
    if word not in text and mark not in text:  # type: ignore[operator]
        return False
    return bool(registrations(text))


def registrations(text: bytes | str) -> list[str]:
    """The tools that a module registers at its top level, by name where the tree shows it."""
    import ast

    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        # It can't be imported either; say so there, with the reason.
        return ["?"]
    return [name for node in tree.body for name in _registered(node)]


def _registered(node: ast.stmt) -> Iterator[str]:
    import ast

    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            if _last_name(call.func if call else decorator) == "tool":
                yield _name_in(call) or node.name
    value = getattr(node, "value", None)
    if isinstance(value, ast.Call) and _last_name(value.func) == "register":
        yield _name_in(value) or "?"


def _last_name(node: ast.expr) -> str:
    return getattr(node, "id", "") or getattr(node, "attr", "")


def _name_in(call: ast.Call | None) -> str | None:
    import ast

    if call is None:
        return None
    given = [keyword.value for keyword in call.keywords if keyword.arg == "name"]
    for value in (*given, *call.args[:1]):
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return value.value
    return None


def _modules(folder: str, package: str) -> Iterator[tuple[str, bytes]]:
    """Every module below a folder, with its text, in a fixed order."""
    for entry in sorted(os.scandir(folder), key=lambda item: item.name):
        name = entry.name
        if name.startswith(("_", ".")):
            continue
        if entry.is_dir():
            yield from _modules(entry.path, f"{package}.{name}")
        elif name.endswith(".py"):
            with open(entry.path, "rb") as file:
                yield f"{package}.{name[:-3]}", file.read()


def _imported(module: str, found: Discovery) -> list[ToolEntry] | None:
    from importlib import import_module

    found.imported.append(module)
    try:
        import_module(module)
    except Exception as error:  # noqa: BLE001 - whatever fails hides only that module's tools
        log.warning("%s can't be imported: %s: %s", module, type(error).__name__, error)
        found.failed[module] = f"{type(error).__name__}: {error}"
        return None
    return [entry for entry in shared_registry.entries() if entry.module == module]


def _load(entry: ToolEntry, registry: ToolRegistry) -> ToolEntry:
    """The same tool with its handler, its module now imported."""
    from importlib import import_module

    try:
        import_module(entry.module)
    except Exception as error:
        log.warning("%s can't be imported", entry.module, exc_info=True)
        raise ToolError(
            f"{entry.name} can't be loaded: {type(error).__name__}: {error}",
            hint="`hermes doctor` has more.",
        ) from None
    loaded = shared_registry.get(entry.name)
    if loaded is None or loaded.handler is None:
        raise ToolError(f"{entry.module} no longer registers {entry.name}")
    if registry is not shared_registry:
        loaded = registry.add(loaded.replaced(version=entry.version))
    return loaded
