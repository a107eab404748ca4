"""Pins: approved tool definitions by hash; a definition that changes is suspended until approved
again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.errors import ConfigError
from hermes.core.home import home_path, locked, write_private
from hermes.mcp.client.listing import digest, launch_digest

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

    from hermes.mcp.client.settings import Server

# What of a tool a person approves: all that a model reads, and all that decides how it is judged.
_PINNED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


class Pins:
    """The approvals in `approvals/mcp.json`, which is among the files that the gate guards."""

    def __init__(self, path: str | None = None) -> None:
        self.path = path or home_path("approvals", "mcp.json")

    def all(self) -> dict[str, Any]:
        """Every server with what was approved of it."""
        import json

        try:
            with open(self.path, encoding="utf-8") as file:
                found = json.load(file)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(f"{self.path} can't be read: {error}") from None
        if not isinstance(found, dict):
            raise ConfigError(f"{self.path} can't be read: it holds no servers")
        return found

    def stamp(self) -> int:
        """Changes whenever the approvals do."""
        try:
            return os.stat(self.path).st_mtime_ns
        except FileNotFoundError:
            return 0

    def of(self, server: str) -> Pin | None:
        """What was approved of one server; None when it was never seen."""
        said = self.all().get(server)
        return Pin(said) if isinstance(said, dict) else None

    def approve(
        self, server: Server, tools: list[Any], *, only: list[str] | None = None
    ) -> list[str]:
        """Approve what the server says now, or some tools of it; the names approved."""
        with self._alone():
            known = self.all()
            held = known.get(server.name)
            before: dict[str, Any] = held if isinstance(held, dict) else {}
            pinned = dict(before.get("tools") or {}) if only is not None else {}
            names = []
            for tool in tools:
                name = tool_key(tool)
                if name and (only is None or name in only):
                    said = definition(tool)
                    pinned[name] = {"hash": digest(said), "definition": said}
                    names.append(name)
            known[server.name] = {
                "launch": launch_digest(server),
                "launched": server.launch,
                "tools": pinned,
            }
            self._write(known)
        return names

    def forget(self, server: str) -> bool:
        """Take back whatever was approved of a server."""
        with self._alone():
            known = self.all()
            if server not in known:
                return False
            del known[server]
            self._write(known)
            return True

    def _write(self, known: dict[str, Any]) -> None:
        import json

        text = json.dumps(known, indent=1, sort_keys=True, ensure_ascii=False)
        write_private(self.path, text.encode("utf-8", "replace"))

    def _alone(self) -> AbstractContextManager[None]:
        return locked(os.path.dirname(self.path), directory=True)


class Pin:
    """What was approved of one server."""

    def __init__(self, said: dict[str, Any]) -> None:
        self.launch = str(said.get("launch", ""))
        self.launched = said.get("launched") or {}
        tools = said.get("tools")
        self.tools: dict[str, Any] = tools if isinstance(tools, dict) else {}

    def launched_as(self, server: Server) -> bool:
        """Whether the server is started, or reached, as it was when it was approved."""
        return self.launch == launch_digest(server)

    def objection(self, tool: dict[str, Any]) -> str:
        """Why a tool has to be approved again; nothing when it is as approved."""
        approved = self.tools.get(tool_key(tool))
        if not isinstance(approved, dict):
            return "it is new since the server was approved"
        if approved.get("hash") != digest(definition(tool)):
            return "its definition changed since it was approved"
        return ""

    def approved(self, name: str) -> Any:
        """A tool as it was when it was approved; None for one that never was."""
        said = self.tools.get(name)
        return said.get("definition") if isinstance(said, dict) else None


def tool_key(tool: Any) -> str:
    """The name a server gives a tool; nothing for what is no tool."""
    name = tool.get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) else ""


def definition(tool: dict[str, Any]) -> dict[str, Any]:
    """What of a tool is approved, to the last character."""
    return {name: tool[name] for name in _PINNED if tool.get(name) is not None}


def differences(server: Server, tools: list[Any], pin: Pin | None) -> list[str]:
    """What is different from what was approved, as lines for a person."""
    if pin is None:
        return [f"{server.name} was never approved"]
    lines: list[str] = []
    if not pin.launched_as(server):
        lines += _diff("how it is started", pin.launched, server.launch)
    now = {tool_key(tool): definition(tool) for tool in tools if tool_key(tool)}
    for name in sorted(pin.tools.keys() | now.keys()):
        before, after = pin.approved(name), now.get(name)
        if digest(before) != digest(after):
            lines += _diff(name, before, after)
    return lines


def _diff(what: str, before: Any, after: Any) -> list[str]:
    import difflib

    shown = difflib.unified_diff(
        _lines(before),
        _lines(after),
        f"{what} (approved)" if before is not None else "(not there)",
        f"{what} (now)" if after is not None else "(not there)",
        lineterm="",
        n=2,
    )
    return list(shown)


def _lines(value: Any) -> list[str]:
    """A value as text that shows every character: what is unseen is spelled out."""
    import json

    if value is None:
        return []
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    seen = "".join(c if c.isprintable() or c == "\n" else f"\\u{ord(c):04x}" for c in text)
    # A long description as one line would hide what changed in it.
    return [line for part in seen.split("\n") for line in _folded(part)]


def _folded(line: str) -> list[str]:
    return [line[at : at + 160] for at in range(0, len(line), 160)] or [""]
