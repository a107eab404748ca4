"""Changes to `mcp_servers` in `config.yaml`; every other line stays as it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.config import Config
from hermes.core.errors import ConfigError
from hermes.core.home import home_path, write_private

if TYPE_CHECKING:
    from typing import Any

SECTION = "mcp_servers"


def put_server(name: str, definition: dict[str, Any]) -> bool:
    """Add a server, or define it anew; whether it was there."""
    values = Config.load().values
    section = _section(values)
    wanted = {**values, SECTION: {**section, name: definition}}
    _write(wanted, [SECTION, name], definition)
    return name in section


def drop_server(name: str) -> bool:
    """Take a server out; whether it was there."""
    values = Config.load().values
    section = _section(values)
    if name not in section:
        return False
    kept = {key: value for key, value in section.items() if key != name}
    _write({**values, SECTION: kept}, [SECTION], kept)
    return True


def _section(values: dict[str, Any]) -> dict[str, Any]:
    section = values.get(SECTION) or {}
    if not isinstance(section, dict):
        raise ConfigError(f"{SECTION} must be servers by name", hint="hermes config edit")
    return section


def _write(wanted: dict[str, Any], parts: list[str], value: Any) -> None:
    import yaml

    from hermes.core.config_edit import edited

    # Where a link leads, so that a linked file stays one.
    path = os.path.realpath(home_path("config.yaml"))
    before = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8", newline="") as file:
            before = file.read()
    after = edited(before, parts, value)
    if after is None or _read(after) != wanted:
        after = yaml.safe_dump(wanted, sort_keys=False, allow_unicode=True)
    write_private(path, after.encode())


def _read(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return None
