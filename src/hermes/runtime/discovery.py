"""Tool discovery: finds tool modules by their syntax tree, without importing them, and entry
points of plugins.
"""

from __future__ import annotations

import os
import sys

from hermes.core.errors import ToolError
from hermes.core.log import Log
from hermes.core.registry import registry as shared_registry
from hermes.runtime.manifest import Manifest, digest

TYPE_CHECKING = False

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from hermes.core.entry import ToolEntry
    from hermes.core.registry import ToolRegistry


log = Log("hermes.discovery")

# Stands for a tool whose name only running the module would tell.
UNKNOWN = "?"


class Discovery:
    """Result of a discovery: number of modules, number of imports, errors."""

    def __init__(self) -> None:
        self.modules: list[str] = []
        self.imported: list[str] = []
        # Module -> why its tools are missing.
        self.failed: dict[str, str] = {}


def discover(
    registry: ToolRegistry, folder: str, package: str, manifest: Manifest | None = None
) -> Discovery:
    """Register the tools of every tool module in `folder`, importing new modules only."""
    found = Discovery()
    manifest = Manifest.load(folder) if manifest is None else manifest
    present: set[str] = set()
    for module, text in _modules(folder, package, found):
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
    words = ("tool", "register") if isinstance(text, str) else (b"tool", b"register")
    if not any(word in text for word in words):  # type: ignore[operator]
        return False
    return bool(registrations(text))


def registrations(text: bytes | str) -> list[str]:
    """Names of the tools that a module registers at its top level; `?` where a name is dynamic."""
    import ast

    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # It can't be imported either; say so there, with the reason.
        return [UNKNOWN]
    meant = _imported_names(tree)
    return [name for node in tree.body for name in _registered(node, meant)]


def _imported_names(tree: ast.Module) -> dict[str, str]:
    """Aliases of Hermes' names in this module, as in `import tool as t`."""
    import ast

    return {
        name.asname: name.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "hermes"
        for name in node.names
        if name.asname
    }


def _registered(node: ast.stmt, meant: dict[str, str]) -> Iterator[str]:
    import ast

    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            if _last_name(call.func if call else decorator, meant) == "tool":
                yield _name_in(call, _own_name(node))
    value = getattr(node, "value", None)
    if isinstance(value, ast.Call):
        called = value.func
        if isinstance(called, ast.Attribute) and called.attr == "register":
            # Others have a `register` too, as `atexit` has.
            if _last_name(called.value, meant) == "registry":
                yield _name_in(value, UNKNOWN)
        elif isinstance(called, ast.Call) and _last_name(called.func, meant) == "tool":
            # tool("name", …)(function)
            yield _name_in(called, UNKNOWN)


def _last_name(node: ast.expr, meant: dict[str, str]) -> str:
    name = getattr(node, "id", "")
    return meant.get(name, name) or getattr(node, "attr", "")


def _own_name(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    """The name of a function, or of a `BaseTool` class."""
    import ast

    if not isinstance(node, ast.ClassDef):
        return node.name
    for line in node.body:
        targets = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "name" for target in targets):
            return _text(getattr(line, "value", None)) or UNKNOWN
    # One that is derived from another tool may have its name from there.
    return (
        node.name if any(getattr(base, "id", "") == "BaseTool" for base in node.bases) else UNKNOWN
    )


def _name_in(call: ast.Call | None, otherwise: str) -> str:
    """The name that a call gives; `otherwise` where it gives none."""
    if call is None:
        return otherwise
    given = [keyword.value for keyword in call.keywords if keyword.arg in ("name", None)]
    named = (*given, *call.args[:1])
    return (_text(named[0]) or UNKNOWN) if named else otherwise


def _text(node: ast.expr | None) -> str:
    value = getattr(node, "value", None)
    return value if isinstance(value, str) else ""


def _modules(folder: str, package: str, found: Discovery) -> Iterator[tuple[str, bytes]]:
    """Every module below a folder, with its text, in a fixed order."""
    for entry in sorted(os.scandir(folder), key=lambda item: item.name):
        name = entry.name
        if name.startswith(("_", ".")):
            continue
        if entry.is_dir():
            yield from _modules(entry.path, f"{package}.{name}", found)
        elif name.endswith(".py"):
            module = f"{package}.{name[:-3]}"
            try:
                with open(entry.path, "rb") as file:
                    text = file.read()
            except OSError as error:
                found.failed[module] = f"it can't be read: {error.strerror}"
                continue
            yield module, text


def _imported(module: str, found: Discovery) -> list[ToolEntry] | None:
    from importlib import import_module

    found.imported.append(module)
    try:
        import_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - hides that module's tools only
        log.warning("%s can't be imported: %s: %s", module, type(error).__name__, error)
        found.failed[module] = f"{type(error).__name__}: {error}"
        for entry in shared_registry.entries():
            if entry.module == module:
                shared_registry.deregister(entry.name)
        return None
    return [entry for entry in shared_registry.entries() if entry.module == module]


def _load(entry: ToolEntry, registry: ToolRegistry) -> ToolEntry:
    """The same tool with its handler, its module now imported."""
    from importlib import import_module

    try:
        import_module(entry.module)
    except (Exception, SystemExit) as error:
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


log_entry_points = Log("hermes.plugins")


def entry_points(group: str, manifest: Manifest) -> list[tuple[str, str]]:
    """Names and targets of a group's entry points, sorted."""
    key = _installed()
    known = manifest.extra.get(group)
    if isinstance(known, dict) and known.get("key") == key:
        return [(name, target) for name, target in known["found"]]
    found = sorted(_looked_up(group))
    manifest.note(group, {"key": key, "found": found})
    manifest.save()
    return found


def _looked_up(group: str) -> set[tuple[str, str]]:
    from importlib.metadata import distributions

    found: set[tuple[str, str]] = set()
    seen: set[str] = set()
    for package in distributions():
        try:
            name = package.metadata["Name"]
            if name not in seen:
                # The first one on the path is the one that is imported.
                seen.add(name)
                points = package.entry_points.select(group=group)
                found |= {(point.name, point.value) for point in points}
        except Exception:
            # A package whose description is damaged must not hide the others.
            log_entry_points.info("the entry points of %s can't be read", package, exc_info=True)
    return found


def _installed() -> str:
    """Changes when a package is added to or removed from any place that imports come from."""
    # The first place is the script's own folder or the current one: nothing is installed there.
    places = [place for place in sys.path[1:] if os.path.isdir(place)]
    return repr([(place, os.stat(place).st_mtime_ns) for place in places])
