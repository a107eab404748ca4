"""Server definitions: `mcp_servers` in `config.yaml` and a project's `.mcp.json`, read and edited;
`${NAME}` references.
"""

from __future__ import annotations

import os
import re

from hermes.core.config import Config
from hermes.core.errors import ConfigError
from hermes.core.home import home_path, write_private
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
# How long a project's file may be.
_MOST_BYTES = 1_000_000
_KNOWN = frozenset(
    ("command", "args", "env", "cwd", "url", "headers", "auth", "enabled", "disabled", "lazy",
     "timeout", "connect_timeout", "include", "exclude", "sampling", "type", "transport")
)  # fmt: skip
_AUTH = frozenset(
    ("type", "client_id", "client_secret", "scope", "flow", "issuer", "client_metadata_url",
     "private_key", "private_key_file", "algorithm", "assertion", "assertion_file", "id_token",
     "idp_token_endpoint", "idp_client_id", "idp_client_secret")
)  # fmt: skip
_FLOWS = ("browser", "device", "client_credentials", "jwt_bearer", "identity_assertion")


class Server:
    """What is said about one server. `problem` says why it can't be used as it is."""

    __slots__ = (
        "args",
        "auth",
        "call_seconds",
        "command",
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

    def __init__(self, name: str, said: Any, source: str) -> None:
        self.name = name
        self.source = source
        self.problem = ""
        self.command = self.url = self.cwd = ""
        self.args: list[str] = []
        self.env: dict[str, str] = {}
        self.headers: dict[str, str] = {}
        self.auth: dict[str, Any] = {}
        self.include: list[str] = []
        self.exclude: list[str] = []
        self.enabled, self.lazy = True, False
        # How many times, and how many tokens in all, the server may ask our model; 0 is never.
        self.sampling = 0
        self.call_seconds, self.connect_seconds = CALL_SECONDS, CONNECT_SECONDS
        try:
            self._read(said)
        except ConfigError as error:
            self.problem = str(error)

    @property
    def remote(self) -> bool:
        """Whether it is reached over the network."""
        return bool(self.url)

    @property
    def launch(self) -> dict[str, Any]:
        """What decides which program answers: a change of it needs a new approval."""
        if self.remote:
            return {"url": self.url, "headers": sorted(self.headers)}
        return {
            "command": self.command,
            "args": self.args,
            "cwd": self.cwd,
            # References and not values, so that no secret is kept.
            "env": dict(sorted(self.env.items())),
        }

    def wants(self, tool: str) -> bool:
        """Whether a tool of it is to be had."""
        from fnmatch import fnmatchcase

        if self.include and not any(fnmatchcase(tool, pattern) for pattern in self.include):
            return False
        return not any(fnmatchcase(tool, pattern) for pattern in self.exclude)

    def _read(self, said: Any) -> None:
        if not is_server_name(self.name):
            raise ConfigError(f"{self.name!r:.60} can't be a server's name")
        if not isinstance(said, dict):
            raise ConfigError("its definition is no object")
        unknown = sorted(str(key) for key in said if key not in _KNOWN)
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
    """What `mcp` in the settings says for all servers."""

    __slots__ = ("osv", "osv_url", "wait_seconds")

    def __init__(self, values: Mapping[str, Any]) -> None:
        said = values.get("mcp")
        said = said if isinstance(said, dict) else {}
        osv = said.get("osv", "warn")
        if osv not in ("warn", "block", "off", False):
            raise ConfigError(f"mcp.osv must be warn, block or off, not {osv!r:.40}")
        self.osv: str = osv or "off"
        self.osv_url = str(said.get("osv_url") or OSV_URL)
        self.wait_seconds = _seconds(said, "wait_seconds", WAIT_SECONDS)


def has_servers(config: Config, project: str) -> bool:
    """Whether there may be any server at all; costs next to nothing."""
    return bool(config.values.get("mcp_servers")) or os.path.exists(
        os.path.join(project, PROJECT_FILE)
    )


def servers(config: Config, project: str) -> list[Server]:
    """Every server that is named, by name; the home's definition goes before the project's."""
    said = config.values.get("mcp_servers") or {}
    if not isinstance(said, dict):
        raise ConfigError(
            f"mcp_servers in {config.path} must be servers by name", hint="hermes config edit"
        )
    found = {str(name): Server(str(name), one, "config.yaml") for name, one in said.items()}
    for server in _project_servers(project):
        found.setdefault(server.name, server)
    return [found[name] for name in sorted(found)]


def _project_servers(project: str) -> Iterator[Server]:
    place = os.path.join(project, PROJECT_FILE)
    if not os.path.exists(place):
        return
    import json

    from hermes.runtime.trust import TrustStore

    try:
        values = json.loads(_project_text(place))
        said = values if isinstance(values, dict) else None
        if said is not None:
            said = said.get("mcpServers") or said.get("mcp_servers") or {}
        if not isinstance(said, dict):
            raise ValueError("it does not hold servers by name")
    except (OSError, ValueError, RecursionError) as error:
        broken = Server(PROJECT_FILE.strip("."), {}, place)
        broken.problem = f"{place} can't be read: {error}"
        yield broken
        return
    trusted = TrustStore().trusts(place)
    for name, one in said.items():
        server = Server(str(name), one, place)
        if not trusted and not server.problem:
            server.problem = f"nobody trusts it yet: hermes trust {PROJECT_FILE}"
        yield server


def _project_text(place: str) -> str:
    """What a project's file says. The project is a stranger's: it may be anything but a file."""
    import stat

    handle = os.open(place, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("it is no file")
        with open(handle, "rb", closefd=False) as file:
            said = file.read(_MOST_BYTES + 1)
    finally:
        os.close(handle)
    if len(said) > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES} bytes")
    return said.decode("utf-8-sig")


def _text(said: dict[str, Any], name: str) -> str:
    value = said.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ConfigError(f"{name} must be text, not {value!r:.40}")
    return value.strip()


def _texts(said: dict[str, Any], name: str) -> list[str]:
    value = said.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or any(isinstance(one, (dict, list)) for one in value):
        raise ConfigError(f"{name} must be a list of texts, not {value!r:.40}")
    return [one if isinstance(one, str) else _spelled(one) for one in value]


def _pairs(said: dict[str, Any], name: str) -> dict[str, str]:
    value = said.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict) or any(isinstance(v, (dict, list)) for v in value.values()):
        raise ConfigError(f"{name} must be texts by name, not {value!r:.40}")
    return {str(key): one if isinstance(one, str) else _spelled(one) for key, one in value.items()}


def _spelled(value: Any) -> str:
    """A value that YAML read as something else than the text it was meant to be."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _flag(said: dict[str, Any], name: str, *, default: bool = False) -> bool:
    value = said.get(name, default)
    if not isinstance(value, bool):
        raise ConfigError(f"{name} must be true or false, not {value!r:.40}")
    return value


def _seconds(said: Mapping[str, Any], name: str, default: float) -> float:
    value = said.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 86_400:
        raise ConfigError(f"{name} must be a number of seconds, not {value!r:.40}")
    return float(value)


def _auth(said: Any) -> dict[str, Any]:
    """How to log in: nothing, `oauth`, or an object with more to say."""
    if said in (None, "", "none", False):
        return {}
    if said == "oauth":
        return {"type": "oauth"}
    if isinstance(said, dict) and said.get("type", "oauth") == "oauth":
        unknown = sorted(str(key) for key in said if key not in _AUTH)
        if unknown:
            raise ConfigError(f"auth has no {', '.join(unknown)[:200]}")
        if said.get("flow", _FLOWS[0]) not in _FLOWS:
            raise ConfigError(f"auth.flow must be one of {', '.join(_FLOWS)}")
        if all(isinstance(value, str) for value in said.values()):
            return {"type": "oauth", **said}
    raise ConfigError("auth must be `oauth`, or an object with client_id, scope and the like")


_BRACED = r"\$\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<otherwise>[^}]*))?\}"
_REFERENCE = re.compile(_BRACED)
_ANY = re.compile(rf"{_BRACED}|\$(?P<bare>[A-Za-z_][A-Za-z0-9_]*)")


def filled(text: str, *, bare: bool = False) -> str:
    """`text` with what its references stand for; `bare` reads `$NAME` too.

    Raises `ConfigError` for a variable that is not set and has no other value.
    """
    return (_ANY if bare else _REFERENCE).sub(_value, text)


def _value(found: re.Match[str]) -> str:
    named = found.groupdict()
    name, otherwise = named["name"] or named["bare"], named["otherwise"]
    said = os.environ.get(name)
    if said or (said is not None and otherwise is None):
        return said
    if otherwise is None:
        raise ConfigError(f"the variable {name} is not set")
    return otherwise


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

    from hermes.core.yaml_edit import edited

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
