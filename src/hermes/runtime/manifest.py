"""Manifest: cache of tool declarations, keyed by a digest of the module's source, so that listing
imports no tool.
"""

from __future__ import annotations

import os
import sys

import hermes
from hermes.core.availability import Requirement
from hermes.core.entry import ToolEntry
from hermes.core.errors import HermesError, RegistrationError
from hermes.core.home import home_path, write_private

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

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
        else Later(module, name, "check_fn")
        if check
        else None,
        acts=Later(module, name, "acts") if fields["acts"] == "code" else fields["acts"],
        dynamic_schema_overrides=Later(module, name, "dynamic_schema_overrides")
        if fields["dynamic"]
        else None,
        **plain,
    )


class Later:
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
