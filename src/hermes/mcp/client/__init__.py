"""The MCP client: other people's servers become tools of ours.

    settings    which servers there are, from `config.yaml` and a trusted `.mcp.json`
    servers     all of them together: what is registered, and the thread of the connections
    offering    a server's tools judged one by one, and put into the registry
    reaching    its resources and prompts, as tools
    listing     what a server said last, remembered on disk
    pins        what a person approved, by hash; what changed since
    link        one connection: states, tries, calls; `asking` what the server has, `paging` to
                the last page
    greeting    which protocol it speaks, found out quickly
    staying     what wakes a connection: changes at the server, and its end
    wire        messages mended on their way to the SDK; `mending` says how
    stdio       a server that is a program; `spawning` starts it, `lines` reads what it says,
                `direct` calls its tools
    http        a server on the network; `limits` what it may send, `auth` logs in
    pace        how often a server may make us do something
    bridging    what a server may ask of us: roots, questions, the model; `behalf` for whom
    packages    whether a package that would be fetched is known malware; `pinning` its version
    journal     what a server says beside its answers
    results     what it answers, as a result of ours

Front doors call `attach(app)`. Nothing here imports the SDK until a server is wanted.
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
    from hermes.runtime.events import Event
    from hermes.runtime.tool_offer import Offer

log = Log("hermes.mcp")

_attached: WeakKeyDictionary[App, Servers | None] = WeakKeyDictionary()


def attach(app: App, *, connect: bool = True) -> Servers | None:
    """Put the tools of the configured servers into an app's registry; None when there are none.

    What servers said last is registered at once. With `connect` they are connected in the
    background; without, when one of their tools is called.
    """
    if app not in _attached:
        _attached[app] = _made(app)
    servers = _attached[app]
    if servers is not None and connect:
        servers.connect()
    return servers


def follow(app: App, offer: Offer, chosen: Callable[[], Iterable[ToolEntry]]) -> Callable[[], None]:
    """Let tools into a conversation that come later, as those of a slow server.

    Args:
        chosen: Which tools of the registry the conversation may have, as it stands then.

    Returns:
        What ends it.
    """

    def take(event: Event) -> None:
        if event.kind == "tools_changed":
            offer.admit(app.registry.available(chosen()))

    end = app.runtime.events.subscribe(take)
    # What came between the making of the offer and now.
    offer.admit(app.registry.available(chosen()))
    return end


def find_tool(app: App, name: str) -> list[str]:
    """Have the server asked that a tool's name speaks of, where the tool is not known yet.

    A line for each that can't be reached; nothing where there is nothing to be done.
    """
    if not name.startswith("mcp-") or name in app.registry:
        return []
    servers = attach(app, connect=False)
    if servers is None:
        return []
    meant = [one for one in servers.known if name.startswith((f"mcp-{one}:", f"mcp-{one}__"))]
    return servers.wait(None, meant) if meant else []


def _made(app: App) -> Servers | None:
    from hermes.mcp.client.settings import has_servers

    try:
        if not has_servers(app.config, app.project):
            return None
        from hermes.mcp.client.servers import Servers

        return Servers(app)
    except HermesError as error:
        # One bad setting must not take everything else down; `hermes mcp list` says it too.
        log.warning("no MCP servers: %s", error)
        return None
