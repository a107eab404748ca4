"""Toolsets: named groups of tools that include each other; the shipped ones are the table below."""

from __future__ import annotations

import threading

from hermes.core.errors import HermesError, RegistrationError, close_matches
from hermes.core.registry import registry

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes.core.registry import ToolRegistry


# name -> (what it is for, tools, toolsets included)
TOOLSETS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    # -- families ---------------------------------------------------------------------------
    "system": (
        "Commands, processes, schedules and the machine itself",
        (
            "terminal",
            "process",
            "env_manager",
            "cronjob",
            "system_info",
            "clipboard",
            "notification",
            "sleep",
        ),
        (),
    ),
    "web": (
        "Search, read and check the web",
        (
            "web_search",
            "web_extract",
            "web_crawl",
            "http_request",
            "rss_reader",
            "link_checker",
            "dns_lookup",
        ),
        (),
    ),
    "browser": (
        "Drive a real browser",
        (
            "browser_navigate",
            "browser_snapshot",
            "browser_click",
            "browser_type",
            "browser_scroll",
            "browser_back",
            "browser_press",
            "browser_get_images",
            "browser_vision",
            "browser_console",
            "browser_screenshot",
            "browser_dialog",
            "browser_cdp",
        ),
        (),
    ),
    "file": (
        "Read, write, edit, find and compare files",
        (
            "read_file",
            "write_file",
            "patch",
            "search_files",
            "directory_list",
            "file_compress",
            "file_diff",
            "file_watch",
        ),
        (),
    ),
    "code": (
        "Run, check, format, test and debug code",
        ("execute_code", "code_lint", "code_format", "code_test", "code_debug", "repl"),
        (),
    ),
    "media": (
        "Images, sound, documents and charts",
        (
            "vision_analyze",
            "image_generate",
            "image_edit",
            "audio_transcribe",
            "text_to_speech",
            "pdf_extract",
            "chart_generate",
        ),
        (),
    ),
    "platform": (
        "Git, containers, databases, mail, calendars and other services",
        (
            "git_operations",
            "docker_manage",
            "database_query",
            "api_call",
            "email_send",
            "calendar_manage",
            "spreadsheet",
            "cloud_storage",
            "send_message",
        ),
        (),
    ),
    "agent": (
        "Plan, remember, ask and delegate",
        (
            "todo",
            "memory",
            "session_search",
            "clarify",
            "delegate_task",
            "mixture_of_agents",
        ),
        (),
    ),
    "skills": (
        "Written know-how, loaded when it is needed",
        ("skills_list", "skill_view", "skill_manage", "skills_categories"),
        (),
    ),
    "home": (
        "Lights, sensors and switches through Home Assistant",
        ("ha_list_entities", "ha_get_state", "ha_call_service"),
        (),
    ),
    "rl": (
        "Reinforcement-learning environments and runs",
        (
            "rl_list_environments",
            "rl_start_training",
            "rl_check_status",
            "rl_stop_training",
            "rl_get_results",
        ),
        (),
    ),
    "discovery": (
        "Find tools and page through large results",
        ("tool_search", "read_artifact"),
        (),
    ),
    # -- parts of families ------------------------------------------------------------------
    "terminal": ("Run commands and manage processes", ("terminal", "process"), ()),
    "search": ("Search the web, nothing else", ("web_search",), ()),
    "cronjob": ("Scheduled jobs", ("cronjob",), ()),
    "vision": ("Look at images", ("vision_analyze",), ()),
    "image_gen": ("Make images", ("image_generate", "image_edit"), ()),
    "tts": ("Speak text", ("text_to_speech",), ()),
    "documents": ("Read documents", ("pdf_extract",), ()),
    "todo": ("A task list", ("todo",), ()),
    "memory": ("What is remembered between sessions", ("memory",), ()),
    "session_search": ("Search past sessions", ("session_search",), ()),
    "clarify": ("Ask the person", ("clarify",), ()),
    "delegation": ("Hand work to other agents", ("delegate_task",), ()),
    "moa": ("Ask several models at once", ("mixture_of_agents",), ()),
    "code_execution": ("Run code that calls tools", ("execute_code",), ()),
    "messaging": ("Send messages to people", ("send_message", "email_send"), ()),
    # -- composites -------------------------------------------------------------------------
    "debugging": (
        "Find out what is wrong: commands, the web, files",
        ("terminal", "process"),
        ("web", "file"),
    ),
    "research": ("Read widely, change nothing", (), ("web", "browser", "vision", "documents")),
    "development": (
        "Write and run software",
        (),
        ("terminal", "file", "code", "web", "todo", "skills", "discovery"),
    ),
    "safe": (
        "Everything that starts no command and runs no code",
        ("system_info", "env_manager", "clipboard", "notification", "sleep"),
        ("web", "file", "media", "agent", "skills", "discovery"),
    ),
    # -- presets ----------------------------------------------------------------------------
    "hermes-core": (
        "What every front door offers",
        (),
        (
            "system",
            "web",
            "browser",
            "file",
            "code",
            "media",
            "agent",
            "skills",
            "discovery",
        ),
    ),
    "hermes-cli": ("The command line", (), ("hermes-core", "platform", "home")),
    "hermes-gateway": ("Any messaging gateway", ("send_message",), ("hermes-core", "home")),
    "hermes-telegram": ("The Telegram gateway", (), ("hermes-gateway",)),
    "hermes-discord": ("The Discord gateway", (), ("hermes-gateway",)),
    "hermes-acp": ("Editors", (), ("terminal", "file", "code", "web", "todo", "discovery")),
}

# Everything that is known by another name; `NAME_tools` is understood for every toolset.
ALIASES: dict[str, str] = {
    "*": "all",
    "files": "file",
    "filesystem": "file",
    "image_tools": "image_gen",
    "homeassistant": "home",
    "skill": "skills",
    "documentation": "documents",
}


def declared_tools() -> frozenset[str]:
    """Every tool name that the table knows."""
    return frozenset(name for _, tools, _ in TOOLSETS.values() for name in tools)


class Toolset:
    """A named group: its own tools, and the groups it includes."""

    __slots__ = ("description", "includes", "name", "tools")

    def __init__(
        self, name: str, description: str, tools: Iterable[str], includes: Iterable[str]
    ) -> None:
        self.name = name
        self.description = description
        self.tools = tuple(tools)
        self.includes = tuple(includes)


class UnknownToolsetError(HermesError):
    """No toolset has that name; `nearest` is the one that was probably meant."""

    def __init__(self, name: str, nearest: str | None) -> None:
        hint = f"Did you mean {nearest}?" if nearest else "`hermes toolsets` lists them all."
        super().__init__(f"no toolset is called {name!r}", hint=hint)
        self.name = name
        self.nearest = nearest


class Toolsets:
    """The toolsets of one registry: shipped, made at run time, and named by its tools."""

    def __init__(self, tools: ToolRegistry) -> None:
        self._registry = tools
        self._custom: dict[str, Toolset] = {}
        self._lock = threading.Lock()

    def create(
        self,
        name: str,
        description: str,
        tools: Iterable[str] = (),
        includes: Iterable[str] = (),
    ) -> Toolset:
        """Create a custom toolset, or replace one; shipped toolsets can't be replaced."""
        if not name or not isinstance(name, str):
            raise RegistrationError("a toolset needs a name")
        if _ships(name):
            raise RegistrationError(f'toolset "{name}" is one that Hermes ships')
        if name in self._registry.toolset_aliases():
            raise RegistrationError(f'"{name}" already stands for another toolset')
        made = Toolset(name, description, _several(tools), _several(includes))
        for included in made.includes:
            if included != name:
                self.get(included)
        with self._lock:
            self._custom = {**self._custom, name: made}
        self._registry.touch()
        return made

    def remove(self, name: str) -> bool:
        """Take away a toolset that was made at run time."""
        with self._lock:
            kept = {key: value for key, value in self._custom.items() if key != name}
            found = len(kept) < len(self._custom)
            self._custom = kept
        if found:
            self._registry.touch()
        return found

    def names(self) -> list[str]:
        """Every toolset, sorted; aliases left out."""
        return sorted({*TOOLSETS, *self._custom, *self._registry.toolsets()})

    def get(self, name: str) -> Toolset:
        """One toolset, by name or alias; raises `UnknownToolsetError` with the nearest."""
        found = self._find(name)
        if found is None:
            known = [*self.names(), *self._registry.toolset_aliases(), *ALIASES, "all"]
            raise UnknownToolsetError(name, next(iter(close_matches(name, known)), None))
        return found

    def __contains__(self, name: str) -> bool:
        return self._find(name) is not None

    def resolve(self, names: str | Iterable[str]) -> list[str]:
        """The tools of one or several toolsets: sorted, each once."""
        waiting = [names] if isinstance(names, str) else list(names)
        seen: set[str] = set()
        tools: set[str] = set()
        while waiting:
            toolset = self.get(waiting.pop())
            if toolset.name not in seen:
                seen.add(toolset.name)
                tools.update(toolset.tools)
                waiting.extend(toolset.includes)
        return sorted(tools)

    def holding(self, tool: str) -> list[str]:
        """The toolsets that lead to a tool."""
        return [name for name in self.names() if tool in self.resolve(name)]

    def _find(self, name: str) -> Toolset | None:
        if not _ships(name) and name not in self._custom:
            name = self._registry.toolset_aliases().get(name, name)
        for spelling in (name, ALIASES.get(name, ""), name.removesuffix("_tools")):
            if not spelling:
                continue
            if spelling == "all":
                return Toolset("all", "Every tool", self._registry.names(), TOOLSETS)
            declared = TOOLSETS.get(spelling)
            registered = self._registry.toolsets().get(spelling, [])
            made = self._custom.get(spelling)
            if made is not None:
                return Toolset(
                    spelling, made.description, {*made.tools, *registered}, made.includes
                )
            if declared is not None:
                description, tools, includes = declared
                return Toolset(
                    spelling, description, dict.fromkeys((*tools, *registered)), includes
                )
            if registered:
                return Toolset(spelling, f"Tools registered as {spelling}", registered, ())
        return None


def _ships(name: str) -> bool:
    """Whether Hermes itself gives the name a meaning, under whichever spelling."""
    return name == "all" or name in ALIASES or name.removesuffix("_tools") in TOOLSETS


def _several(names: Iterable[str]) -> Iterable[str]:
    return (names,) if isinstance(names, str) else names


shared_toolsets = Toolsets(registry)


def create_custom_toolset(
    name: str, description: str, tools: Iterable[str] = (), includes: Iterable[str] = ()
) -> Toolset:
    """Make a toolset at run time, beside those that Hermes ships."""
    return shared_toolsets.create(name, description, tools, includes)


def resolve_toolset(name: str) -> list[str]:
    """The tools of a toolset of the shared registry, sorted."""
    return shared_toolsets.resolve(name)
