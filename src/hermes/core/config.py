"""The settings: `config.yaml` in the home folder, read when first asked for.

`DEFAULTS` names every setting there is; a key that is not in it is a typo and said to be one.
`set_value` changes one line of the file and keeps the rest, comments included, as it was.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.errors import ConfigError
from hermes.core.home import home_path, write_private

if TYPE_CHECKING:
    from typing import Any

# Dotted name -> (default, what it is for).
DEFAULTS: dict[str, tuple[Any, str]] = {
    "tools.enabled_toolsets": ([], "toolsets to offer; empty means all"),
    "tools.disabled_toolsets": ([], "toolsets to leave out"),
    "tools.defer_above": (24, "offer tools through tool_search when there are more than this"),
    "tools.parallel": (16, "how many calls of one turn may run at once"),
    "artifacts.max_bytes": (512 * 1024 * 1024, "room for large results before the oldest goes"),
    "artifacts.keep_days": (7, "how long a large result can be read back"),
    "audit.enabled": (True, "write one line per call to the audit log"),
    "plugins.enabled": (True, "load plugins from the home folder and installed packages"),
    "plugins.disabled": ([], "plugins to leave out, by name"),
    "network.allow_private": (False, "let tools reach private and loopback addresses"),
    "network.allow_hosts": ([], "hosts that tools may reach whatever they resolve to"),
    "network.deny_hosts": ([], "hosts that tools may never reach"),
    "command_allowlist": ([], "commands approved for good; written by approvals"),
}


class Config:
    """The settings of one run, as the file has them, over the defaults."""

    def __init__(self, values: dict[str, Any] | None = None, *, path: str = "") -> None:
        self.values = values or {}
        self.path = path

    @classmethod
    def load(cls, path: str | None = None) -> Config:
        """Read the file; a missing one means the defaults."""
        path = path or home_path("config.yaml")
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            return cls(path=path)
        except OSError as error:
            raise ConfigError(f"{path} can't be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ConfigError(f"{path} is not UTF-8 text") from None
        return cls(_parse(text, path), path=path)

    def get(self, name: str) -> Any:
        """The value of a setting; a whole section as an object."""
        if name not in DEFAULTS:
            section = {key: self.get(key) for key in DEFAULTS if key.startswith(f"{name}.")}
            if not section:
                raise unknown_setting(name)
            return {key[len(name) + 1 :]: value for key, value in section.items()}
        value: Any = self.values
        for part in name.split("."):
            if not isinstance(value, dict) or part not in value:
                return DEFAULTS[name][0]
            value = value[part]
        return check_value(name, value, self.path)


def check_value(name: str, value: Any, path: str) -> Any:
    """`value` when it is of the setting's kind."""
    default = DEFAULTS[name][0]
    kind = type(default)
    if isinstance(value, bool) != isinstance(default, bool) or not isinstance(value, kind):
        raise ConfigError(
            f"{name} in {path} must be {_KINDS[kind]}, not {value!r:.60}",
            hint=f"hermes config set {name} {default!r}",
        )
    return value


_KINDS = {bool: "true or false", int: "a whole number", list: "a list", str: "text"}


def unknown_setting(name: str) -> ConfigError:
    """The error for a name that is no setting, with the nearest that is."""
    import difflib

    near = difflib.get_close_matches(name, DEFAULTS, 1, 0.4)
    hint = f"Did you mean {near[0]}?" if near else "hermes config lists them all."
    return ConfigError(f"there is no setting {name!r}", hint=hint)


def set_value(name: str, text: str, path: str | None = None) -> Any:
    """Set one setting from what a person typed; the value as it was understood."""
    import yaml

    if name not in DEFAULTS:
        raise unknown_setting(name)
    path = path or home_path("config.yaml")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        value = text
    if isinstance(DEFAULTS[name][0], list) and not isinstance(value, list):
        value = [part.strip() for part in text.split(",") if part.strip()]
    check_value(name, value, "the command")
    config = Config.load(path)
    before = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            before = file.read()
    after = _edited(before, name.split("."), yaml.safe_dump(value, default_flow_style=True))
    wanted = _merged(config.values, name.split("."), value)
    if _parse(after, path) != wanted:
        # The text has a shape the small edit does not understand: nothing is lost but comments.
        after = yaml.safe_dump(wanted, sort_keys=False, allow_unicode=True)
    write_private(path, after.encode())
    return value


def _parse(text: str, path: str) -> dict[str, Any]:
    import yaml

    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "not YAML"
        raise ConfigError(
            f"{path} can't be read{where}: {problem}", hint="hermes config edit"
        ) from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold settings by name", hint="hermes config edit")
    return values


def _merged(values: dict[str, Any], parts: list[str], value: Any) -> dict[str, Any]:
    first, rest = parts[0], parts[1:]
    inner = values.get(first)
    inner = inner if isinstance(inner, dict) else {}
    return {**values, first: _merged(inner, rest, value) if rest else value}


def _edited(text: str, parts: list[str], dumped: str) -> str:
    """`text` with one value put in its place, or a new line where it belongs."""
    import yaml

    value = dumped.strip().removesuffix("...").strip()
    node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    indent, end = "", len(text)
    while parts and isinstance(node, yaml.MappingNode):
        found = next((pair for pair in node.value if pair[0].value == parts[0]), None)
        if found is None:
            indent = " " * node.start_mark.column
            end = node.end_mark.index
            break
        node = found[1]
        parts = parts[1:]
        if not parts:
            tail = text[node.end_mark.index :]
            gap = "\n" if isinstance(node, yaml.CollectionNode) and not node.flow_style else ""
            return text[: node.start_mark.index] + value + gap + tail
    lines = "".join(
        f"{indent}{'  ' * depth}{part}:" + (f" {value}\n" if part is parts[-1] else "\n")
        for depth, part in enumerate(parts)
    )
    head = text[:end]
    if head and not head.endswith("\n"):
        head += "\n"
    return head + lines + text[end:]
