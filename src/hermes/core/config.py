"""Settings: `config.yaml` in the home directory, read on first access."""

from __future__ import annotations

import os

from hermes.core.errors import ConfigError, did_you_mean
from hermes.core.paths import home_path, locked, write_private

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Dotted name -> (default, what it is for).
DEFAULTS: dict[str, tuple[Any, str]] = {
    "tools.enabled_toolsets": ([], "toolsets to offer; empty means all"),
    "tools.disabled_toolsets": ([], "toolsets to leave out"),
    "tools.defer_above": (12, "offer tools through tool_search when there are more than this"),
    "tools.parallel": (16, "how many calls of one turn may run at once"),
    "search.embeddings": (False, "let an embedding model help tool_search (extra: embeddings)"),
    "model.name": ("", "the model to ask, or SERVICE/MODEL"),
    "model.provider": ("", "the service that has it"),
    "model.base_url": ("", "the address of the service"),
    "model.api": ("", "how it is asked: chat, responses or anthropic"),
    "model.key_env": ("", "the variable that holds its key"),
    "model.idle_timeout": (60, "seconds without a word before it is asked again"),
    "model.window": (0, "how many tokens a conversation may have; 0 means what is known of it"),
    "model.fallbacks": ([], "models to ask when the first one does not answer, in order"),
    "model.prices": ([], "lines of: NAME INPUT OUTPUT [CACHED [WRITTEN]], dollars per million"),
    "artifacts.max_bytes": (512 * 1024 * 1024, "room for large results before the oldest goes"),
    "artifacts.keep_days": (7, "how long a large result can be read back"),
    "terminal.env_type": ("local", "where commands run and files lie: local, sandbox, docker, …"),
    "terminal.pass_env": ([], "variables that commands may see besides the usual ones"),
    "terminal.ansi": (False, "whether colours stay in what commands print"),
    "terminal.idle_minutes": (60, "when a container or sandbox without use is ended; 0 is never"),
    "terminal.confine.mode": ("auto", "limit what local commands can do: auto, on or off"),
    "terminal.confine.network": ("open", "the network of confined commands: open, hosts or off"),
    "terminal.confine.hosts": ([], "names that they may reach with `hosts`: example.org, *.org"),
    "terminal.confine.allow": ([], "access by name: ssh-agent, docker, github, …"),
    "terminal.confine.write": ([], "more folders that they may write"),
    "terminal.confine.outside": ([], "commands that run without limits, by their first words"),
    "terminal.sandbox.network": (False, "let commands in the sandbox reach the network"),
    "terminal.sandbox.binds": ([], "folders that the sandbox may see: SOURCE[:TARGET][:ro|rw]"),
    "terminal.sandbox.memory": (2 * 1024**3, "bytes of memory for all commands of a task"),
    "terminal.sandbox.pids": (256, "how many processes they may be"),
    "terminal.docker.image": ("debian:stable-slim", "the image of the container"),
    "terminal.docker.volumes": ([], "what is mounted besides: SOURCE:TARGET[:ro|rw]"),
    "terminal.docker.network": ("none", "the network of the container"),
    "terminal.docker.memory": (2 * 1024**3, "bytes of memory for the container"),
    "terminal.docker.pids": (256, "how many processes it may have"),
    "terminal.docker.cpus": (0.0, "how many processors it may use; 0 is all"),
    "terminal.docker.user": ("", "the user inside; empty is yours"),
    "terminal.docker.read_only": (False, "whether its own files can't be written"),
    "terminal.docker.mount_workspace": (True, "whether the workspace is mounted"),
    "terminal.docker.pull": (False, "whether a missing image is fetched"),
    "terminal.docker.program": ("", "docker or podman; empty is the one that is there"),
    "terminal.docker.host": ("", "the address of the engine"),
    "terminal.docker.extra_args": ([], "more arguments for the start of the container"),
    "terminal.docker.start_seconds": (30.0, "how long the start may take"),
    "terminal.ssh.host": ("", "the host that commands run on"),
    "terminal.ssh.user": ("", "the user there"),
    "terminal.ssh.port": (0, "the port; 0 is the usual one"),
    "terminal.ssh.cwd": ("", "the folder there to begin in"),
    "terminal.ssh.identity_file": ("", "the key to log in with"),
    "terminal.ssh.config_file": ("", "the settings of ssh to use"),
    "terminal.ssh.known_hosts_file": ("", "where the keys of hosts are"),
    "terminal.ssh.accept_new_hosts": (False, "whether a host never seen before is trusted"),
    "terminal.ssh.multiplex": (True, "whether commands share one connection"),
    "terminal.ssh.start_seconds": (20.0, "how long the connection may take"),
    "terminal.singularity.image": ("", "the image: a file, or docker://…"),
    "terminal.singularity.workdir": ("/workspace", "where the workspace is mounted"),
    "terminal.singularity.binds": ([], "what is bound besides: SOURCE:TARGET[:ro]"),
    "terminal.singularity.overlay": ("", "a writable layer to keep changes in"),
    "terminal.singularity.network": ("host", "host or none"),
    "terminal.singularity.memory": ("", "memory for the instance, such as 2G"),
    "terminal.singularity.pids": (0, "how many processes it may have; 0 is no limit"),
    "terminal.singularity.program": ("", "apptainer or singularity; empty is the one there is"),
    "terminal.singularity.allow_home": (False, "whether the home folder may be bound"),
    "terminal.singularity.start_seconds": (60.0, "how long the start may take"),
    "terminal.modal.app": ("hermes", "the app that sandboxes belong to"),
    "terminal.modal.cwd": ("", "the folder there to begin in"),
    "terminal.modal.image": ("", "the image of the sandbox"),
    "terminal.modal.lifetime": (3600, "seconds until the sandbox ends"),
    "terminal.modal.persistent": (True, "whether a snapshot is kept and used again"),
    "terminal.daytona.api_url": ("", "the address of the service"),
    "terminal.daytona.cwd": ("", "the folder there to begin in"),
    "terminal.daytona.image": ("", "the image of the sandbox"),
    "terminal.daytona.lifetime": (3600, "seconds until the sandbox ends"),
    "terminal.daytona.persistent": (True, "whether a snapshot is kept and used again"),
    "terminal.vercel_sandbox.base_url": ("", "the address of the service"),
    "terminal.vercel_sandbox.cwd": ("", "the folder there to begin in"),
    "terminal.vercel_sandbox.image": ("", "the image of the sandbox"),
    "terminal.vercel_sandbox.lifetime": (3600, "seconds until the sandbox ends"),
    "terminal.vercel_sandbox.persistent": (True, "whether a snapshot is kept and used again"),
    "code.tools": ([], "tools that scripts may call besides the usual ones"),
    "code.timeout_seconds": (300.0, "how long a script may run, unless the call says"),
    "code.max_calls": (50, "how many calls to tools one script may make"),
    "checkpoints.max_bytes": (4 * 1024**3, "room for what undo needs before the oldest goes"),
    "checkpoints.max_file_bytes": (256 * 1024**2, "larger files are not changed by file tools"),
    "checkpoints.keep_days": (30, "how long a change can be undone"),
    "delegation.max_children": (3, "how many agents may work for one at once"),
    "delegation.max_depth": (2, "levels of agents: 2 is one and those that work for it"),
    "delegation.timeout_seconds": (900.0, "how long one may work, unless the call says"),
    "delegation.idle_timeout_seconds": (300.0, "how long without a sign of life"),
    "audit.enabled": (True, "write one line per call to the audit log"),
    "budget.usd_per_day": (0.0, "dollars that all sessions of a day may cost; 0 is no limit"),
    "trace.enabled": (True, "keep spans of turns, model calls and tool calls in the home folder"),
    "trace.max_bytes": (64 * 1024**2, "room for spans before the oldest go"),
    "trace.keep_days": (14, "how long spans are kept"),
    "trace.export": (False, "send spans to trace.otlp_endpoint, too"),
    "trace.otlp_endpoint": ("", "where: http://…:4318; empty is OTEL_EXPORTER_OTLP_ENDPOINT"),
    "memory.distill_every": (30, "turns after which facts worth keeping are put up; 0 is never"),
    "sessions.max_bytes": (0, "room for sessions before the oldest are deleted; 0 is no limit"),
    "sessions.keep_days": (0, "sessions nobody touched for so long are deleted; 0 is never"),
    "sessions.power": (False, "wait for the disk with each line: no power failure loses one"),
    "moa.models": ([], "the models that mixture_of_agents asks; empty is what can be found"),
    "moa.aggregator": ("", "the model that makes one answer of theirs; empty is the agent's"),
    "plugins.enabled": (True, "load plugins from the home folder and installed packages"),
    "plugins.disabled": ([], "plugins to leave out, by name"),
    "mcp_servers": ({}, "servers whose tools are offered; `hermes mcp add` writes them"),
    "mcp.osv": ("warn", "packages that are malware, or can't be looked up: warn, block or off"),
    "mcp.wait_seconds": (15.0, "how long a run waits for servers that are not known yet"),
    "network.allow_private": (False, "let tools reach private and loopback addresses"),
    "network.allow_hosts": ([], "hosts that tools may reach whatever they resolve to"),
    "network.deny_hosts": ([], "hosts that tools may never reach"),
    "permissions.profile": (
        "",
        "the profile of rights in use; empty means the file's, or standard",
    ),
    "approvals.mode": ("standard", "what is asked: plan (only reads), ask, standard or auto"),
    "approvals.smart": (False, "let the model approve small things; people get the rest"),
    "command_allowlist": ([], "commands approved for good; written by approvals"),
}


# A section that may be given as one value, and the setting that this value is.
SHORT = {"terminal.confine": "terminal.confine.mode"}


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
        *above, last = name.split(".")
        for part in above:
            value = value.get(part) if isinstance(value, dict) else None
        if name in SHORT.values() and not isinstance(value, dict):
            # `terminal.confine: off` is short for its mode; YAML reads on and off as booleans.
            value = {True: "on", False: "off"}.get(value, value) if value is not None else None
        else:
            value = value.get(last) if isinstance(value, dict) else None
            if name in SHORT.values() and isinstance(value, bool):
                value = "on" if value else "off"
        if value is None:
            # Left out, or left empty.
            default = DEFAULTS[name][0]
            return default.copy() if isinstance(default, (list, dict)) else default
        return check_value(name, value, self.path)


# What is asked; see `hermes.safety.gate`.
MODES = ("plan", "ask", "standard", "auto")
# Beyond its kind, what a setting may be: (does it hold, how it is said).
RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    # `off` is for a sandboxed environment, which puts it there itself; no setting can.
    "approvals.mode": (
        lambda value: value in MODES,
        "plan, ask, standard or auto",
    ),
    "terminal.confine.mode": (lambda value: value in ("auto", "on", "off"), "auto, on or off"),
    "terminal.confine.network": (
        lambda value: value in ("open", "hosts", "off"),
        "open, hosts or off",
    ),
    "tools.parallel": (lambda value: value >= 1, "at least 1"),
    "tools.defer_above": (lambda value: value >= 0, "at least 0"),
    "artifacts.max_bytes": (lambda value: value >= 0, "at least 0"),
    "artifacts.keep_days": (lambda value: value >= 0, "at least 0"),
    "checkpoints.max_bytes": (lambda value: value >= 0, "at least 0"),
    "model.prices": (
        lambda value: all(map(_is_price, value)),
        "lines of NAME INPUT OUTPUT [CACHED [WRITTEN]] with dollars per million tokens",
    ),
    "budget.usd_per_day": (lambda value: 0 <= value < float("inf"), "at least 0"),
    "trace.max_bytes": (lambda value: value >= 0, "at least 0"),
    "trace.keep_days": (lambda value: value >= 1, "at least 1"),
    "memory.distill_every": (lambda value: value >= 0, "at least 0"),
    "sessions.max_bytes": (lambda value: value >= 0, "at least 0"),
    "sessions.keep_days": (lambda value: value >= 0, "at least 0"),
    "checkpoints.max_file_bytes": (lambda value: value >= 0, "at least 0"),
    "checkpoints.keep_days": (lambda value: value >= 1, "at least 1"),
    "mcp.osv": (lambda value: value in ("warn", "block", "off"), "warn, block or off"),
    "mcp.wait_seconds": (lambda value: value >= 0, "at least 0"),
    "code.timeout_seconds": (lambda value: value > 0, "above 0"),
    "code.max_calls": (lambda value: value >= 0, "at least 0"),
    "delegation.max_children": (lambda value: value >= 1, "at least 1"),
    "delegation.max_depth": (lambda value: 1 <= value <= 5, "between 1 and 5"),
    "delegation.timeout_seconds": (lambda value: value > 0, "above 0"),
    "delegation.idle_timeout_seconds": (lambda value: value > 0, "above 0"),
}


def _is_price(line: str) -> bool:
    _, *numbers = line.replace("=", " ").split() or [""]
    try:
        return 2 <= len(numbers) <= 4 and all(0 <= float(n) < float("inf") for n in numbers)
    except ValueError:
        return False


def check_value(name: str, value: Any, path: str) -> Any:
    """`value` when it is of the setting's kind."""
    default = DEFAULTS[name][0]
    kind = type(default)
    wanted = (int, float) if kind is float else kind
    fits = isinstance(value, wanted) and isinstance(value, bool) == isinstance(default, bool)
    if not fits or (kind is list and not all(isinstance(item, str) for item in value)):
        raise ConfigError(
            f"{name} in {path} must be {_KINDS[kind]}, not {value!r:.60}",
            hint=f"hermes config set {name} {default!r}",
        )
    if name in RULES and not RULES[name][0](value):
        raise ConfigError(
            f"{name} in {path} must be {RULES[name][1]}, not {value!r:.60}",
            hint=f"hermes config set {name} {default}",
        )
    return value


_KINDS = {
    bool: "true or false",
    int: "a whole number",
    dict: "settings by name",
    float: "a number",
    list: "a list of texts",
    str: "text",
}


def unknown_setting(name: str) -> ConfigError:
    """The error for a name that is no setting, with the nearest that is."""
    hint = did_you_mean(name, DEFAULTS, "hermes config lists them all.", cutoff=0.4)
    return ConfigError(f"there is no setting {name!r}", hint=hint)


def set_value(name: str, text: str, path: str | None = None) -> Any:
    """Set one setting from typed text; returns the parsed value."""
    import yaml

    name = SHORT.get(name, name)
    if name not in DEFAULTS:
        raise unknown_setting(name)
    path = path or home_path("config.yaml")
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        value = text
    default = DEFAULTS[name][0]
    if isinstance(default, str):
        value = value if isinstance(value, str) else text.strip()
    elif isinstance(default, list) and not text.lstrip().startswith(("[", "{", "- ")):
        value = [part.strip() for part in text.split(",") if part.strip()]
    check_value(name, value, "the command")
    # Where a link leads, so that a linked file stays one.
    path = os.path.realpath(path)
    # No other program changes a setting between our read and our write.
    with locked(os.path.dirname(path), directory=True):
        _write(name.split("."), value, path)
    return value


def _parse(text: str, path: str) -> dict[str, Any]:
    import yaml

    try:
        values = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
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


def _write(parts: list[str], value: Any, path: str) -> None:
    import yaml

    wanted = _merged(Config.load(path).values, parts, value)
    before = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8", newline="") as file:
            before = file.read()
    from hermes.core.yaml_edit import edited

    after = edited(before, parts, value)
    if after is None or _understood(after) != wanted:
        # The text has a shape the small edit does not understand: nothing is lost but comments.
        after = yaml.safe_dump(wanted, sort_keys=False, allow_unicode=True)
    write_private(path, after.encode())


def _understood(text: str) -> dict[str, Any] | None:
    try:
        return _parse(text, "")
    except ConfigError:
        return None


def _merged(values: dict[str, Any], parts: list[str], value: Any) -> dict[str, Any]:
    first, rest = parts[0], parts[1:]
    inner = values.get(first)
    inner = inner if isinstance(inner, dict) else {}
    return {**values, first: _merged(inner, rest, value) if rest else value}
