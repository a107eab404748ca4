"""URLs that a server wants a person to open: checked first, opened without a shell."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

MAX_LENGTH = 4_000


def url_problem(url: str, *, server_url: str = "") -> str:
    """The reason why a URL may not be opened; empty when it may.

    It has to be https. Plain http is accepted on this machine, for a server on this machine.

    Args:
        server_url: The address of the server that sent the URL.
    """
    if len(url) > MAX_LENGTH:
        return f"it has {len(url)} characters"
    if not url.isascii() or any(c <= " " or c in '"<>\\^`{|}' or c == "\x7f" for c in url):
        return "it has characters that no address has"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return "it can't be read"
    if parts.scheme not in ("https", "http"):
        return f"its scheme is {parts.scheme[:20] or 'missing'!r}, not https"
    if not host or parts.username is not None or parts.password is not None:
        return "it names no host, or a user"
    if any(mark in url for mark in ("$(", "$%7B", "`")):
        return "it looks like a command"
    if parts.scheme == "http" and not (
        is_local(host) and is_local(urlsplit(server_url).hostname or "")
    ):
        return "it is not encrypted (http)"
    if is_private(host) and not is_private(urlsplit(server_url).hostname or ""):
        return f"{host} is an address inside this network, and the server is outside of it"
    return ""


def is_local(host: str) -> bool:
    """Whether a host is the loopback interface."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_private(host: str) -> bool:
    """Whether a host name or address belongs to this machine or a private network."""
    if is_local(host):
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return host.endswith((".local", ".internal")) or "." not in host


def open_in_browser(url: str) -> bool:
    """Open a URL in the person's browser; False without a browser."""
    import webbrowser

    try:
        # `webbrowser` starts programs without a shell.
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False
