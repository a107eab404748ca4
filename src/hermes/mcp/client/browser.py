"""URLs that a server wants a person to open: checked first, opened without a shell."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

MOST_LENGTH = 4_000


def refused_address(url: str, *, beside: str = "") -> str:
    """Why an address may not be opened or asked; nothing when it may.

    It has to be https; plain http only on this machine, and only for a server on this machine.

    Args:
        beside: The address of the server that named it.
    """
    if len(url) > MOST_LENGTH:
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
        is_local(host) and is_local(urlsplit(beside).hostname or "")
    ):
        return "it is not encrypted (http)"
    if is_private(host) and not is_private(urlsplit(beside).hostname or ""):
        return f"{host} is an address inside this network, and the server is outside of it"
    return ""


def is_local(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_private(host: str) -> bool:
    """Whether a host, as it is written, is on this machine or in this network."""
    if is_local(host):
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return host.endswith((".local", ".internal")) or "." not in host


def open_address(url: str) -> bool:
    """Show an address in the person's browser; whether there is one."""
    import webbrowser

    try:
        # Its programs are started with a list of words, never through a shell.
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False
