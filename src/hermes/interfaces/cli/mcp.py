"""`hermes mcp`: configured MCP servers: list, show, test; start our own server."""

from __future__ import annotations

from hermes.core.errors import HermesError
from hermes.interfaces.cli import mcp_servers as changing
from hermes.interfaces.cli.commands import DONE, FAILED
from hermes.interfaces.cli.mcp_servers import all_servers, connected, known_server

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from hermes.interfaces.cli.main import CliApp
    from hermes.mcp.client.servers import Servers, ServerState
    from hermes.mcp.client.settings import Server


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_list, json=False)
    actions = parser.add_subparsers(metavar="ACTION")
    listing = _action(actions, "list", "the servers, and what is known of them")
    listing.set_defaults(run=_list)
    add = _action(actions, "add", "add a server: hermes mcp add [options] NAME COMMAND …")
    add.add_argument("name", metavar="NAME", help="what to call it")
    add.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable for it; '${X}' is your own X",
    )
    add.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a header to send to a URL",
    )
    add.add_argument("--oauth", action="store_true", help="it wants a login (OAuth)")
    add.add_argument("--lazy", action="store_true", help="connect when one of its tools is called")
    add.add_argument("-y", "--yes", action="store_true", help="approve its tools without asking")
    # Options are ours up to the command, and its own behind it.
    add.add_argument(
        "words", nargs="A...", metavar="COMMAND", help="a command with its arguments, or a URL"
    )
    add.set_defaults(run=changing.add)
    remove = _named(
        actions, "remove", "forget a server, its approval and its login", changing.remove
    )
    test = _named(
        actions, "test", "start a server as Hermes would, and say what comes of it", _test
    )
    tools = _named(actions, "tools", "a server's tools, and why any is missing", _tools)
    login = _named(actions, "login", "log in to a server on the network", changing.login)
    login.add_argument("--device", action="store_true", help="with a code, on any device")
    _named(actions, "logout", "forget a login", changing.logout)
    logs = _named(actions, "logs", "what a server said beside its answers", _logs)
    logs.add_argument(
        "-n", type=int, default=50, metavar="LINES", dest="lines", help="the last so many (50)"
    )
    approve = _named(
        actions, "approve", "approve a server's tools as they are now", changing.approve
    )
    approve.add_argument("tools", nargs="*", metavar="TOOL", help="only these")
    approve.add_argument("-y", "--yes", action="store_true", help="without asking")
    diff = _named(actions, "diff", "what is different from what was approved", changing.diff)
    for action in (listing, test, tools, diff, logs, remove):
        action.add_argument("--json", action="store_true", help="for programs")
    serve = _action(actions, "serve", "offer our tools to any MCP client")
    _described_later(serve)


def _described_later(parser: ArgumentParser) -> None:
    """Import the server module only when `serve` is chosen."""
    whole = parser.parse_known_args

    def parse(words: Any = None, namespace: Any = None) -> Any:
        from hermes.interfaces.cli import mcp_serve

        mcp_serve.arguments(parser)
        parser.set_defaults(run=mcp_serve.run)
        return whole(words, namespace)

    parser.parse_known_args = parse  # type: ignore[assignment,method-assign]


def _named(actions: Any, action: str, line: str, run: Any) -> ArgumentParser:
    parser = _action(actions, action, line)
    parser.add_argument("name", metavar="NAME", help="the server")
    parser.set_defaults(run=run)
    return parser


def _action(actions: Any, name: str, line: str) -> ArgumentParser:
    said = line[:1].upper() + line[1:]
    parser: ArgumentParser = actions.add_parser(name, help=line, description=said)
    return parser


# -- looking --------------------------------------------------------------------------------------


def _list(app: CliApp, options: Namespace) -> int:
    servers = all_servers(app)
    rows = [
        {**_summary(known), "confined": _confined(app, known.server)}
        for known in servers.states.values()
    ]
    if options.json:
        app.emit(rows)
        return DONE
    if not rows:
        app.note("no servers; `hermes mcp add NAME COMMAND …` adds one")
        return DONE
    app.table(
        [(row["name"], row["kind"], row["confined"], _count(row), row["what"]) for row in rows]
    )
    return DONE


def _summary(known: ServerState) -> dict[str, Any]:
    server, offered = known.server, known.tools
    return {
        "name": server.name,
        "kind": "http" if server.remote else "stdio",
        "what": known.reason or server.url or " ".join((server.command, *server.args)),
        "state": known.state,
        "problem": server.problem,
        "source": server.source,
        "tools": len(offered.entries) if offered else None,
        "suspended": dict(offered.suspended) if offered else {},
        "quarantined": dict(offered.quarantined) if offered else {},
    }


def _confined(app: CliApp, server: Server) -> str:
    """How a server's process is confined, for the listing; empty for one elsewhere."""
    if server.remote or server.problem:
        return ""
    found = _resolved(app, server).get("confined", "no")
    return "not confined" if found == "no" else str(found)


def _count(row: dict[str, Any]) -> str:
    if row["problem"]:
        return "can't be used"
    if row["state"] == "disabled":
        return "disabled"
    if row["tools"] is None:
        return "never asked"
    held = f", {len(row['suspended'])} suspended" if row["suspended"] else ""
    return f"{row['tools']} tools{held}"


def _tools(app: CliApp, options: Namespace) -> int:
    servers, known = known_server(app, options.name)
    if known.tools is None:
        connected(servers, known)
    offered = known.tools
    assert offered is not None
    if options.json:
        app.emit(
            {
                "tools": [
                    {
                        "name": entry.name,
                        "description": entry.description,
                        "effect": entry.effect,
                        "parameters": entry.parameters,
                        "suspended": offered.suspended.get(key),
                        "mended": offered.notes.get(key, []),
                    }
                    for key, entry in offered.entries.items()
                ],
                "quarantined": offered.quarantined,
            }
        )
        return DONE
    app.table(
        [
            (
                entry.name,
                entry.effect,
                f"(suspended: {offered.suspended[key]})"
                if key in offered.suspended
                else entry.description.partition("\n")[0],
            )
            for key, entry in offered.entries.items()
        ]
    )
    for key, notes in offered.notes.items():
        app.note(f"mended: {key}: {'; '.join(notes)}")
    for key, reason in offered.quarantined.items():
        app.note(f"left out: {key}: {reason}")
    return DONE


def _test(app: CliApp, options: Namespace) -> int:
    servers, known = known_server(app, options.name)
    server = known.server
    facts: dict[str, Any] = {"name": server.name, "source": server.source}
    trouble = server.problem or ("" if server.enabled else "it is disabled in the settings")
    if not trouble and not server.remote:
        facts.update(_resolved(app, server))
        trouble = facts.pop("trouble", "")
    if not trouble:
        if server.remote:
            facts["url"] = server.url
        trouble = _try(servers, known, facts)
    if trouble:
        facts["trouble"] = trouble
    if options.json:
        app.emit({**facts, "ok": not trouble})
    else:
        for name, value in facts.items():
            # Whole lines: what is cut off is always what was looked for.
            app.out(f"{name:12} {_shown(value)}")
    return FAILED if trouble else DONE


def _resolved(app: CliApp, server: Server) -> dict[str, Any]:
    """The command that would be started, found by the function that starts it."""
    from hermes.mcp.client.server_process import CommandMissingError, resolve_launch

    try:
        launch = resolve_launch(server, app.project)
    except CommandMissingError as error:
        return {"command": error.command, "PATH": error.path, "looked in": error.searched,
                "trouble": str(error)}  # fmt: skip
    except HermesError as error:
        return {"command": server.command, "trouble": str(error)}
    return {
        "command": " ".join((launch.program, *launch.argv[1:])),
        "folder": launch.cwd,
        "confined": launch.confinement or "no",
        "PATH": launch.env.get("PATH", ""),
        # Names and no values: some are secrets.
        "variables": sorted(launch.env),
    }


def _try(servers: Servers, known: ServerState, facts: dict[str, Any]) -> str:
    import time

    begun = time.monotonic()
    servers.discard_listing(known.server.name)
    missing = servers.wait(known.server.connect_seconds + 2, [known.server.name])
    link = known.connection
    facts["seconds"] = round(time.monotonic() - begun, 2)
    if link is not None and link.notes:
        facts["remarks"] = link.notes
    if missing:
        if link is not None and link.log.last():
            facts["last words"] = link.log.last()
        return missing[0].partition(": ")[2]
    if known.listing is not None and known.tools is not None:
        facts["server"] = known.listing.version
        facts["tools"] = len(known.tools.entries)
        facts["suspended"] = known.tools.suspended
        facts["left out"] = known.tools.quarantined
    return ""


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {reason}" for name, reason in value.items()) or "none"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _logs(app: CliApp, options: Namespace) -> int:
    from hermes.mcp.client.server_log import ServerLog

    _, known = known_server(app, options.name)
    try:
        with open(ServerLog(known.server.name).path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()[-max(options.lines, 1) :]
    except FileNotFoundError:
        lines = []
    if options.json:
        app.emit(lines)
        return DONE
    for line in lines:
        app.out(line)
    if not lines:
        app.note(f"{options.name} has said nothing so far")
    return DONE
