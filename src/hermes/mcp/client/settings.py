"""Server definitions: `mcp_servers` in `config.yaml` and a project's `.mcp.json`, read and edited.

    mcp_servers:
      git:                                    a program of this machine
        command: mcp-server-git
        args: [--repository, .]
        env: {TOKEN: "${GIT_TOKEN}"}          added to a small set of variables
      tracker:                                a server on the network
        url: https://mcp.example.com/mcp
        headers: {X-Team: "${TEAM}"}
        auth: oauth

An invalid definition is kept with its `problem`, so that the others work. A project's file is used
only while a person trusts its exact content.
"""

from __future__ import annotations

import os
import re

from hermes.core.config import Config
from hermes.core.errors import ConfigError
from hermes.core.paths import home_path, write_private
from hermes.core.wire_names import is_server_name

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any


PROJECT_FILE = ".mcp.json"
CALL_SECONDS = 120.0
CONNECT_SECONDS = 30.0
WAIT_SECONDS = 15.0
OSV_URL = "https://api.osv.dev/v1/query"

_TEXTS = ("command", "cwd", "url")
_CONFINE = ("auto", "on", "off")
_MAX_FILE_BYTES = 1_000_000
_FIELDS = frozenset(
    ("command", "args", "env", "cwd", "url", "headers", "auth", "enabled", "disabled", "lazy",
     "timeout", "connect_timeout", "include", "exclude", "sampling", "type", "transport",
     "confine")
)  # fmt: skip
_AUTH_FIELDS = frozenset(
    ("type", "client_id", "client_secret", "scope", "flow", "issuer", "client_metadata_url",
     "private_key", "private_key_file", "algorithm", "assertion", "assertion_file", "id_token",
     "idp_token_endpoint", "idp_client_id", "idp_client_secret")
)  # fmt: skip
_FLOWS = ("browser", "device", "client_credentials", "jwt_bearer", "identity_assertion")


class Server:
    """The definition of one server; `problem` is the reason why it can't be used."""

    __slots__ = (
        "args",
        "auth",
        "call_seconds",
        "command",
        "confine",
        "connect_seconds",
        "cwd",
        "enabled",
        "env",
        "exclude",
        "headers",
        "include",
        "lazy",
        "name",
        "problem",
        "sampling",
        "source",
        "url",
    )

    def __init__(self, name: str, definition: Any, source: str) -> None:
        self.name = name
        self.source = source
        self.problem = ""
        self.command = self.url = self.cwd = ""
        self.confine = "auto"
        self.args: list[str] = []
        self.env: dict[str, str] = {}
        self.headers: dict[str, str] = {}
        self.auth: dict[str, Any] = {}
        self.include: list[str] = []
        self.exclude: list[str] = []
        self.enabled, self.lazy = True, False
        self.sampling = 0  # tokens that the server may use of our model
        self.call_seconds, self.connect_seconds = CALL_SECONDS, CONNECT_SECONDS
        try:
            self._read(definition)
        except ConfigError as error:
            self.problem = str(error)

    @property
    def remote(self) -> bool:
        """Whether it is reached over HTTP."""
        return bool(self.url)

    @property
    def launch(self) -> dict[str, Any]:
        """The settings that choose the program or address; a change needs a new approval."""
        if self.remote:
            return {"url": self.url, "headers": sorted(self.headers)}
        return {
            "command": self.command,
            "args": self.args,
            "cwd": self.cwd,
            # With references unexpanded: this is stored, and values may be secret.
            "env": dict(sorted(self.env.items())),
        }

    @property
    def of_project(self) -> bool:
        """Whether it is defined by a project's file, not by the person's settings."""
        return self.source != "config.yaml"

    def includes(self, tool: str) -> bool:
        """Whether `include` and `exclude` select a tool."""
        from fnmatch import fnmatchcase

        if self.include and not any(fnmatchcase(tool, pattern) for pattern in self.include):
            return False
        return not any(fnmatchcase(tool, pattern) for pattern in self.exclude)

    def _read(self, said: Any) -> None:
        if not is_server_name(self.name):
            raise ConfigError(f"{self.name!r:.60} can't be a server's name")
        if not isinstance(said, dict):
            raise ConfigError("its definition is no object")
        unknown = sorted(str(key) for key in said if key not in _FIELDS)
        if unknown:
            raise ConfigError(f"its definition has the unknown {', '.join(unknown)[:80]}")
        for name in _TEXTS:
            setattr(self, name, _text(said, name))
        self.args = _texts(said, "args")
        self.include, self.exclude = _texts(said, "include"), _texts(said, "exclude")
        self.env, self.headers = _pairs(said, "env"), _pairs(said, "headers")
        self.enabled = _flag(said, "enabled", default=True) and not _flag(said, "disabled")
        self.lazy = _flag(said, "lazy")
        self.call_seconds = _seconds(said, "timeout", CALL_SECONDS)
        self.connect_seconds = _seconds(said, "connect_timeout", CONNECT_SECONDS)
        sampling = said.get("sampling", 0)
        if type(sampling) is not int or sampling < 0:
            raise ConfigError("sampling must be a number of tokens, or 0 for never")
        self.sampling = sampling
        # YAML reads a bare `on` and `off` as booleans.
        confine = {True: "on", False: "off"}.get(said.get("confine", "auto"), said.get("confine"))
        if confine not in (None, *_CONFINE):
            raise ConfigError(f"confine must be one of {', '.join(_CONFINE)}")
        self.confine = confine or "auto"
        self.auth = _auth(said.get("auth"))
        kind = said.get("type") or said.get("transport") or ""
        if kind not in (
            "",
            "stdio",
            "http",
            "streamable-http",
            "streamable_http",
            "streamableHttp",
        ):
            raise ConfigError(f"its type {kind!r:.40} is not known; there are stdio and http")
        if bool(self.command) == bool(self.url):
            raise ConfigError("it needs either a command or a url")
        if self.url and not self.url.startswith(("https://", "http://", "${")):
            raise ConfigError(f"its url {self.url!r:.60} is no http address")


class Settings:
    """The section `mcp`: settings for all servers."""

    __slots__ = ("osv", "osv_url", "wait_seconds")

    def __init__(self, values: Mapping[str, Any]) -> None:
        section = values.get("mcp")
        section = section if isinstance(section, dict) else {}
        osv = section.get("osv", "warn")
        if osv not in ("warn", "block", "off", False):
            raise ConfigError(f"mcp.osv must be warn, block or off, not {osv!r:.40}")
        self.osv: str = osv or "off"
        self.osv_url = str(section.get("osv_url") or OSV_URL)
        self.wait_seconds = _seconds(section, "wait_seconds", WAIT_SECONDS)


def has_servers(config: Config, project: str) -> bool:
    """Whether any server may be configured; cheap."""
    return bool(config.values.get("mcp_servers")) or os.path.exists(
        os.path.join(project, PROJECT_FILE)
    )


def servers(config: Config, project: str) -> list[Server]:
    """All servers, sorted by name; the user's definition overrides the project's."""
    section = config.values.get("mcp_servers") or {}
    if not isinstance(section, dict):
        raise ConfigError(
            f"mcp_servers in {config.path} must be servers by name", hint="hermes config edit"
        )
    by_name = {
        str(name): Server(str(name), definition, "config.yaml")
        for name, definition in section.items()
    }
    for server in _project_servers(project):
        by_name.setdefault(server.name, server)
    return [by_name[name] for name in sorted(by_name)]


def _project_servers(project: str) -> Iterator[Server]:
    path = os.path.join(project, PROJECT_FILE)
    if not os.path.exists(path):
        return
    import json

    from hermes.runtime.plugins import TrustStore

    try:
        values = json.loads(_project_text(path))
        section = values if isinstance(values, dict) else None
        if section is not None:
            section = section.get("mcpServers") or section.get("mcp_servers") or {}
        if not isinstance(section, dict):
            raise ValueError("it does not hold servers by name")
    except (OSError, ValueError, RecursionError) as error:
        broken = Server(PROJECT_FILE.strip("."), {}, path)
        broken.problem = f"{path} can't be read: {error}"
        yield broken
        return
    trusted = TrustStore().trusts(path)
    for name, definition in section.items():
        server = Server(str(name), definition, path)
        if not trusted and not server.problem:
            server.problem = f"nobody trusts it yet: hermes trust {PROJECT_FILE}"
        yield server


def _project_text(path: str) -> str:
    """The content of an untrusted project's file; raises for a FIFO or a huge file."""
    import stat

    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("it is no file")
        with open(handle, "rb", closefd=False) as file:
            data = file.read(_MAX_FILE_BYTES + 1)
    finally:
        os.close(handle)
    if len(data) > _MAX_FILE_BYTES:
        raise ValueError(f"it has more than {_MAX_FILE_BYTES} bytes")
    return data.decode("utf-8-sig")


def _text(section: dict[str, Any], name: str) -> str:
    value = section.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ConfigError(f"{name} must be text, not {value!r:.40}")
    return value.strip()


def _texts(section: dict[str, Any], name: str) -> list[str]:
    value = section.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or any(isinstance(item, (dict, list)) for item in value):
        raise ConfigError(f"{name} must be a list of texts, not {value!r:.40}")
    return [item if isinstance(item, str) else _scalar_text(item) for item in value]


def _pairs(section: dict[str, Any], name: str) -> dict[str, str]:
    value = section.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict) or any(isinstance(v, (dict, list)) for v in value.values()):
        raise ConfigError(f"{name} must be texts by name, not {value!r:.40}")
    return {
        str(key): item if isinstance(item, str) else _scalar_text(item)
        for key, item in value.items()
    }


def _scalar_text(value: Any) -> str:
    """The text of a number or boolean that YAML did not read as text."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _flag(section: dict[str, Any], name: str, *, default: bool = False) -> bool:
    value = section.get(name, default)
    if not isinstance(value, bool):
        raise ConfigError(f"{name} must be true or false, not {value!r:.40}")
    return value


def _seconds(section: Mapping[str, Any], name: str, default: float) -> float:
    value = section.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 86_400:
        raise ConfigError(f"{name} must be a number of seconds, not {value!r:.40}")
    return float(value)


def _auth(item: Any) -> dict[str, Any]:
    """The section `auth`: nothing, `oauth`, or an object."""
    if item in (None, "", "none", False):
        return {}
    if item == "oauth":
        return {"type": "oauth"}
    if isinstance(item, dict) and item.get("type", "oauth") == "oauth":
        unknown = sorted(str(key) for key in item if key not in _AUTH_FIELDS)
        if unknown:
            raise ConfigError(f"auth has no {', '.join(unknown)[:200]}")
        if item.get("flow", _FLOWS[0]) not in _FLOWS:
            raise ConfigError(f"auth.flow must be one of {', '.join(_FLOWS)}")
        if all(isinstance(item, str) for item in item.values()):
            return {"type": "oauth", **item}
    raise ConfigError("auth must be `oauth`, or an object with client_id, scope and the like")


_BRACED = r"\$\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}"
_REFERENCE = re.compile(_BRACED)
_ANY = re.compile(rf"{_BRACED}|\$(?P<bare>[A-Za-z_][A-Za-z0-9_]*)")


def expand(text: str, *, bare: bool = False) -> str:
    """Expand `${NAME}` and `${NAME:-default}` from the environment; `bare` allows `$NAME` too.

    Raises `ConfigError` for a variable that is not set and has no default.
    """
    return (_ANY if bare else _REFERENCE).sub(_value, text)


def _value(match: re.Match[str]) -> str:
    named = match.groupdict()
    name, default = named["name"] or named["bare"], named["default"]
    value = os.environ.get(name)
    if value or (value is not None and default is None):
        return value
    if default is None:
        raise ConfigError(f"the variable {name} is not set")
    return default


SECTION = "mcp_servers"


def put_server(name: str, definition: dict[str, Any]) -> bool:
    """Add or replace a server; whether it existed."""
    values = Config.load().values
    section = _section(values)
    wanted = {**values, SECTION: {**section, name: definition}}
    _write(wanted, [SECTION, name], definition)
    return name in section


def drop_server(name: str) -> bool:
    """Remove a server; whether it existed."""
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

    from hermes.core.yaml_edit import edited

    # A symbolic link stays one.
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
