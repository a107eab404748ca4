"""`hermes chat` and `hermes resume`: interactive chat with an agent; options of commands that run
one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.config import MODES
from hermes.core.errors import ConfigError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable

    from hermes.interfaces.cli.main import CliApp


def agent_arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("--model", metavar="NAME", help="a model, or SERVICE/MODEL")
    parser.add_argument("--toolsets", metavar="A,B", type=_names, help="only these toolsets")
    parser.add_argument("--profile", metavar="NAME", help="the profile of rights")
    parser.add_argument(
        "--mode", choices=MODES, help="plan: only read; ask about every change; standard; auto"
    )


def check_mode(app: CliApp, mode: str) -> None:
    """Raise `ConfigError` for `auto` where commands are not confined."""
    if mode not in MODES:
        raise ConfigError(f"there is no mode {mode!r:.40}", hint=f"Modes: {', '.join(MODES)}.")
    if mode == "auto":
        from hermes.environments.confinement.machine import MECHANISMS, obstacle

        local = app.config.get("terminal.env_type") == "local"
        wanted = app.config.get("terminal.confine.mode") != "off"
        if not (local and wanted) or all(map(obstacle, MECHANISMS)):
            raise ConfigError(
                "mode auto needs confined commands, and here they are not confined",
                hint="`hermes environments test local` says why; mode standard works.",
            )


def take_profile(app: CliApp, options: Namespace) -> None:
    """Use the profile and mode that were asked for; raises `ConfigError` for impossible ones."""
    app.mode = getattr(options, "mode", None)
    check_mode(app, app.mode or app.config.get("approvals.mode"))
    if options.profile is not None:
        from hermes.runtime.gate_setup import profile_layers

        # Now, and not at the first call, which a closed gate would refuse.
        profile_layers(app.project, options.profile)
    app.profile = options.profile


def _names(text: str) -> list[str]:
    """Names with commas between them; none at all is a mistake, and never means all."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        from argparse import ArgumentTypeError

        raise ArgumentTypeError("names no toolset")
    return names


def above_zero(kind: type[int] | type[float]) -> Callable[[str], int | float]:
    """Reads a number of a kind; one that could limit nothing is a mistake."""

    def read(text: str) -> int | float:
        try:
            number = kind(text)
        except ValueError:
            number = 0
        if not 0 < number < float("inf"):
            from argparse import ArgumentTypeError

            raise ArgumentTypeError(f"{text!r:.40} is no number above 0")
        return number

    return read


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
