"""`hermes mcp serve`: offer our tools to MCP clients over stdio or HTTP."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.availability import require
from hermes.core.errors import HermesError
from hermes.interfaces.cli.approval_prompt import can_ask
from hermes.interfaces.cli.chat import take_profile
from hermes.interfaces.cli.commands import DONE, UsageError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from hermes.interfaces.cli.main import CliApp


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("--toolsets", metavar="A,B", help="only these toolsets")
    parser.add_argument(
        "--http", metavar="HOST:PORT", help="listen there instead of serving stdin and stdout"
    )
    parser.add_argument(
        "--workspace", metavar="DIR", help="the folder to work in; the current one if left out"
    )
    parser.add_argument("--profile", metavar="NAME", help="the profile of rights to hold to")
    parser.add_argument(
        "--all-tools",
        action="store_true",
        help="list every tool at once, for clients that do not notice when the list changes",
    )
    parser.add_argument(
        "--token-file", metavar="FILE", help="the token that HTTP clients send, in a private file"
    )
    parser.add_argument(
        "--allow-remote", action="store_true", help="let --http listen for other machines, too"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name that clients reach this server by; may be given more than once",
    )
    parser.set_defaults(run=run)


def run(app: CliApp, options: Namespace) -> int:
    """Serve until the client goes away, or a signal ends it."""
    if options.http is None and (options.token_file or options.allow_remote or options.allow_host):
        raise UsageError("--token-file, --allow-remote and --allow-host go with --http")
    toolsets = _toolsets(options.toolsets)
    require("mcp", extra="mcp")
    _enter(app, options.workspace)
    take_profile(app, options)
    if options.http is None:
        from hermes.mcp.server.stdio_server import serve_stdio

        if can_ask():
            app.note("hermes: a client is to start this, and talk to it here; Ctrl-C ends it")
        serve_stdio(app, toolsets=toolsets, defer=not options.all_tools)
    else:
        _http(app, options, toolsets)
    return DONE


def _toolsets(text: str | None) -> list[str] | None:
    """The toolsets that were asked for; none at all is a mistake, and never means all."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError("--toolsets names no toolset")
    return names


def _http(app: CliApp, options: Namespace, toolsets: list[str] | None) -> None:
    from hermes.mcp.server.http_guard import find_token
    from hermes.mcp.server.http_server import Address, serve_http

    address = Address.read(options.http)
    token = find_token(options.token_file)

    def listening(url: str) -> None:
        app.note(f"hermes: serving MCP at {url} (Ctrl-C ends it)")
        if token.made:
            app.note(f"hermes: clients send Authorization: Bearer {token.secret}")
            app.note(f"hermes: shown this once; it is kept in {token.source}")
        else:
            app.note(f"hermes: clients send the token from {token.source}")
        if options.allow_remote:
            app.note("hermes: other machines can reach it unencrypted; put TLS in front")
        app.stderr.flush()

    serve_http(
        app,
        address,
        token,
        toolsets=toolsets,
        defer=not options.all_tools,
        remote=options.allow_remote,
        hosts=options.allow_host,
        listening=listening,
    )


def _enter(app: CliApp, folder: str | None) -> None:
    """Work in a folder. Clients start their servers wherever they happen to be themselves."""
    if folder is not None:
        try:
            os.chdir(os.path.expanduser(folder))
        except OSError as error:
            raise HermesError(f"{folder} can't be worked in: {error.strerror}") from None
        app.project = os.getcwd()
    if app.project in (os.path.expanduser("~"), os.path.abspath(os.sep)):
        app.note(f"hermes: working in {app.project}; --workspace DIR names a project instead")
        app.stderr.flush()
