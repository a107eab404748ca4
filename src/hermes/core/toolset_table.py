"""The toolsets that Hermes ships, as data: families, composites, presets for front doors.

Tools that are not installed here may be named: a toolset resolves to names, and what is offered is
decided later. Adding a tool to a family needs no line here when the tool names its toolset itself.
"""

from __future__ import annotations

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
