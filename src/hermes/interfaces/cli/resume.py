"""`hermes resume`: resume a session in the chat."""

from __future__ import annotations

from hermes.interfaces.cli.chat import resume_arguments as arguments

__all__ = ["arguments"]
