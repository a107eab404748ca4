"""`hermes mcp add`, `remove`, `approve`, `diff`, `login` and `logout`."""

from __future__ import annotations

from hermes.core.errors import HermesError, did_you_mean
from hermes.interfaces.cli.commands import DONE, FAILED, UsageError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from hermes.interfaces.cli.main import CliApp
    from hermes.mcp.client.servers import Servers, ServerState


def all_servers(app: CliApp) -> Servers:
    from hermes.mcp.client import attach
    from hermes.mcp.client.servers import Servers

    # Made here where attaching found nothing to attach: whatever is wrong with it is to be said.
    return attach(app, connect=False) or Servers(app)


def known_server(app: CliApp, name: str) -> tuple[Servers, ServerState]:
    servers = all_servers(app)
    state = servers.states.get(name)
    if state is None:
        hint = did_you_mean(name, servers.states, "`hermes mcp list` shows them.")
        raise HermesError(f"no server is called {name!r:.60}", hint=hint)
    return servers, state


def connected(servers: Servers, state: ServerState) -> None:
    """Have a server connected, or say why it can't be."""
    name = state.server.name
    if state.state == "disabled":
        raise HermesError(f"{name} is disabled", hint="hermes config edit")
    missing = servers.wait(state.server.connect_seconds + 1, [name])
    if missing:
        raise HermesError(missing[0], hint=f"hermes mcp test {name}")


def add(app: CliApp, options: Namespace) -> int:
    """Put a server into the settings, and its tools before the person."""
    from hermes.mcp.client.settings import Server, put_server

    definition = _pinned(app, _definition(options))
    server = Server(options.name, definition, "config.yaml")
    if server.problem:
        raise UsageError(server.problem)
    before = put_server(options.name, definition)
    app.out(f"{'Replaced' if before else 'Added'} {options.name}")
    if server.auth:
        app.note(f"log in with `hermes mcp login {options.name}`")
        return DONE
    # Read again: what was just written is what counts.
    vars(app).pop("config", None)
    servers, state = known_server(app, options.name)
    servers.pins.forget(options.name)
    try:
        connected(servers, state)
    except HermesError as error:
        app.note(f"it is added, but does not answer yet: {error}")
        return FAILED
    assert state.listing is not None
    _show_texts(app, state)
    if not (options.yes or _approved(app, f"Approve the tools of {options.name} as they are?")):
        servers.pins.approve(server, [])
        app.note(f"nothing of it can be called before `hermes mcp approve {options.name}`")
    return DONE


def _pinned(app: CliApp, definition: dict[str, Any]) -> dict[str, Any]:
    """The definition with the version named of a package that would be fetched."""
    from hermes.mcp.client.packages import newest, package_of, with_version

    args = definition.get("args", [])
    package = package_of(definition.get("command", ""), args)
    if package is None or package.pinned:
        return definition
    version = newest(package)
    if not version:
        app.note(f"{package.name} is not pinned: its newest version can't be found out here")
        return definition
    app.note(f"pinned to {package.name} {version}")
    return {**definition, "args": with_version(args, package, version)}


def _definition(options: Namespace) -> dict[str, Any]:
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    if not words:
        raise UsageError("say how it is started, or where it is: hermes mcp add NAME COMMAND …")
    first, *rest = words
    definition: dict[str, Any] = {}
    if "://" in first:
        if rest:
            raise UsageError(f"a URL takes no arguments: {' '.join(rest)[:60]}")
        if options.env:
            raise UsageError("--env is for a program of this machine; a URL takes --header")
        definition["url"] = first
        definition |= {"headers": _pairs(options.header)} if options.header else {}
        definition |= {"auth": "oauth"} if options.oauth else {}
    else:
        if options.header or options.oauth:
            raise UsageError("--header and --oauth are for a URL; a program takes --env")
        definition["command"] = first
        definition |= {"args": rest} if rest else {}
        definition |= {"env": _pairs(options.env)} if options.env else {}
    if options.lazy:
        definition["lazy"] = True
    return definition


def _pairs(words: list[str]) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"{word!r:.60} is not NAME=VALUE")
        pairs[name] = value
    return pairs


def remove(app: CliApp, options: Namespace) -> int:
    """Forget a server."""
    from hermes.mcp.client.auth.tokens import forget_tokens
    from hermes.mcp.client.listing import forget_listing
    from hermes.mcp.client.pins import Pins
    from hermes.mcp.client.settings import drop_server

    if not drop_server(options.name):
        raise HermesError(f"config.yaml has no server {options.name!r:.60}")
    Pins().forget(options.name)
    forget_listing(options.name)
    forget_tokens(options.name)
    if options.json:
        app.emit({"removed": options.name})
    else:
        app.out(f"Removed {options.name}")
    return DONE


def approve(app: CliApp, options: Namespace) -> int:
    """Approve the current tools of a server."""
    servers, state = known_server(app, options.name)
    servers.discard_listing(options.name)
    connected(servers, state)
    assert state.listing is not None
    for line in _different(servers, state):
        app.out(line)
    unknown = set(options.tools) - {_key(tool) for tool in state.listing.tools}
    if unknown:
        raise HermesError(f"{options.name} has no tool {', '.join(sorted(unknown))[:80]}")
    if not (options.yes or _approved(app, f"Approve {options.name} as it is now?")):
        raise HermesError("nothing was approved", hint="`--yes` approves without asking")
    names = servers.pins.approve(state.server, state.listing.tools, only=options.tools or None)
    app.out(f"Approved {len(names)} tools of {options.name}")
    return DONE


def diff(app: CliApp, options: Namespace) -> int:
    """Show the differences from the approved tools."""
    servers, state = known_server(app, options.name)
    if state.listing is None:
        connected(servers, state)
    lines = _different(servers, state)
    if options.json:
        app.emit(lines)
        return DONE
    for line in lines:
        app.out(line)
    if not lines:
        app.note(f"{options.name} is as it was approved")
    return DONE


def _different(servers: Servers, state: ServerState) -> list[str]:
    from hermes.mcp.client.pins import differences

    assert state.listing is not None
    return differences(state.server, state.listing.tools, servers.pins.of(state.server.name))


def _key(tool: Any) -> str:
    from hermes.mcp.client.pins import tool_key

    return tool_key(tool)


def _show_texts(app: CliApp, state: ServerState) -> None:
    """Every word that a model would read of a server's tools."""
    assert state.tools is not None
    for key, entry in state.tools.entries.items():
        app.out()
        app.out(f"{app.styled(entry.name, 'bold')} ({entry.effect})")
        app.paragraph(entry.description)
        for note in state.tools.notes.get(key, []):
            app.note(f"mended: {note}")
    for key, reason in state.tools.quarantined.items():
        app.note(f"left out: {key}: {reason}")
    for note in state.connection.notes if state.connection is not None else []:
        app.note(note)


def _approved(app: CliApp, question: str) -> bool:
    from hermes.interfaces.cli.approval_prompt import can_ask, confirm

    return can_ask() and confirm(app, question)


def login(app: CliApp, options: Namespace) -> int:
    """Log in to a server on the network."""
    from hermes.core.availability import require
    from hermes.runtime import waits

    _, state = known_server(app, options.name)
    server = state.server
    if server.problem:
        raise HermesError(server.problem)
    if not server.remote:
        raise HermesError(f"{options.name} is a program of this machine: it needs no login")
    require("mcp", extra="mcp")
    from hermes.mcp.client.auth.headless_login import device_login, machine_login
    from hermes.mcp.client.auth.login import login as browser_login
    from hermes.mcp.client.auth.tokens import MACHINE_FLOWS
    from hermes.mcp.client.http_client import open_in_browser

    def visit(address: str) -> None:
        if not open_in_browser(address):
            app.note(f"open this in a browser of this machine: {address}")

    def type_code(address: str, code: str) -> None:
        app.note(f"open {address} on any device, and type the code {code}")

    flow = "device" if options.device else server.auth.get("flow")
    if flow == "device":
        waits.run(device_login(server, type_code))
    elif flow in MACHINE_FLOWS:
        # Tried now, so that what is wrong with it is seen by somebody.
        waits.run(machine_login(server))
    else:
        waits.run(browser_login(server, visit))
    app.out(f"Logged in to {options.name}")
    return DONE


def logout(app: CliApp, options: Namespace) -> int:
    """Forget a login."""
    from hermes.mcp.client.auth.tokens import forget_tokens

    known_server(app, options.name)
    if not forget_tokens(options.name):
        raise HermesError(f"nobody is logged in to {options.name}")
    app.out(f"Logged out of {options.name}")
    return DONE
