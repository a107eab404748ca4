"""`hermes chat`: interactive chat with an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.interfaces.cli.agent_options import agent_arguments, take_profile

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from hermes.interfaces.cli.main import CliApp


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("text", nargs="*", metavar="TEXT", help="the first message")
    agent_arguments(parser)
    parser.add_argument("--resume", metavar="ID", help="resume a session (`last`, or its id)")
    parser.set_defaults(run=_chat)


def resume_arguments(parser: ArgumentParser) -> None:
    """Define the arguments of `hermes resume`."""
    parser.add_argument(
        "resume", nargs="?", default="last", metavar="ID", help="the session (default: the last)"
    )
    agent_arguments(parser)
    parser.set_defaults(run=_chat, text=[])


def _chat(app: CliApp, options: Namespace) -> int:
    from hermes.interfaces.chat.agent_session import AgentOptions
    from hermes.interfaces.chat.start import chat

    take_profile(app, options)
    agent_options = AgentOptions(options.model, options.toolsets, options.profile)
    message = " ".join(options.text)
    return chat(app, options=agent_options, resume=options.resume, message=message)
