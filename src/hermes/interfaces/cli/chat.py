"""`hermes chat`: interactive chat with an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.interfaces.cli.agent_options import agent_arguments, take_profile

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from hermes.interfaces.cli.main import CliApp


def arguments(parser: ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("text", nargs="*", metavar="TEXT", help="what is said first")
    agent_arguments(parser)
    parser.add_argument("--resume", metavar="ID", help="go on with a session (`last`, or its id)")
    parser.set_defaults(run=_chat)


def resume_arguments(parser: ArgumentParser) -> None:
    """Describe the options of `hermes resume`."""
    parser.add_argument(
        "resume", nargs="?", default="last", metavar="ID", help="the session; left out: the last"
    )
    agent_arguments(parser)
    parser.set_defaults(run=_chat, text=[])


def _chat(app: CliApp, options: Namespace) -> int:
    from hermes.interfaces.chat.agent_session import Settings
    from hermes.interfaces.chat.start import chat

    take_profile(app, options)
    settings = Settings(options.model, options.toolsets, options.profile)
    return chat(app, settings=settings, resume=options.resume, message=" ".join(options.text))
