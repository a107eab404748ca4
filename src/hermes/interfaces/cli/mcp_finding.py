"""The servers that `hermes mcp` speaks of, found by name and connected."""

from __future__ import annotations

from hermes.core.errors import HermesError

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from hermes.interfaces.cli.main import CliApp
    from hermes.mcp.client.servers import Known, Servers


def all_servers(app: CliApp) -> Servers:
    from hermes.mcp.client import attach
    from hermes.mcp.client.servers import Servers

    # Made here where attaching found nothing to attach: whatever is wrong with it is to be said.
    return attach(app, connect=False) or Servers(app)


def known_server(app: CliApp, name: str) -> tuple[Servers, Known]:
    servers = all_servers(app)
    known = servers.known.get(name)
    if known is None:
        import difflib

        near = difflib.get_close_matches(name, servers.known, 1, 0.5)
        hint = f"did you mean {near[0]}?" if near else "`hermes mcp list` shows them"
        raise HermesError(f"no server is called {name!r:.60}", hint=hint)
    return servers, known


def connected(servers: Servers, known: Known) -> None:
    """Have a server connected, or say why it can't be."""
    name = known.server.name
    if known.state == "disabled":
        raise HermesError(f"{name} is disabled", hint="hermes config edit")
    missing = servers.wait(known.server.connect_seconds + 1, [name])
    if missing:
        raise HermesError(missing[0], hint=f"hermes mcp test {name}")
