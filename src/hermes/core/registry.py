"""Tool registry: registered tools by name, their owners, and the definitions sent to a model."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from contextvars import ContextVar

from hermes.core.availability import Availability
from hermes.core.entry import (
    DEFAULT_RESULT_SIZE,
    PRECEDENCE,
    ToolEntry,
    invoke_for,
    is_coroutine_function,
    parameters_of,
)
from hermes.core.errors import HermesError, RegistrationError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, ClassVar, Protocol

    from hermes.core.context import ToolContext
    from hermes.core.tool_definition import BaseTool


_owner: ContextVar[tuple[str, str] | None] = ContextVar("hermes_owner", default=None)


@contextmanager
def owned_by(origin: str, owner: str) -> Iterator[None]:
    """Everything registered inside belongs to `owner`."""
    token = _owner.set((origin, owner))
    try:
        yield
    finally:
        _owner.reset(token)


def current_owner(module: str) -> tuple[str, str]:
    """Origin and owner of a tool that `module` registers now; `custom` is the program itself."""
    if module.startswith("hermes.tools."):
        return "builtin", ""
    if module.startswith("hermes_plugins."):
        # Registered later than its plugin was loaded: in a hook, a thread or a handler.
        return _owner.get() or ("plugin", module.split(".")[1])
    return _owner.get() or ("custom", "")


if TYPE_CHECKING:

    class Dispatcher(Protocol):
        """Carries out calls by name; the runtime is one."""

        def dispatch(
            self,
            name: str,
            arguments: dict[str, Any] | str | None,
            context: ToolContext | None,
        ) -> str: ...


# What a plugin that is being loaded was refused; None when refusals are to be raised.
_collected: ContextVar[list[tuple[ToolEntry, RegistrationError]] | None] = ContextVar(
    "hermes_collected", default=None
)


class ToolRegistry:
    """All tools of one program. Safe to use from any number of threads."""

    # Filled in by the runtime, which this layer must not know: makes a dispatcher for a registry
    # that has none yet.
    default_dispatcher: ClassVar[Callable[[ToolRegistry], Dispatcher] | None] = None

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._entries: dict[str, ToolEntry] = {}
        self._aliases: dict[str, str] = {}
        self._versions: dict[str, int] = {}
        self._toolset_checks: dict[str, Callable[[], bool]] = {}
        self._toolset_aliases: dict[str, str] = {}
        self._dispatcher: Dispatcher | None = None
        self._loader: Callable[[ToolEntry], ToolEntry] | None = None
        self.availability = Availability()
        self.generation = 0
        # Registrations that lost to one with a better claim, as sentences for `hermes doctor`.
        self.conflicts: list[str] = []

    # -- changing ---------------------------------------------------------------------------

    def register(
        self,
        name: str | type[BaseTool] | BaseTool,
        toolset: str = "custom",
        schema: Mapping[str, Any] | None = None,
        handler: Callable[..., Any] | None = None,
        *,
        is_async: bool | None = None,
        **fields: Any,
    ) -> ToolEntry:
        """Add a tool: by name, schema and handler, or a `BaseTool` class or instance alone.

        `schema` is the function schema (name, description, parameters) or the parameters alone.
        `fields` are the other fields of `ToolEntry`.
        """
        if not isinstance(name, str):
            from hermes.core.tool_definition import BaseTool, entry_for

            if not isinstance(name, (type, BaseTool)):
                raise RegistrationError(f"a tool has no name: {name!r:.80}")

            if "origin" not in fields:
                fields["origin"], fields["owner"] = current_owner(name.__module__)
            return self.add(entry_for(name, None, toolset, None, fields))
        if schema is None:
            raise RegistrationError(
                f"{name!r} has no schema", hint="Give schema= and handler=, or use @tool."
            )
        if not callable(handler):
            raise RegistrationError(f"the handler of {name!r} can't be called: {handler!r:.80}")
        if is_async is None:
            is_async = is_coroutine_function(handler)
        properties = parameters_of(name, schema).get("properties", {})
        fields.setdefault("invoke", invoke_for(handler, properties))
        fields.setdefault("module", getattr(handler, "__module__", None) or "")
        if "origin" not in fields:
            fields["origin"], fields["owner"] = current_owner(fields["module"])
        return self.add(ToolEntry(name, toolset, schema, handler, is_async=is_async, **fields))

    def add(self, entry: ToolEntry) -> ToolEntry:
        """Add an entry under its name and aliases; returns the registered entry.

        Raises `RegistrationError` when another owner holds one of the names.
        """
        for name in (entry.name, *entry.aliases):
            _check_name(name)
        with self._lock:
            beaten: list[ToolEntry] = []
            for name in (entry.name, *entry.aliases):
                held = self.get(name)
                if held is None or held in beaten or _same_holder(held, entry, name):
                    continue
                try:
                    if not self._yields(held, entry, name):
                        return held
                except RegistrationError as error:
                    collected = _collected.get()
                    if collected is None:
                        raise
                    collected.append((entry, error))
                    return held
                beaten.append(held)
            # Only now: had one of the names been refused, nobody would have lost anything.
            for loser in beaten:
                self._remove(loser)
            return self._put(entry)

    @contextmanager
    def collecting(self) -> Iterator[list[tuple[ToolEntry, RegistrationError]]]:
        """Collect refused registrations instead of raising: one clash must not stop a plugin."""
        refused: list[tuple[ToolEntry, RegistrationError]] = []
        token = _collected.set(refused)
        try:
            yield refused
        finally:
            _collected.reset(token)

    def _yields(self, held: ToolEntry, new: ToolEntry, name: str) -> bool:
        """Whether `held` gives its name up to `new`; raises when neither has the better claim."""
        dispute = f'tool name "{name}" is held by {held.holder} and wanted by {new.holder}'
        if held.override != new.override:
            winner = new if new.override else held
        elif PRECEDENCE[held.origin] != PRECEDENCE[new.origin]:
            winner = min(held, new, key=lambda entry: PRECEDENCE[entry.origin])
            if winner is held:
                raise RegistrationError(dispute, hint="Rename it, or register override=True.")
        else:
            raise RegistrationError(dispute, hint="Rename one of them, or drop one override.")
        self.conflicts.append(f"{dispute}; {winner.holder} has it")
        return winner is new

    def _put(self, entry: ToolEntry) -> ToolEntry:
        before = self._entries.get(entry.name)
        version = max(entry.version, self._versions.get(entry.name, 0) + 1)
        if before is not None and before.handler is None:
            # A tool known from the manifest is the same version once its module is there.
            version = before.version
        if entry.version != version:
            entry = entry.replaced(version=version)
        self._versions[entry.name] = version
        self._entries[entry.name] = entry
        for alias in entry.aliases:
            self._aliases[alias] = entry.name
        if before is not None:
            # Only now, and only what is stale: whoever looks an alias up meanwhile finds it.
            self._forget_aliases(before, keep=entry.aliases)
        self.generation += 1
        return entry

    def deregister(self, name: str) -> bool:
        """Remove a tool, its aliases, and the check of a toolset that becomes empty."""
        with self._lock:
            entry = self._entries.get(name)
            if entry is None:
                return False
            self._remove(entry)
            return True

    def _remove(self, entry: ToolEntry) -> None:
        del self._entries[entry.name]
        self._forget_aliases(entry)
        if not any(other.toolset == entry.toolset for other in self._entries.values()):
            self._toolset_checks.pop(entry.toolset, None)
            for alias in [a for a, t in self._toolset_aliases.items() if t == entry.toolset]:
                del self._toolset_aliases[alias]
        self.generation += 1

    def _forget_aliases(self, entry: ToolEntry, *, keep: Iterable[str] = ()) -> None:
        kept = frozenset(keep)
        for alias in entry.aliases:
            if alias not in kept and self._aliases.get(alias) == entry.name:
                del self._aliases[alias]

    def touch(self) -> None:
        """Invalidate everything that is cached by `generation`."""
        with self._lock:
            self.generation += 1

    # -- looking up -------------------------------------------------------------------------

    def get(self, name: str) -> ToolEntry | None:
        """The tool of that name or alias, as it stands now; its module may not be loaded yet."""
        entry = self._entries.get(name)
        if entry is None:
            entry = self._entries.get(self._aliases.get(name, ""))
        return entry

    def resolve(self, name: str) -> ToolEntry | None:
        """Like `get`, with the handler there to be called."""
        entry = self._entries.get(name) or self.get(name)
        if entry is not None and entry.handler is None and self._loader is not None:
            return self._loader(entry)
        return entry

    def entries(self) -> list[ToolEntry]:
        """Every tool, sorted by name, so that two listings never differ by load order."""
        with self._lock:
            return [self._entries[name] for name in sorted(self._entries)]

    def names(self) -> list[str]:
        """The canonical names, sorted."""
        with self._lock:
            return sorted(self._entries)

    def aliases(self) -> dict[str, str]:
        """Other names that dispatch accepts, each with the canonical one."""
        with self._lock:
            return dict(self._aliases)

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def __len__(self) -> int:
        return len(self._entries)

    def get_max_result_size(self, name: str, default: int = DEFAULT_RESULT_SIZE) -> int:
        """How many characters of a result the model may see at once."""
        entry = self.get(name)
        limit = entry.max_result_size_chars if entry is not None else None
        return default if limit is None else limit

    # -- toolsets ---------------------------------------------------------------------------

    def toolsets(self) -> dict[str, list[str]]:
        """The toolsets that registered tools name, each with its tools."""
        found: dict[str, list[str]] = {}
        for entry in self.entries():
            found.setdefault(entry.toolset, []).append(entry.name)
        return dict(sorted(found.items()))

    def set_toolset_check(self, toolset: str, check: Callable[[], bool]) -> None:
        """Say when a whole toolset can work here."""
        with self._lock:
            self._toolset_checks[toolset] = check
            self.generation += 1

    def get_toolset_checks(self) -> dict[str, Callable[[], bool]]:
        """The checks that stand for whole toolsets: the one set, or else that of its first tool."""
        found: dict[str, Callable[[], bool]] = {}
        with self._lock:
            for entry in self.entries():
                if entry.check_fn is not None:
                    found.setdefault(entry.toolset, entry.check_fn)
            return {**found, **self._toolset_checks}

    def register_toolset_alias(self, alias: str, toolset: str) -> None:
        """Let `alias` stand for `toolset`."""
        with self._lock:
            toolset = self._toolset_aliases.get(toolset, toolset)
            taken = self._toolset_aliases.get(alias)
            if taken not in (None, toolset) or alias in self.toolsets():
                raise RegistrationError(
                    f'toolset name "{alias}" already stands for "{taken or alias}"'
                )
            self._toolset_aliases[alias] = toolset
            self.generation += 1

    def toolset_aliases(self) -> dict[str, str]:
        """Other names of toolsets, each with the canonical one."""
        with self._lock:
            return dict(self._toolset_aliases)

    def is_toolset_available(self, toolset: str) -> bool:
        """Whether a toolset has at least one tool that can work here."""
        toolset = self._toolset_aliases.get(toolset, toolset)
        members = [entry for entry in self.entries() if entry.toolset == toolset]
        if not members:
            check = self._toolset_checks.get(toolset)
            return check is not None and self.availability.reason(check) is None
        return bool(self.available(members))

    # -- offering ---------------------------------------------------------------------------

    def available(self, entries: Iterable[ToolEntry] | None = None) -> list[ToolEntry]:
        """Those of `entries` (all, when left out) that can work here, in their order."""
        wanted = self.entries() if entries is None else list(entries)
        missing = self.availability.missing(wanted)
        closed: set[str] = set()
        if self._toolset_checks:
            checks = {e.toolset: self._toolset_checks.get(e.toolset) for e in wanted}
            reasons = self.availability.reasons(c for c in checks.values() if c is not None)
            closed = {name for name, check in checks.items() if check and reasons[check]}
        return [e for e in wanted if e.name not in missing and e.toolset not in closed]

    def get_definitions(
        self, names: Iterable[str] | None = None, *, quiet: bool = True
    ) -> list[dict[str, Any]]:
        """OpenAI function definitions of the tools that can work here, sorted by name.

        Unknown names are left out, or refused with `quiet=False`.
        """
        if names is None:
            entries = self.entries()
        else:
            found = {name: self.get(name) for name in set(names)}
            unknown = sorted(name for name, entry in found.items() if entry is None)
            if unknown and not quiet:
                raise HermesError(f"no tool is called {', '.join(unknown)}")
            unique = {entry.name: entry for entry in found.values() if entry is not None}
            entries = [unique[name] for name in sorted(unique)]
        offered = self.available(entries)
        together = frozenset(entry.name for entry in offered)
        return [entry.definition_among(together) for entry in offered]

    # -- calling ----------------------------------------------------------------------------

    def attach(
        self,
        dispatcher: Dispatcher | None = None,
        *,
        loader: Callable[[ToolEntry], ToolEntry] | None = None,
    ) -> None:
        """Say who carries out calls, and who imports a tool that only the manifest knows."""
        self._dispatcher = dispatcher or self._dispatcher
        self._loader = loader or self._loader

    def dispatch(
        self,
        name: str,
        arguments: dict[str, Any] | str | None = None,
        context: ToolContext | None = None,
    ) -> str:
        """Carry out one call through the whole pipeline; the JSON text for the model."""
        if self._dispatcher is None:
            if self.default_dispatcher is None:
                raise HermesError(
                    "no runtime is attached to this registry",
                    hint="Make one: hermes.runtime.Runtime(registry).",
                )
            with self._lock:
                if self._dispatcher is None:
                    self._dispatcher = type(self).default_dispatcher(self)  # type: ignore[misc]
        return self._dispatcher.dispatch(name, arguments, context)


def _same_holder(held: ToolEntry, new: ToolEntry, name: str) -> bool:
    """Whether `new` replaces its own earlier version: same toolset, origin and owner."""
    if (held.toolset, held.origin, held.owner) != (new.toolset, new.origin, new.owner):
        return False
    # Within a toolset a tool's own name goes before the alias of another.
    return held.name == new.name or (name == new.name) != (name == held.name)


def _check_name(name: str) -> None:
    fits = isinstance(name, str) and 0 < len(name) <= 128
    if not fits or not all(c.isalnum() or c in "_-:." for c in name):
        raise RegistrationError(
            f"{name!r:.140} can't be a tool's name",
            hint="Use letters, digits, `_`, `-`, `:` and `.`; at most 128 characters.",
        )


registry = ToolRegistry()
