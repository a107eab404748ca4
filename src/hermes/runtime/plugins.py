"""Plugins: tools, toolsets, hooks and commands from the home, the project and installed packages.

Plugins of the home and of a project are trusted by the digest of their source: a new or changed one
is left out until a person approves it. Bytecode files beside the source are not covered by that, so
these plugins are always compiled from source.
"""

from __future__ import annotations

import hashlib
import os
import sys
from typing import TYPE_CHECKING

from hermes.core.errors import ConfigError, HermesError, RegistrationError
from hermes.core.log import Log
from hermes.core.paths import home_path, write_private
from hermes.core.registry import registry as shared_registry
from hermes.runtime.discovery import UNKNOWN, entry_points, registrations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    from hermes.core.entry import ToolEntry
    from hermes.core.registry import ToolRegistry
    from hermes.core.toolsets import Toolset, Toolsets
    from hermes.runtime.discovery import Manifest
    from hermes.runtime.hooks import Hooks


class TrustStore:
    """The trusted folders of one person."""

    def __init__(self, path: str | None = None) -> None:
        self._path = path or home_path("trust.json")

    def all(self) -> dict[str, str]:
        """Trusted places, each with the digest it was trusted at."""
        import json

        try:
            with open(self._path, encoding="utf-8") as file:
                found = json.load(file)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise ConfigError(f"{self._path} can't be read: {error}") from None
        if not isinstance(found, dict):
            raise ConfigError(f"{self._path} can't be read: it holds no places")
        return {str(place): str(seen) for place, seen in found.items()}

    def knows(self, place: str) -> bool:
        """Whether this path was ever trusted, with any content."""
        return os.path.realpath(place) in self.all()

    def trusts(self, place: str) -> bool:
        """Whether this path has exactly the trusted content."""
        place = os.path.realpath(place)
        return self.all().get(place) == fingerprint(place)

    def give(self, place: str) -> str:
        """Trust the present content; its digest."""
        place = os.path.realpath(place)
        if not os.path.exists(place):
            raise ConfigError(f"{place} does not exist")
        seen = fingerprint(place)
        self._write({**self.all(), place: seen})
        return seen

    def revoke(self, place: str) -> bool:
        """Take trust back; whether there was any."""
        place = os.path.realpath(place)
        known = self.all()
        if place not in known:
            return False
        del known[place]
        self._write(known)
        return True

    def _write(self, known: dict[str, str]) -> None:
        import json

        write_private(self._path, json.dumps(known, indent=2, sort_keys=True).encode())


def fingerprint(place: str) -> str:
    """Digest of every file below a path: names, kinds, links and content.

    Links are followed. Bytecode files of Python do not count, so they must not be loaded from
    trusted folders.
    """
    total = hashlib.sha256()
    try:
        for name, kind, content in _files(place, "", frozenset()):
            for part in (os.fsencode(name), kind, content):
                total.update(b"%d:" % len(part) + part)
    except OSError as error:
        raise ConfigError(f"{error.filename or place} can't be read: {error.strerror}") from None
    return total.hexdigest()


def _files(path: str, name: str, above: frozenset[str]) -> Iterator[tuple[str, bytes, bytes]]:
    """Name, kind and content of everything at and below a path."""
    if os.path.islink(path):
        yield name, b"link", os.fsencode(os.readlink(path))
    if os.path.isdir(path):
        real = os.path.realpath(path)
        yield name, b"folder", b""
        if real not in above:
            for inner in sorted(os.listdir(path)):
                if inner != "__pycache__":
                    place = os.path.join(path, inner)
                    yield from _files(place, f"{name}/{inner}", above | {real})
    elif os.path.isfile(path):
        with open(path, "rb") as file:
            yield name, b"file", hashlib.file_digest(file, "sha256").digest()
    else:
        yield name, b"other", b""


if TYPE_CHECKING:
    # Gives the plugin's module, or the object in it that has to be called.
    Loader = Callable[[], Any]

PACKAGE = "hermes_plugins"


def from_file(name: str, path: str, *, is_folder: bool) -> Loader:
    """Imports a file, or a folder by its `__init__.py`, from source."""
    full_name = f"{PACKAGE}.{name}"

    def load() -> ModuleType:
        from importlib.util import module_from_spec, spec_from_file_location

        _namespace()
        places = [os.path.dirname(path)] if is_folder else None
        loader = _text_loader()(full_name, path)
        if is_folder:
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
    """Loader for an entry point: `module`, or `module:object`."""
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
        """Compiles the source, and neither reads nor writes bytecode files."""

        def get_code(self, fullname: str) -> Any:
            path = self.get_filename(fullname)
            return self.source_to_code(self.get_data(path), path)

    return TextLoader


log = Log("hermes.plugins")

GROUP = "hermes.plugins"


class Plugin:
    """One plugin and its state after loading."""

    def __init__(self, name: str, source: str, path: str) -> None:
        self.name = name
        self.source = source  # home, project or package
        self.path = path
        self.declared: list[str] = []
        self.registered: list[str] = []
        self.commands: list[str] = []
        self.problem: str | None = None
        # Whether the problem is that nobody approved it as it is.
        self.untrusted = False
        # Tool -> why it is not there.
        self.missing: dict[str, str] = {}

    @property
    def healthy(self) -> bool:
        """Whether it loaded, and everything it declared is registered."""
        return self.problem is None and not self.missing


class Command:
    """A command that a plugin adds to the command line."""

    __slots__ = ("arguments", "help", "name", "run")

    def __init__(
        self,
        name: str,
        help: str,  # noqa: A002 - as in argparse
        arguments: Callable[[Any], None] | None,
        run: Callable[..., Any],
    ) -> None:
        self.name = name
        self.help = help
        self.arguments = arguments
        self.run = run


class PluginApi:
    """The API passed to a plugin's `register(api)`."""

    def __init__(self, plugin: Plugin, plugins: Plugins) -> None:
        self._plugin = plugin
        self._plugins = plugins
        # What takes each addition back, should the plugin fail further on.
        self.undo: list[Callable[[], object]] = []

    def register_tool(
        self,
        name: str,
        toolset: str,
        schema: dict[str, Any],
        handler: Callable[..., Any],
        **more: Any,
    ) -> None:
        """Add a tool with an explicit schema."""
        more.update(origin="plugin", owner=self._plugin.name)
        self._plugins.registry.register(name, toolset, schema, handler, **more)

    def create_toolset(
        self, name: str, description: str, tools: Iterable[str] = (), includes: Iterable[str] = ()
    ) -> Toolset:
        """Add a toolset."""
        made = self._plugins.toolsets.create(name, description, tools, includes)
        self.undo.append(lambda: self._plugins.toolsets.remove(name))
        return made

    def add_hook(self, name: str, hook: Callable[..., Any]) -> None:
        """Add a hook; see `hermes.runtime.hooks`."""
        self.undo.append(self._plugins.hooks.add(name, hook))

    def add_command(
        self,
        name: str,
        run: Callable[..., Any],
        *,
        help: str = "",  # noqa: A002 - as in argparse
        arguments: Callable[[Any], None] | None = None,
    ) -> None:
        """Add a command: `run(app, options)` after `arguments(parser)` described its options."""
        commands = self._plugins.commands
        if name in commands:
            raise RegistrationError(f'command "{name}" is already there')
        if not name or name.startswith("-") or not name.isprintable() or " " in name:
            raise RegistrationError(f"{name!r:.80} can't be typed as a command")
        commands[name] = Command(name, help, arguments, run)
        self._plugin.commands.append(name)
        self.undo += (lambda: commands.pop(name), lambda: self._plugin.commands.remove(name))


class Plugins:
    """Finds and loads plugins into one registry."""

    def __init__(
        self,
        registry: ToolRegistry,
        toolsets: Toolsets,
        hooks: Hooks,
        *,
        disabled: Iterable[str] = (),
        project: str | None = None,
        trust: TrustStore | None = None,
        manifest: Manifest,
    ) -> None:
        self.registry = registry
        self.toolsets = toolsets
        self.hooks = hooks
        self.commands: dict[str, Command] = {}
        self.found: list[Plugin] = []
        self._disabled = frozenset(disabled)
        self._project = project
        self._trust = trust or TrustStore()
        self._manifest = manifest

    def load(self) -> list[Plugin]:
        """Load every plugin, in the order of their names."""
        places: dict[str, str] = {}
        for plugin, module in sorted(self._candidates(), key=lambda pair: pair[0].name):
            self.found.append(plugin)
            held = places.setdefault(plugin.name, plugin.path)
            if plugin.name in self._disabled:
                plugin.problem, plugin.untrusted = "disabled in the settings", False
            elif held != plugin.path:
                plugin.problem = f"its name is held by the plugin at {held}"
            elif plugin.problem is None:
                self._load(plugin, module)
            if plugin.problem:
                declared = [name for name in plugin.declared if name != UNKNOWN]
                plugin.missing = dict.fromkeys(declared, plugin.problem)
        return self.found

    def _candidates(self) -> Iterator[tuple[Plugin, Loader]]:
        for plugin, module in self._in_folder(home_path("plugins"), "home"):
            command = f"hermes plugins approve {plugin.name}"
            yield self._checked(plugin, self._distrust(plugin.path, command)), module
        folder = os.path.join(self._project, ".hermes", "plugins") if self._project else ""
        if folder and os.path.isdir(folder) and not _same(folder, home_path("plugins")):
            distrust = self._distrust(folder, f"hermes trust {folder}")
            for plugin, module in self._in_folder(folder, "project"):
                yield self._checked(plugin, distrust), module
        for name, target in entry_points(GROUP, self._manifest):
            yield Plugin(name, "package", target), from_package(target)

    @staticmethod
    def _checked(plugin: Plugin, distrust: str | None) -> Plugin:
        plugin.untrusted = distrust is not None
        plugin.problem = distrust or plugin.problem
        return plugin

    def _distrust(self, place: str, command: str) -> str | None:
        """Why the plugins at a path may not be loaded; `command` approves them."""
        try:
            known = self._trust.knows(place)
            if self._trust.trusts(place):
                return None
        except HermesError as error:
            return f"not trusted: {error}"
        what = "changed since it was trusted" if known else "not trusted"
        return f"{what}: review it, then `{command}`"

    def _in_folder(self, folder: str, source: str) -> Iterator[tuple[Plugin, Loader]]:
        try:
            entries = sorted(os.scandir(folder), key=lambda item: item.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            name, ending = os.path.splitext(entry.name)
            if entry.is_dir():
                name, ending = entry.name, ".py"
            if name.startswith((".", "_")) or ending != ".py":
                continue
            start = os.path.join(entry.path, "__init__.py") if entry.is_dir() else entry.path
            plugin = Plugin(name, source, entry.path)
            if not os.path.isfile(start):
                plugin.problem = "it has no __init__.py" if entry.is_dir() else "it is no file"
            elif not name.isidentifier():
                plugin.problem = f"{name!r} is no name that Python can import"
            else:
                plugin.declared, plugin.problem = _declared(entry.path, start)
            yield plugin, from_file(name, start, is_folder=entry.is_dir())

    def _load(self, plugin: Plugin, load: Loader) -> None:
        """Load one plugin whole; of one that fails nothing stays."""
        from contextlib import redirect_stdout

        before, shared_before = self.registry.entries(), shared_registry.entries()
        api = PluginApi(plugin, self)
        with self.registry.collecting() as refused, _owned(plugin.name):
            try:
                # What a plugin prints is no answer of ours.
                with redirect_stdout(sys.stderr):
                    found = load()
                    register = getattr(found, "register", None) or found
                    if callable(register):
                        register(api)
            except (Exception, SystemExit) as error:  # whatever it raises is its own problem
                log.info("plugin %s failed", plugin.name, exc_info=True)
                plugin.problem = f"{type(error).__name__}: {error}"
            if self.registry is not shared_registry:
                self._move(plugin, shared_before)
        if plugin.problem is not None:
            self._take_back(plugin, api, before)
        elif plugin.source == "package":
            plugin.declared = _declared_by(found)
        plugin.registered = [e.name for e in self._own(self.registry, plugin)]
        for entry, refusal in refused:
            plugin.missing[entry.name] = str(refusal)
        for name in plugin.declared:
            if name not in plugin.registered and name != UNKNOWN:
                plugin.missing.setdefault(name, self._elsewhere(name))

    def _elsewhere(self, name: str) -> str:
        """Why a tool is not a plugin's own."""
        held = self.registry.get(name)
        if held is None:
            return "declared, but nothing registers it"
        return f"the name is held by {held.holder}"

    def _take_back(self, plugin: Plugin, api: PluginApi, before: list[ToolEntry]) -> None:
        for undo in reversed(api.undo):
            undo()
        for entry in self._own(self.registry, plugin):
            self.registry.deregister(entry.name)
        _put_back(before, self.registry)
        forget(plugin.name)

    def _move(self, plugin: Plugin, before: list[ToolEntry]) -> None:
        """Move tools that `@tool` registered in the shared registry to this one."""
        for entry in self._own(shared_registry, plugin):
            self.registry.add(entry)
            shared_registry.deregister(entry.name)
        _put_back(before, shared_registry)

    @staticmethod
    def _own(registry: ToolRegistry, plugin: Plugin) -> list[ToolEntry]:
        return [
            entry
            for entry in registry.entries()
            if entry.origin == "plugin" and entry.owner == plugin.name
        ]

    def report(self, offered: Iterable[str]) -> list[dict[str, Any]]:
        """For every plugin: declared, registered and visible tools, and reasons for missing ones.

        `healthy`: it loaded and registered its declared tools; `complete`: all of them are visible.
        """
        seen = frozenset(offered)
        unavailable = self.registry.availability.missing(self.registry.entries())
        lines = []
        for plugin in self.found:
            missing = dict(plugin.missing)
            own = {entry.name for entry in self._own(self.registry, plugin)}
            for name in plugin.registered:
                if name not in own:
                    missing[name] = self._elsewhere(name)
                elif name not in seen:
                    missing[name] = unavailable.get(name, "its toolset is not enabled")
            lines.append(
                {
                    "name": plugin.name,
                    "source": plugin.source,
                    "path": plugin.path,
                    "problem": plugin.problem,
                    "declared": [name for name in plugin.declared if name != UNKNOWN],
                    "registered": plugin.registered,
                    "visible": [name for name in plugin.registered if name in own & seen],
                    "missing": missing,
                    "commands": plugin.commands,
                    "healthy": plugin.healthy,
                    "complete": plugin.problem is None and not missing,
                }
            )
        return lines


def _put_back(before: list[ToolEntry], registry: ToolRegistry) -> None:
    """Restore the tools whose names a plugin had taken."""
    for entry in before:
        if registry.get(entry.name) is None:
            registry.add(entry)


def _declared(path: str, start: str) -> tuple[list[str], str | None]:
    """Declarations in `plugin.yaml`, else in the syntax tree; and their error."""
    described = os.path.join(path, "plugin.yaml")
    try:
        if os.path.isfile(described):
            with open(described, "rb") as file:
                return _listed(file.read())
        with open(start, "rb") as file:
            return registrations(file.read()), None
    except OSError as error:
        return [], f"it can't be read: {error.strerror}"


def _listed(text: bytes) -> tuple[list[str], str | None]:
    import yaml

    try:
        found = yaml.safe_load(text)
        tools = (found.get("tools") or []) if found is not None else []
        return [str(tool["name"] if isinstance(tool, dict) else tool) for tool in tools], None
    except (ValueError, TypeError, AttributeError, KeyError, yaml.YAMLError) as error:
        why = " ".join(str(error).split())[:200]
        return [], f"plugin.yaml must hold `tools:` with a list of names: {why}"


def _declared_by(module: object) -> list[str]:
    """Declarations in the syntax tree of an imported module."""
    path = getattr(module, "__file__", None) or ""
    if not path.endswith(".py") or not os.path.isfile(path):
        return []
    with open(path, "rb") as file:
        return registrations(file.read())


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _owned(name: str) -> Any:
    from hermes.core.registry import owned_by

    return owned_by("plugin", name)
