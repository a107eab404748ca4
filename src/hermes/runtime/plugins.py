"""Plugins: other people's tools, toolsets, hooks and commands.

They come from the home folder (`plugins/NAME.py` or `plugins/NAME/__init__.py`), from a project's
`.hermes/plugins/` once its exact content is trusted, and from installed packages (entry points in
the group `hermes.plugins`). A plugin registers by `@tool` at its top level, or in a function
`register(api)`. What it declared, what it registered, what the model sees, and why anything is
missing is known of each; a broken one hurts no other.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hermes.core.errors import RegistrationError
from hermes.core.home import home_path
from hermes.core.log import Log
from hermes.core.registry import registry as shared_registry
from hermes.runtime.discovery import registrations
from hermes.runtime.entry_points import entry_points
from hermes.runtime.trust import TrustStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType
    from typing import Any

    from hermes.core.entry import ToolEntry
    from hermes.core.registry import ToolRegistry
    from hermes.core.toolsets import Toolset, Toolsets
    from hermes.runtime.hooks import Hooks
    from hermes.runtime.manifest import Manifest

log = Log("hermes.plugins")

PACKAGE = "hermes_plugins"
GROUP = "hermes.plugins"


class Plugin:
    """One plugin and what became of it."""

    def __init__(self, name: str, source: str, path: str) -> None:
        self.name = name
        self.source = source  # home, project or package
        self.path = path
        self.declared: list[str] = []
        self.registered: list[str] = []
        self.commands: list[str] = []
        self.problem: str | None = None
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
    """What a plugin's `register(api)` is given."""

    def __init__(self, plugin: Plugin, plugins: Plugins) -> None:
        self._plugin = plugin
        self._plugins = plugins

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
        return self._plugins.toolsets.create(name, description, tools, includes)

    def add_hook(self, name: str, hook: Callable[..., Any]) -> None:
        """Add a hook; see `hermes.runtime.hooks`."""
        self._plugins.hooks.add(name, hook)

    def add_command(
        self,
        name: str,
        run: Callable[..., Any],
        *,
        help: str = "",  # noqa: A002 - as in argparse
        arguments: Callable[[Any], None] | None = None,
    ) -> None:
        """Add a command: `run(app, options)` after `arguments(parser)` described its options."""
        held = self._plugins.commands.get(name)
        if held is not None:
            raise RegistrationError(f'command "{name}" is already there')
        self._plugins.commands[name] = Command(name, help, arguments, run)
        self._plugin.commands.append(name)


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
        """Load every plugin there is, in the order of their names; what became of each."""
        for plugin, module in sorted(self._candidates(), key=lambda pair: pair[0].name):
            self.found.append(plugin)
            if plugin.name in self._disabled:
                plugin.problem = "disabled in the settings"
            elif plugin.problem is None:
                self._load(plugin, module)
            if plugin.problem:
                plugin.missing = dict.fromkeys(plugin.declared, plugin.problem)
        return self.found

    def _candidates(self) -> Iterator[tuple[Plugin, Callable[[], ModuleType]]]:
        yield from self._in_folder(home_path("plugins"), "home")
        folder = os.path.join(self._project, ".hermes", "plugins") if self._project else ""
        if folder and os.path.isdir(folder) and not _same(folder, home_path("plugins")):
            trusted = self._trust.trusts(folder)
            for plugin, module in self._in_folder(folder, "project"):
                if not trusted:
                    plugin.problem = f"not trusted: review it, then `hermes trust {folder}`"
                yield plugin, module
        yield from self._in_packages()

    def _in_folder(
        self, folder: str, source: str
    ) -> Iterator[tuple[Plugin, Callable[[], ModuleType]]]:
        if not os.path.isdir(folder):
            return
        for entry in sorted(os.scandir(folder), key=lambda item: item.name):
            name, ending = os.path.splitext(entry.name)
            if name.startswith((".", "_")):
                continue
            start = os.path.join(entry.path, "__init__.py") if entry.is_dir() else entry.path
            plugin = Plugin(name, source, entry.path)
            if not entry.is_dir() and ending != ".py":
                continue
            if not os.path.isfile(start):
                plugin.problem = "it has no __init__.py"
            elif not name.isidentifier():
                plugin.problem = f"{name!r} is no name that Python can import"
            else:
                plugin.declared = _declared(entry.path, start)
            yield plugin, _importer(f"{PACKAGE}.{name}", start, entry.is_dir())

    def _in_packages(self) -> Iterator[tuple[Plugin, Callable[[], ModuleType]]]:
        for name, target in entry_points(GROUP, self._manifest):
            module = target.partition(":")[0]
            yield Plugin(name, "package", target), _package_importer(module)

    def _load(self, plugin: Plugin, load: Callable[[], ModuleType]) -> None:
        with self.registry.collecting() as refused, _owned(plugin.name):
            try:
                module = load()
                register = getattr(module, "register", None)
                if callable(register):
                    register(PluginApi(plugin, self))
            except Exception as error:  # whatever a plugin raises is its own problem
                log.warning("plugin %s failed", plugin.name, exc_info=True)
                plugin.problem = f"{type(error).__name__}: {error}"
        if self.registry is not shared_registry:
            self._move(plugin)
        plugin.registered = [e.name for e in self._own(self.registry, plugin)]
        for entry, refusal in refused:
            plugin.missing[entry.name] = str(refusal)
        for name in plugin.declared:
            if name not in plugin.registered and name != "?":
                plugin.missing.setdefault(name, "declared, but nothing registers it")

    def _move(self, plugin: Plugin) -> None:
        """Bring what `@tool` put into the shared registry into ours."""
        for entry in self._own(shared_registry, plugin):
            self.registry.add(entry)
            shared_registry.deregister(entry.name)

    @staticmethod
    def _own(registry: ToolRegistry, plugin: Plugin) -> list[ToolEntry]:
        return [
            entry
            for entry in registry.entries()
            if entry.origin == "plugin" and entry.owner == plugin.name
        ]

    def report(self, offered: Iterable[str]) -> list[dict[str, Any]]:
        """For every plugin: declared, registered and visible tools, and why each other is not."""
        seen = frozenset(offered)
        unavailable = self.registry.availability.missing(self.registry.entries())
        lines = []
        for plugin in self.found:
            missing = dict(plugin.missing)
            for name in plugin.registered:
                if name not in seen:
                    missing[name] = unavailable.get(name, "its toolset is not enabled")
            lines.append(
                {
                    "name": plugin.name,
                    "source": plugin.source,
                    "path": plugin.path,
                    "problem": plugin.problem,
                    "declared": [name for name in plugin.declared if name != "?"],
                    "registered": plugin.registered,
                    "visible": [name for name in plugin.registered if name in seen],
                    "missing": missing,
                    "commands": plugin.commands,
                    "healthy": plugin.healthy,
                }
            )
        return lines


def _declared(path: str, start: str) -> list[str]:
    """What `plugin.yaml` says, or else what the syntax tree shows."""
    described = os.path.join(path, "plugin.yaml")
    if os.path.isfile(described):
        import yaml

        try:
            with open(described, encoding="utf-8") as file:
                found = yaml.safe_load(file)
        except (OSError, ValueError, yaml.YAMLError):
            found = None
        if isinstance(found, dict) and isinstance(found.get("tools"), list):
            return [str(name) for name in found["tools"]]
    with open(start, "rb") as file:
        return registrations(file.read())


def _importer(name: str, path: str, is_folder: bool) -> Callable[[], ModuleType]:
    def load() -> ModuleType:
        from importlib.util import module_from_spec, spec_from_file_location

        _namespace()
        places = [os.path.dirname(path)] if is_folder else None
        spec = spec_from_file_location(name, path, submodule_search_locations=places)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} can't be imported")
        module = module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
        return module

    return load


def _namespace() -> None:
    """The package that plugins are imported under."""
    if PACKAGE not in sys.modules:
        from types import ModuleType

        package = ModuleType(PACKAGE)
        package.__path__ = []
        sys.modules[PACKAGE] = package


def _package_importer(module: str) -> Callable[[], ModuleType]:
    def load() -> ModuleType:
        from importlib import import_module

        return import_module(module)

    return load


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _owned(name: str) -> Any:
    from hermes.core.ownership import owned_by

    return owned_by("plugin", name)
