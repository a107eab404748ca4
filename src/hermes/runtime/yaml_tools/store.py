"""`YamlTools`: registered YAML files, their entries in the registry, and reload on change."""

from __future__ import annotations

import os
import threading
import time

from hermes.core.errors import ConfigError, HermesError, RegistrationError
from hermes.core.log import Log
from hermes.runtime.yaml_tools.document import DefinitionError, Problem
from hermes.runtime.yaml_tools.file_state import RegisteredFiles, WatchedFile, signature_of

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hermes.core.entry import ToolEntry
    from hermes.core.registry import ToolRegistry
    from hermes.runtime.yaml_tools.file_state import Signature
    from hermes.runtime.yaml_tools.spec import Definition

log = Log("hermes.yaml_tools")

LOOK_SECONDS = 0.25


class NameTakenError(DefinitionError):
    """A valid file with a tool name that is already taken."""


class FileState:
    """One registered file: the tools it gives, and why it gives no newer ones."""

    __slots__ = ("path", "problem", "tools")

    def __init__(self, path: str, tools: list[str], problem: str | None) -> None:
        self.path = path
        self.tools = tools
        self.problem = problem

    def __repr__(self) -> str:
        return f"<{self.path}: {', '.join(self.tools) or 'no tools'}; {self.problem or 'good'}>"


class YamlTools:
    """Tools from YAML files. Safe to use from any number of threads and processes."""

    def __init__(
        self,
        registry: ToolRegistry,
        *,
        home: str,
        clock: Callable[[], float] = time.monotonic,
        on_change: Callable[[str], None] | None = None,
    ) -> None:
        """`on_change` receives a sentence on each reload and each problem."""
        self._registry = registry
        self._remembered = RegisteredFiles(home)
        self._clock = clock
        self._on_change = on_change
        self._lock = threading.RLock()
        self._files: dict[str, WatchedFile] = {}
        self._list_signature: Signature | None = None
        self._list_problem: str | None = None
        self._next_look = float("-inf")
        self._loaded = False

    # -- changing ---------------------------------------------------------------------------

    def register(self, path: str) -> list[ToolEntry]:
        """Add the tools of a file, now and at every start to come; its entries.

        Raises `DefinitionError` with every problem when the file can't be used as a whole.
        """
        path = os.path.abspath(os.path.expanduser(os.fspath(path)))
        with self._lock:
            self._load_once()
            file = WatchedFile(path, [])
            text = file.read()
            tools = _definitions(text, path)
            self._check_free(path, tools)
            # On disk before it is offered: what can't be remembered is not registered.
            self._remembered.keep(path, text)
            self._remembered.put(path, [])
            before = self._files.get(path)
            if before is not None:
                file.tools, file.entries = before.tools, before.entries
            self._files[path] = file
            self._apply(file, tools)
            return list(file.entries.values())

    def unregister(self, path_or_tool_name: str) -> list[str]:
        """Take away a file with all its tools, or one tool by name; the names that are gone."""
        with self._lock:
            self._load_once()
            path = os.path.abspath(os.path.expanduser(path_or_tool_name))
            file = self._files.get(path)
            if file is not None or path in self._remembered.files():
                return self._unregister_file(path, file)
            for file in self._files.values():
                if path_or_tool_name in file.entries:
                    return self._unregister_tool(file, path_or_tool_name)
            raise self._unknown(path_or_tool_name)

    def _unregister_file(self, path: str, file: WatchedFile | None) -> list[str]:
        self._remembered.drop(path)
        self._files.pop(path, None)
        names = list(file.entries) if file is not None else []
        if file is not None:
            self._take_away(file, names)
        return names

    def _unregister_tool(self, file: WatchedFile, name: str) -> list[str]:
        if len(file.entries) == 1:
            return self._unregister_file(file.path, file)
        file.without = [*file.without, name]
        self._remembered.put(file.path, file.without)
        self._take_away(file, [name])
        return [name]

    def _unknown(self, name: str) -> HermesError:
        from hermes.runtime.yaml_tools.document import nearest

        known = [*self._files, *(n for file in self._files.values() for n in file.entries)]
        return HermesError(
            f"no registered file or YAML tool is called {name!r:.200}{nearest(name, known)}",
            hint="hermes tool list shows them.",
        )

    # -- looking up -------------------------------------------------------------------------

    def files(self) -> list[FileState]:
        """The registered files as they now stand."""
        with self._lock:
            self._load_once()
            return [
                FileState(file.path, sorted(file.entries), file.problem)
                for file in self._files.values()
            ]

    def definition(self, name: str) -> Definition | None:
        """The specification of one tool."""
        with self._lock:
            self._load_once()
            found = (f.tools[name] for f in self._files.values() if name in f.entries)
            return next(found, None)

    def problems(self) -> list[str]:
        """Current problems, a sentence each."""
        with self._lock:
            self._load_once()
            found = [file.problem for file in self._files.values()]
            return [problem for problem in (self._list_problem, *found) if problem is not None]

    # -- keeping in step --------------------------------------------------------------------

    def load(self) -> list[str]:
        """Bring in every remembered file; the problems, where last good versions stand in."""
        with self._lock:
            self._look_at_all()
            return self.problems()

    def _load_once(self) -> None:
        if not self._loaded:
            self._look_at_all()

    def refresh(self) -> bool:
        """Reload changed files; whether any changed.

        Rate-limited and non-blocking: it does nothing while another thread checks.
        """
        if self._clock() < self._next_look or not self._lock.acquire(blocking=False):
            return False
        try:
            generation = self._registry.generation
            self._look_at_all()
            return self._registry.generation != generation
        finally:
            self._lock.release()

    def _look_at_all(self) -> None:
        self._loaded = True
        self._next_look = self._clock() + LOOK_SECONDS
        self._sync_list()
        for file in list(self._files.values()):
            self._look(file)

    def _sync_list(self) -> None:
        """Follow the list of files, which another process may have changed."""
        signature = signature_of(self._remembered.path)
        if signature == self._list_signature and self._list_problem is None:
            return
        try:
            listed = self._remembered.files()
        except ConfigError as error:
            self._list_problem = self._tell(str(error), self._list_problem)
            return
        self._list_problem = None
        self._list_signature = signature
        for path in self._files.keys() - listed.keys():
            gone = self._files.pop(path)
            self._take_away(gone, list(gone.entries))
        for path, without in listed.items():
            file = self._files.get(path)
            if file is None:
                self._files[path] = WatchedFile(path, without)
            elif file.without != without:
                file.without = without
                file.signature = file.text = None

    def _look(self, file: WatchedFile) -> None:
        """Load a file's new text, or keep the old tools and record the problem."""
        if not file.may_have_changed():
            return
        known = file.text
        try:
            text = file.read()
            if text == known:
                return
            tools = _definitions(text, file.path)
            self._apply(file, tools)
        except (DefinitionError, RegistrationError, ConfigError) as error:
            self._fall_back(file, error)
            return
        try:
            self._remembered.keep(file.path, text)
        except ConfigError as error:
            log.warning("no copy of %s could be kept: %s", file.path, error)
        if known is not None or file.problem is not None:
            names = ", ".join(file.entries) or "no tools"
            self._tell(f"{file.path} was loaded again: {names}", write=log.info)
        file.problem = None

    def _fall_back(self, file: WatchedFile, error: HermesError) -> None:
        reason = str(error)
        if isinstance(error, NameTakenError):
            # The name may become free without the file being touched.
            file.signature = file.text = None
        if not file.entries:
            # Nothing is there yet: this is a start, and the copy has to stand in.
            kept = self._remembered.kept(file.path)
            try:
                if kept is not None:
                    self._apply(file, _definitions(kept, file.path))
            except (DefinitionError, RegistrationError) as second:
                reason = f"{reason}; its last good version can't be used either: {second}"
        if file.entries:
            reason = f"{reason}; its last good version stays in use"
        file.problem = self._tell(reason, file.problem)

    def _tell(
        self,
        message: str,
        before: str | None = None,
        write: Callable[..., None] = log.warning,
    ) -> str:
        """Log and pass on a message, unless it is the one from before."""
        if message != before:
            write("%s", message)
            if self._on_change is not None:
                self._on_change(message)
        return message

    # -- the registry -----------------------------------------------------------------------

    def _apply(self, file: WatchedFile, tools: list[Definition]) -> None:
        """Register the tools of a file; unchanged ones keep their entries.

        Atomic: it raises before anything is changed.
        """
        from hermes.runtime.yaml_tools.entries import entry_for

        wanted = {tool.name: tool for tool in tools if tool.name not in file.without}
        self._check_free(file.path, wanted.values())
        entries: dict[str, ToolEntry] = {}
        for name, tool in wanted.items():
            current = file.entries.get(name)
            if current is not None and tool == file.tools[name] and self._holds(current):
                entries[name] = current
                continue
            if current is not None and current.toolset != tool.toolset and self._holds(current):
                # The registry lets a name move to another toolset only when it is free.
                self._registry.deregister(name)
            entries[name] = self._registry.add(entry_for(tool, file.path))
        removed = [name for name in file.entries if name not in entries]
        self._take_away(file, removed)
        file.tools, file.entries = wanted, entries

    def _check_free(self, path: str, wanted: Iterable[Definition]) -> None:
        """Refuse names that are taken by other tools."""
        problems: list[Problem] = []
        for tool in wanted:
            held = self._registry.get(tool.name)
            if held is not None and not (held.origin == "yaml" and held.owner == path):
                message = f"tool name `{tool.name}` is held by {held.holder}; rename it"
                problems.append(Problem(tool.line, message))
        if problems:
            raise NameTakenError(path, problems)

    def _holds(self, entry: ToolEntry) -> bool:
        return self._registry.get(entry.name) is entry

    def _take_away(self, file: WatchedFile, names: list[str]) -> None:
        for name in names:
            entry = file.entries.pop(name)
            file.tools.pop(name, None)
            if self._holds(entry):
                self._registry.deregister(name)


def _definitions(text: str, path: str) -> list[Definition]:
    from hermes.runtime.yaml_tools.reader import read_tools

    return read_tools(text, path)
