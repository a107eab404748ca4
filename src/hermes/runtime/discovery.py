"""Discovery: tool modules by their syntax tree, and a cached manifest of their declarations."""

from __future__ import annotations

import os
import sys

import hermes
from hermes.core.availability import Requirement
from hermes.core.entry import ToolEntry
from hermes.core.errors import HermesError, RegistrationError, ToolError
from hermes.core.log import Log
from hermes.core.paths import home_path, write_private
from hermes.core.registry import registry as shared_registry

TYPE_CHECKING = False

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterator
    from typing import Any

    from hermes.core.registry import ToolRegistry


_PLAIN = (
    "requires_env",
    "is_async",
    "description",
    "emoji",
    "max_result_size_chars",
    "aliases",
    "permissions",
    "reads_when",
    "keeps",
    "untrusted",
    "takes_context",
    "effect",
    "concurrency",
    "locks",
    "timeout_seconds",
    "tags",
    "origin",
    "owner",
    "override",
    "module",
)


class Manifest:
    """Modules by name, each with the digest of its text and the tools it registers."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.modules: dict[str, dict[str, Any]] = {}
        self.extra: dict[str, Any] = {}
        self._changed = False

    @classmethod
    def load(cls, folder: str) -> Manifest:
        """The manifest of the tool modules in `folder`; an empty one when it can't be used."""
        import json

        place = digest(folder.encode())
        manifest = cls(home_path("cache", f"tools-{place}.json"))
        try:
            with open(manifest.path, "rb") as file:
                written = file.read()
        except OSError:
            return manifest
        content = written[_HEAD:-1]
        # Only what we wrote ourselves, to the byte, is believed; all else is made anew.
        if written == _sealed(content):
            found = json.loads(content)
            if found["key"] == _key():
                manifest.modules = found["modules"]
                manifest.extra = found["extra"]
        return manifest

    def tools(self, module: str, digest: str) -> list[ToolEntry] | None:
        """The tools of a module by its digest; None if it is not cached."""
        known = self.modules.get(module)
        if not isinstance(known, dict) or known.get("digest") != digest:
            return None
        try:
            return [_entry(fields) for fields in known["tools"]]
        except (KeyError, TypeError, AttributeError, HermesError):
            # Written by somebody who understood it differently: the module is read again.
            return None

    def remember(self, module: str, digest: str, tools: list[ToolEntry]) -> None:
        """Store the declarations of a module."""
        self.modules[module] = {"digest": digest, "tools": [_fields(entry) for entry in tools]}
        self._changed = True

    def note(self, name: str, value: Any) -> None:
        """Keep something else that is costly to find out."""
        self.extra[name] = value
        self._changed = True

    def keep_only(self, modules: set[str]) -> None:
        """Forget modules that are gone."""
        for gone in self.modules.keys() - modules:
            del self.modules[gone]
            self._changed = True

    def save(self) -> None:
        """Write it, if there is anything new; a home that can't be written costs only time."""
        if not self._changed:
            return
        import json

        text = json.dumps({"key": _key(), "modules": self.modules, "extra": self.extra})
        try:
            write_private(self.path, _sealed(text.encode()))
        except OSError:
            return
        self._changed = False


def digest(text: bytes) -> str:
    """Digest of a module's text."""
    from importlib.util import source_hash

    # What Python itself keys compiled files by; a cache needs no more.
    return source_hash(text).hex()


def _sealed(content: bytes) -> bytes:
    """JSON that carries the digest of its own content."""
    return b'{"digest":"%b","content":%b}' % (digest(content).encode(), content)


_HEAD = len(_sealed(b"")) - 1


def _key() -> str:
    # Entries and schemas depend on what derives them: the interpreter and this package.
    core = os.path.join(os.path.dirname(hermes.__file__), "core")
    changed = max(
        entry.stat().st_mtime_ns
        for folder in (core, os.path.join(core, "schema"))
        for entry in os.scandir(folder)
    )
    return f"{hermes.__version__} {sys.version_info[:3]} {changed}"


def _fields(entry: ToolEntry) -> dict[str, Any]:
    fields = {name: getattr(entry, name) for name in _PLAIN}
    fields.update(name=entry.name, toolset=entry.toolset, parameters=entry.parameters)
    if isinstance(entry.check_fn, Requirement):
        fields["check"] = entry.check_fn.to_dict()
    elif entry.check_fn is not None:
        fields["check"] = "code"
    fields["acts"] = "code" if callable(entry.acts) else entry.acts
    fields["dynamic"] = entry.dynamic_schema_overrides is not None
    return fields


def _entry(fields: dict[str, Any]) -> ToolEntry:
    plain = {name: fields[name] for name in _PLAIN}
    name, module = fields["name"], fields["module"]
    check = fields.get("check")
    return ToolEntry(
        name,
        fields["toolset"],
        fields["parameters"],
        None,
        check_fn=Requirement.from_dict(check)
        if isinstance(check, dict)
        else LazyFunction(module, name, "check_fn")
        if check
        else None,
        acts=LazyFunction(module, name, "acts") if fields["acts"] == "code" else fields["acts"],
        dynamic_schema_overrides=LazyFunction(module, name, "dynamic_schema_overrides")
        if fields["dynamic"]
        else None,
        **plain,
    )


class LazyFunction:
    """A function of a tool that is in its module: imported when it is first called."""

    __slots__ = ("attribute", "module", "tool")

    def __init__(self, module: str, tool: str, attribute: str) -> None:
        self.module = module
        self.tool = tool
        self.attribute = attribute

    def __call__(self, *arguments: Any) -> Any:
        return self.target()(*arguments)

    def target(self) -> Callable[..., Any]:
        """The function itself."""
        from importlib import import_module

        from hermes.core.registry import registry

        import_module(self.module)
        entry = registry.get(self.tool)
        found: Callable[..., Any] | None = getattr(entry, self.attribute, None)
        if found is None:
            raise RegistrationError(f"{self.module} no longer has a {self.attribute} {self.tool}")
        return found


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
