"""Pins: approved tool definitions by hash; a changed definition is suspended until approved."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.errors import ConfigError
from hermes.core.paths import home_path, locked, write_private
from hermes.mcp.client.listing import digest, launch_digest

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

    from hermes.mcp.client.settings import Server

# The approved fields of a tool: all that a model reads or the gate depends on.
_PINNED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


class Pins:
    """The approvals in `approvals/mcp.json`, a file that the gate guards."""

    def __init__(self, path: str | None = None) -> None:
        self.path = path or home_path("approvals", "mcp.json")

    def all(self) -> dict[str, Any]:
        """The approvals by server."""
        import json

        try:
            with open(self.path, encoding="utf-8") as file:
                approvals = json.load(file)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(f"{self.path} can't be read: {error}") from None
        if not isinstance(approvals, dict):
            raise ConfigError(f"{self.path} can't be read: it holds no servers")
        return approvals

    def stamp(self) -> int:
        """The modification time of the file."""
        try:
            return os.stat(self.path).st_mtime_ns
        except FileNotFoundError:
            return 0

    def of(self, server: str) -> Pin | None:
        """The approvals of one server; None for a new server."""
        values = self.all().get(server)
        return Pin(values) if isinstance(values, dict) else None

    def approve(
        self, server: Server, tools: list[Any], *, only: list[str] | None = None
    ) -> list[str]:
        """Approve the current definitions, or `only` some; the names approved."""
        with self._lock():
            approvals = self.all()
            entry = approvals.get(server.name)
            before: dict[str, Any] = entry if isinstance(entry, dict) else {}
            pinned = dict(before.get("tools") or {}) if only is not None else {}
            names = []
            for tool in tools:
                name = tool_key(tool)
                if name and (only is None or name in only):
                    fields = definition(tool)
                    pinned[name] = {"hash": digest(fields), "definition": fields}
                    names.append(name)
            approvals[server.name] = {
                "launch": launch_digest(server),
                "launched": server.launch,
                "tools": pinned,
            }
            self._write(approvals)
        return names

    def forget(self, server: str) -> bool:
        """Delete the approvals of a server."""
        with self._lock():
            approvals = self.all()
            if server not in approvals:
                return False
            del approvals[server]
            self._write(approvals)
            return True

    def _write(self, approvals: dict[str, Any]) -> None:
        import json

        text = json.dumps(approvals, indent=1, sort_keys=True, ensure_ascii=False)
        write_private(self.path, text.encode("utf-8", "replace"))

    def _lock(self) -> AbstractContextManager[None]:
        return locked(os.path.dirname(self.path), directory=True)


class Pin:
    """The approvals of one server."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.launch = str(values.get("launch", ""))
        self.launched = values.get("launched") or {}
        tools = values.get("tools")
        self.tools: dict[str, Any] = tools if isinstance(tools, dict) else {}

    def launched_as(self, server: Server) -> bool:
        """Whether the launch settings are the approved ones."""
        return self.launch == launch_digest(server)

    def objection(self, tool: dict[str, Any]) -> str:
        """The reason why a tool has to be approved again; empty when it is unchanged."""
        approved = self.tools.get(tool_key(tool))
        if not isinstance(approved, dict):
            return "it is new since the server was approved"
        if approved.get("hash") != digest(definition(tool)):
            return "its definition changed since it was approved"
        return ""

    def approved(self, name: str) -> Any:
        """The approved definition of a tool; None for a new one."""
        entry = self.tools.get(name)
        return entry.get("definition") if isinstance(entry, dict) else None


def tool_key(tool: Any) -> str:
    """The name of a tool at its server; empty for an invalid definition."""
    name = tool.get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) else ""


def definition(tool: dict[str, Any]) -> dict[str, Any]:
    """The approved fields of a tool."""
    return {name: tool[name] for name in _PINNED if tool.get(name) is not None}


def differences(server: Server, tools: list[Any], pin: Pin | None) -> list[str]:
    """The changes since the approval, as a diff."""
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


def _diff(title: str, before: Any, after: Any) -> list[str]:
    import difflib

    shown = difflib.unified_diff(
        _lines(before),
        _lines(after),
        f"{title} (approved)" if before is not None else "(not there)",
        f"{title} (now)" if after is not None else "(not there)",
        lineterm="",
        n=2,
    )
    return list(shown)


def _lines(value: Any) -> list[str]:
    """A value as JSON lines with invisible characters escaped."""
    import json

    if value is None:
        return []
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    visible = "".join(c if c.isprintable() or c == "\n" else f"\\u{ord(c):04x}" for c in text)
    # Long lines are cut: a diff of one long line shows no place.
    return [line for part in visible.split("\n") for line in _wrapped(part)]


def _wrapped(line: str) -> list[str]:
    return [line[at : at + 160] for at in range(0, len(line), 160)] or [""]
