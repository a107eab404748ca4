"""MCP client: the tools of other servers in our registry.

    settings         server definitions of `config.yaml` and of a trusted `.mcp.json`
    servers          the pool: registered tools, and the thread of the connections
    registration     tools checked one by one and registered
    listing          tools and capabilities of a server, cached on disk
    pins             approved definitions by hash; `packages` malware check of launchers
    connection       one connection: states, attempts, calls
    tool_list        the tool list page by page, and its changes
    sdk_compat       the SDK's client with repaired responses and a quick protocol probe
    stdio_client     the stdio transport; `server_process` starts the process
    http_client      the HTTP transport; `auth` logins and tokens
    server_requests  roots, elicitation and sampling for the call they belong to
    results          call results as results of Hermes; errors
    server_log       stderr and log messages; rate limit

Interfaces call `attach(app)`. Nothing imports the SDK until a server is needed.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from hermes.core.errors import HermesError
from hermes.core.log import Log

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hermes.core.entry import ToolEntry
    from hermes.mcp.client.servers import Servers
    from hermes.runtime.app import App
    from hermes.runtime.hooks import Event
    from hermes.runtime.tool_offer import Offer

log = Log("hermes.mcp")

_attached: WeakKeyDictionary[App, Servers | None] = WeakKeyDictionary()


def attach(app: App, *, connect: bool = True) -> Servers | None:
    """Put the tools of the configured servers into an app's registry; None when there are none.

    Cached listings are registered at once. With `connect` the servers connect in the background,
    otherwise when one of their tools is called.
    """
    if app not in _attached:
        _attached[app] = _new_servers(app)
    servers = _attached[app]
    if servers is not None and connect:
        servers.connect()
    return servers


def follow(app: App, offer: Offer, chosen: Callable[[], Iterable[ToolEntry]]) -> Callable[[], None]:
    """Add tools that are registered later to a conversation, as those of a slow server.

    Args:
        chosen: The tools of the registry that the conversation may have, at that time.

    Returns:
        A function that unsubscribes.
    """

    def on_event(event: Event) -> None:
        if event.kind == "tools_changed":
            offer.admit(app.registry.available(chosen()))

    end = app.runtime.events.subscribe(on_event)
    # Tools registered since the offer was made.
    offer.admit(app.registry.available(chosen()))
    return end


def find_tool(app: App, name: str) -> list[str]:
    """Connect the server of an unknown tool's name; one line for each that can't be reached."""
    if not name.startswith("mcp-") or name in app.registry:
        return []
    servers = attach(app, connect=False)
    if servers is None:
        return []
    matches = [
        server
        for server in servers.states
        if name.startswith((f"mcp-{server}:", f"mcp-{server}__"))
    ]
    return servers.wait(None, matches) if matches else []


def _new_servers(app: App) -> Servers | None:
    from hermes.mcp.client.settings import has_servers

    try:
        if not has_servers(app.config, app.project):
            return None
        from hermes.mcp.client.servers import Servers

        return Servers(app)
    except HermesError as error:
        # An invalid setting must not break the rest; `hermes mcp list` shows it too.
        log.warning("no MCP servers: %s", error)
        return None
