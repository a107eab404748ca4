"""The secret that HTTP clients have to know.

It comes from the environment, from a file that is named, or from a file in the home folder that
is made at the first start. A file that others can read holds no secret, and is refused.
"""

from __future__ import annotations

import hmac
import os
import stat
from typing import NamedTuple

from hermes.core.errors import ConfigError
from hermes.core.home import home_path, write_private

VARIABLE = "HERMES_MCP_TOKEN"
# Shorter ones can be guessed.
LEAST = 16
_MOST = 4096


class Token(NamedTuple):
    """The secret, where it comes from, and whether it was made just now."""

    secret: str
    source: str
    made: bool = False


def usual_file() -> str:
    """Where the token is kept that we make ourselves."""
    return home_path("mcp", "server-token")


def find_token(path: str | None = None) -> Token:
    """The token to ask clients for; made, and kept for its owner only, where there is none.

    Args:
        path: The file that holds it; the environment and the usual file are not looked at then.
    """
    if path is None and os.environ.get(VARIABLE):
        return Token(_checked(os.environ[VARIABLE], VARIABLE), VARIABLE)
    place = path or usual_file()
    try:
        return Token(_checked(_read(place), place), place)
    except FileNotFoundError:
        if path is not None:
            raise ConfigError(f"the token file {path} does not exist") from None
    import secrets

    secret = secrets.token_urlsafe(32)
    write_private(place, f"{secret}\n".encode())
    return Token(secret, place, made=True)


def same(secret: str, given: bytes) -> bool:
    """Whether that is the secret, in a time that says nothing of it."""
    return hmac.compare_digest(secret.encode(), given)


def _read(path: str) -> str:
    try:
        # Opened first, so that what is looked at is what is read.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError(f"the token file {path} can't be read: {error.strerror}") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"the token file {path} is no file")
        if os.name == "posix" and status.st_mode & 0o077:
            raise ConfigError(f"others can read the token file {path}", hint=f"chmod 600 {path}")
        return os.read(handle, _MOST + 1).decode("utf-8", "replace")
    finally:
        os.close(handle)


def _checked(text: str, source: str) -> str:
    secret = text.strip()
    if not LEAST <= len(secret) <= _MOST or not all("!" <= c <= "~" for c in secret):
        raise ConfigError(
            f"the token in {source} must be {LEAST} or more plain characters without spaces",
            hint=f"Take it away, and one is made in {usual_file()}.",
        )
    return secret
