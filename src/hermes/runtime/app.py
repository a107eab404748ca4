"""App: settings, tool registry, permission gate and runtime of one program, each part built on
first use.
"""

from __future__ import annotations

import os
import threading
import time
from functools import cached_property

from hermes.core.config import Config
from hermes.core.errors import HermesError
from hermes.core.paths import check_home, hermes_home, home_path
from hermes.core.registry import registry as shared_registry

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from typing import Any

    from hermes.core.entry import ToolEntry
    from hermes.core.protocols import Approver
    from hermes.core.registry import ToolRegistry
    from hermes.core.toolsets import Toolsets
    from hermes.runtime.artifacts import ArtifactStore
    from hermes.runtime.audit import AuditLog
    from hermes.runtime.definitions import Definitions
    from hermes.runtime.discovery import Discovery, Manifest
    from hermes.runtime.hooks import Hooks
    from hermes.runtime.pipeline import Runtime
    from hermes.runtime.plugins import Plugins
    from hermes.runtime.tool_offer import Offer, ToolIndex
    from hermes.runtime.tracing import Tracer
    from hermes.runtime.yaml_tools.store import YamlTools


# How often a running program looks whether somebody registered the first YAML tool.
LOOK_SECONDS = 0.25


class App:
    """One program's Hermes: settings, tools, and the runtime that carries out their calls."""

    def __init__(
        self,
        registry: ToolRegistry = shared_registry,
        *,
        project: str | None = None,
        approver: Approver | None = None,
    ) -> None:
        self._registry = registry
        self.project = project or _here()
        self.approver = approver
        self.profile: str | None = None
        # What is asked (`hermes.core.config.MODES`), instead of the setting.
        self.mode: str | None = None
        self._loading = threading.RLock()
        self._begun = self._loaded = False
        self._look_again = 0.0

    @cached_property
    def home(self) -> str:
        """The folder where everything is kept."""
        return hermes_home()

    @cached_property
    def config(self) -> Config:
        """The settings."""
        check_home()
        return Config.load()

    @property
    def registry(self) -> ToolRegistry:
        """Every tool there is: built in, from plugins, from YAML."""
        if not self._loaded:
            with self._loading:
                self._load()
        self.refresh()
        return self._registry

    def _load(self) -> None:
        if self._loaded or self._begun:
            # Done by another thread, or asked for by what is being loaded just now.
            return
        self._begun = True
        self.discovery  # noqa: B018 - made by being asked for
        if self.config.get("plugins.enabled") and self._has_plugins():
            self.plugins.load()
        self._loaded = True

    def refresh(self) -> None:
        """Reload the YAML tools whose files changed."""
        if "yaml_tools" in self.__dict__:
            self.yaml_tools.refresh()
        elif time.monotonic() > self._look_again:
            # Most people have none, and looking costs less than loading what reads them.
            self._look_again = time.monotonic() + LOOK_SECONDS
            if os.path.exists(home_path("yaml_tools", "registered.json")):
                self.yaml_tools.load()

    def _has_plugins(self) -> bool:
        from hermes.runtime.discovery import entry_points

        folders = (home_path("plugins"), os.path.join(self.project, ".hermes", "plugins"))
        return any(map(os.path.isdir, folders)) or bool(
            entry_points("hermes.plugins", self.manifest)
        )

    @cached_property
    def manifest(self) -> Manifest:
        """Cache of tool declarations."""
        from hermes.runtime.discovery import Manifest

        return Manifest.load(self._tools_folder)

    @cached_property
    def _tools_folder(self) -> str:
        import hermes

        return os.path.join(os.path.dirname(hermes.__file__), "tools")

    @cached_property
    def discovery(self) -> Discovery:
        """The tool modules of Hermes itself."""
        from hermes.runtime.discovery import discover

        return discover(self._registry, self._tools_folder, "hermes.tools", self.manifest)

    @cached_property
    def toolsets(self) -> Toolsets:
        """The groups that tools come in."""
        from hermes.core.toolsets import Toolsets, shared_toolsets

        own = self._registry is not shared_registry
        return Toolsets(self._registry) if own else shared_toolsets

    @cached_property
    def hooks(self) -> Hooks:
        """Plugin hooks."""
        from hermes.runtime.hooks import Hooks

        return Hooks()

    @cached_property
    def plugins(self) -> Plugins:
        """Plugins."""
        from hermes.runtime.plugins import Plugins

        return Plugins(
            self._registry,
            self.toolsets,
            self.hooks,
            disabled=self.config.get("plugins.disabled"),
            project=self.project,
            manifest=self.manifest,
        )

    @cached_property
    def yaml_tools(self) -> YamlTools:
        """YAML tools."""
        from hermes.runtime.yaml_tools.store import YamlTools

        return YamlTools(self._registry, home=self.home, on_change=self._yaml_changed)

    def _yaml_changed(self, message: str) -> None:
        if "runtime" in self.__dict__:
            self.runtime.events.emit("trouble", message=message)

    @cached_property
    def definitions(self) -> Definitions:
        """Tool definitions for the model."""
        from hermes.runtime.definitions import Definitions

        return Definitions(self.registry, self.toolsets)

    @cached_property
    def index(self) -> ToolIndex:
        """Index of `tool_search`, with an embedding model if the settings enable it."""
        from hermes.runtime.tool_offer import ToolIndex

        embed = None
        if self.config.get("search.embeddings"):
            from hermes.runtime.tool_search.embedding import embedder

            embed = embedder()
        return ToolIndex(self.registry, embed=embed)

    @cached_property
    def artifacts(self) -> ArtifactStore:
        """Large results, kept for paging."""
        from hermes.runtime.artifacts import ArtifactStore

        return ArtifactStore(
            max_bytes=self.config.get("artifacts.max_bytes"),
            keep_days=self.config.get("artifacts.keep_days"),
        )

    @cached_property
    def audit(self) -> AuditLog | None:
        """Audit log, unless the settings disable it."""
        from hermes.runtime.audit import AuditLog

        return AuditLog() if self.config.get("audit.enabled") else None

    @cached_property
    def tracer(self) -> Tracer | None:
        """Tracer, unless the settings disable it."""
        if not self.config.get("trace.enabled"):
            return None
        from hermes.runtime.tracing import SpanFiles, Tracer

        files = SpanFiles(
            max_bytes=self.config.get("trace.max_bytes"),
            keep_days=self.config.get("trace.keep_days"),
        )
        export = None
        if self.config.get("trace.export"):
            from hermes.runtime.tracing import exporter

            export = exporter(self.config.get("trace.otlp_endpoint"), os.environ)
        return Tracer(files, export=export)

    @cached_property
    def runtime(self) -> Runtime:
        """Runtime that runs the calls."""
        from importlib import import_module

        from hermes.runtime.gate_setup import open_gate
        from hermes.runtime.pipeline import Runtime
        from hermes.runtime.reviews import Reviews

        # Gives calls what starts programs.
        import_module("hermes.tools")
        policy = open_gate(
            self.registry,
            self.config,
            project=self.project,
            profile=self.profile,
            mode=self.mode,
        )
        runtime = Runtime(
            self.registry,
            policy=policy,
            approver=self.approver,
            hooks=self.hooks,
            artifacts=self.artifacts,
            audit=self.audit,
            tracer=self.tracer,
            reviews=Reviews(),
        )
        runtime.services.app = self
        runtime.before_resolve = self.refresh
        return runtime

    def offer(self, enabled: list[str] | None = None, disabled: list[str] | None = None) -> Offer:
        """Tool offer of one conversation; toolsets default to the settings."""
        from hermes.runtime.tool_offer import Offer

        return Offer(
            self.registry,
            self.registry.available(self.chosen(enabled, disabled)),
            index=self.index,
            defer_above=self.config.get("tools.defer_above"),
        )

    def chosen(
        self, enabled: list[str] | None = None, disabled: list[str] | None = None
    ) -> list[ToolEntry]:
        """Tools of the chosen toolsets, which default to the settings."""
        if enabled is None and disabled is None:
            enabled = self.config.get("tools.enabled_toolsets")
            disabled = self.config.get("tools.disabled_toolsets")
        return self.definitions.chosen(enabled, disabled)

    def close(self) -> None:
        """Close the runtime."""
        if "runtime" in self.__dict__:
            self.runtime.close()


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise HermesError(
            "the current folder no longer exists", hint="Change to another one (cd), and try again."
        ) from None


_default: App | None = None
_lock = threading.Lock()


def default_app() -> App:
    """The App over the shared registry, for code that has none of its own."""
    global _default
    with _lock:
        if _default is None:
            _default = App()
        return _default


def default_dispatcher(registry: ToolRegistry) -> Any:
    """The runtime for a registry without one of its own."""
    from hermes.runtime.pipeline import Runtime

    return default_app().runtime if registry is shared_registry else Runtime(registry)


def discover_builtin_tools() -> list[str]:
    """Names of the tools that Hermes ships, sorted; their modules are not imported."""
    return [entry.name for entry in default_app().registry.entries() if entry.origin == "builtin"]


def handle_function_call(
    name: str, args: dict[str, Any] | str | None = None, task_id: str | None = None
) -> str:
    """Carry out one call by name through the whole pipeline; the JSON text for the model.

    Calls with the same `task_id` share a task: shell state, background processes, undo.
    """
    runtime = default_app().runtime
    context = None if task_id is None else runtime.context(task_id)
    return str(runtime.dispatch(name, args, context))
