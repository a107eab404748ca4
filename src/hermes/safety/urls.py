"""URL rules: public `http` and `https` only, where all parsers agree on the host; networks of IP
addresses.
"""

from __future__ import annotations

import re
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

from hermes.safety.hostnames import HostError, HostPatterns, canonical_host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


# Answer to whoever asks from this machine, often with credentials. Some are public addresses.
METADATA = (
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
    "fd00:42::42",
    "fd00:c1::a9fe:a9fe",
)
# Somebody's own network: opened by `allow_private`.
_PRIVATE = (
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "127.0.0.0/8",
    "100.64.0.0/10",
    "198.18.0.0/15",
    "::1/128",
    "fc00::/7",
)
# Neither public nor anybody's: this host, link-local, protocol, documentation, multicast, reserved.
_SPECIAL = (
    "0.0.0.0/8",
    "169.254.0.0/16",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
)
_PUBLIC_V6 = "2000::/3"
# An IPv4 address inside an IPv6 one.
_CARRIERS = (
    "::/96",
    "::ffff:0:0/96",
    "::ffff:0:0:0/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "2002::/16",
    "2001::/32",
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


@cache
def _networks(names: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(map(ip_network, names))


@cache
def _metadata() -> frozenset[Address]:
    return frozenset(map(ip_address, METADATA))


def _within(address: Address, names: tuple[str, ...]) -> bool:
    return any(
        address in network for network in _networks(names) if network.version == address.version
    )


def carries_ipv4(address: Address) -> bool:
    """Whether an IPv6 address is another spelling of, or a way to, an IPv4 address."""
    return address.version == 6 and int(address) > 1 and _within(address, _CARRIERS)


def unwrap(address: Address) -> Address:
    """The IPv4 address that a resolver may hand out inside an IPv6 one; others as they are."""
    if isinstance(address, IPv6Address) and _within(address, ("::ffff:0:0/96", "64:ff9b::/96")):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def network_of(address: Address) -> str:
    """`public`, `private`, `metadata` or `special`, by the address that is really reached."""
    address = unwrap(address)
    if address in _metadata():
        return "metadata"
    if _within(address, _PRIVATE):
        return "private"
    if _within(address, _SPECIAL) or (address.version == 6 and not _within(address, (_PUBLIC_V6,))):
        return "special"
    return "public"


if TYPE_CHECKING:
    Resolve = Callable[[str, int], Iterable[str]]

_LONGEST = 8192
_PORTS = {"http": 80, "https": 443}
# Everything up to the first `/`, `?` or `#` is the authority. A backslash there splits the parsers.
_URL = re.compile(r"(?P<scheme>[A-Za-z]+)://(?P<authority>[^/?#]*)(?P<rest>.*)", re.DOTALL)
_USERINFO = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*")
# Escapes that become one of @ / # ? \ : [ ] or a control character once decoded.
_LOADED_ESCAPE = re.compile(r"%(?:40|2[fF3]|3[fFaA]|5[bBcCdD]|[01][0-9A-Fa-f]|7[fF])")
# Some parsers look for the host after the last `@`, wherever that is.
_HOSTLIKE = re.compile(r"[\w-]+(?:\.[\w-]+)+(?::[0-9]*)?")
_LATE_HOST = re.compile(r"[?#][^/]*@")
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]{1,5}))?")

# Names that lead to a cloud's metadata service, whatever they resolve to.
METADATA_NAMES = HostPatterns(
    (
        "metadata",
        "metadata.google.internal",
        ".metadata.google.internal",
        "metadata.goog",
        "instance-data",
        "instance-data.ec2.internal",
        "metadata.azure.internal",
        "metadata.azure.com",
        "metadata.tencentyun.com",
        "metadata.platformequinix.com",
        "metadata.oraclecloud.com",
    ),
    with_parent=True,
)
_LOOPBACK_NAMES = HostPatterns(("localhost", ".localhost", "ip6-localhost"), with_parent=True)


class UrlRules:
    """The networks and hosts that are open or closed beyond the defaults.

    Args:
        allow_private: open private and loopback networks; never metadata services or link-local.
        allow_hosts: names that may resolve to private addresses. `.example.org` and
            `*.example.org` mean every name below `example.org`, not that name itself.
        deny_hosts: names that are closed, before anything else. `.example.org` and
            `*.example.org` close `example.org` too.
    """

    __slots__ = ("allow_hosts", "allow_private", "deny_hosts")

    def __init__(
        self,
        *,
        allow_private: bool = False,
        allow_hosts: Iterable[str] = (),
        deny_hosts: Iterable[str] = (),
    ) -> None:
        self.allow_private = allow_private
        self.allow_hosts = allow_hosts
        self.deny_hosts = deny_hosts


class Decision:
    """Whether a URL may be fetched, why not, and the address to connect to if so.

    `addresses` has all addresses that were checked, `address` is the first of them.
    """

    __slots__ = ("addresses", "allowed", "host", "port", "reason")

    def __init__(
        self,
        allowed: bool,
        reason: str,
        *,
        host: str = "",
        port: int = 0,
        addresses: tuple[str, ...] = (),
    ) -> None:
        self.allowed = allowed
        self.reason = reason
        self.host = host
        self.port = port
        self.addresses = addresses

    @property
    def address(self) -> str | None:
        return self.addresses[0] if self.addresses else None

    def __repr__(self) -> str:
        return f"Decision(allowed={self.allowed}, reason={self.reason!r}, address={self.address!r})"


def check_url(
    url: str, *, rules: UrlRules | Mapping[str, Any] | None, resolve: Resolve | None = None
) -> Decision:
    """Whether `url` may be fetched under `rules`, and the address to connect to.

    Args:
        rules: a `UrlRules`, or a mapping or object with the same fields; None for the defaults.
        resolve: host and port to addresses. The default asks the system and waits as long as that
            does: bound the time around this call where it matters.
    """
    try:
        host, port = split_url(url)
    except HostError as error:
        return Decision(False, str(error))
    return check_host(host, port, rules=rules, resolve=resolve)


def check_host(
    host: str,
    port: int,
    *,
    rules: UrlRules | Mapping[str, Any] | None,
    resolve: Resolve | None = None,
) -> Decision:
    """The same for a host that is already apart, as a connection pool has it."""
    try:
        host = canonical_host(f"[{host}]" if ":" in host and not host.startswith("[") else host)
    except HostError as error:
        return Decision(False, str(error))

    def refuse(reason: str) -> Decision:
        return Decision(False, reason, host=host, port=port)

    if HostPatterns(_rule(rules, "deny_hosts"), with_parent=True).match(host):
        return refuse(f"{host} is closed by the rules")
    if METADATA_NAMES.match(host):
        return refuse(f"{host} is a metadata service")
    named = HostPatterns(_rule(rules, "allow_hosts"), with_parent=False).match(host)
    private = named or _rule(rules, "allow_private") is True
    if _LOOPBACK_NAMES.match(host) and not private:
        return refuse(f"{host} is this machine")
    literal = _parse(host)
    if literal is not None:
        if carries_ipv4(literal):
            return refuse(f"{host} hides an IPv4 address")
        found = [literal]
    else:
        try:
            found = _resolve(host, port, resolve)
        except HostError as error:
            return refuse(str(error))
    denied = HostPatterns(_rule(rules, "deny_hosts"), with_parent=True)
    for address in found:
        kind = network_of(address)
        if denied.match(str(address)):
            return refuse(f"{host} leads to {address}, which is closed by the rules")
        if kind not in ("public", "private") or (kind == "private" and not private):
            where = "" if literal else f" leads to {address}, which"
            return refuse(f"{host}{where} is {_WORDS[kind]}")
    return Decision(True, "", host=host, port=port, addresses=tuple(dict.fromkeys(map(str, found))))


_WORDS = {
    "private": "a private address",
    "metadata": "a metadata service",
    "special": "not a public address",
}


def split_url(url: str) -> tuple[str, int]:
    """Host and port of an `http` or `https` URL, read strictly; raises `HostError`."""
    if len(url) > _LONGEST:
        raise HostError("the URL is too long")
    if any(char <= " " or char == "\x7f" for char in url):
        raise HostError("the URL has blanks or control characters in it")
    match = _URL.fullmatch(url)
    scheme = match["scheme"].lower() if match else ""
    if match is None or scheme not in _PORTS:
        raise HostError("only http:// and https:// URLs can be fetched")
    authority = match["authority"]
    if "\\" in authority:
        raise HostError("the URL has a backslash before its path")
    userinfo, at, place = authority.rpartition("@")
    if at and (not _USERINFO.fullmatch(userinfo) or _LOADED_ESCAPE.search(userinfo)):
        raise HostError("the URL has more than a user name before its host")
    if _HOSTLIKE.fullmatch(userinfo) or _LATE_HOST.match(match["rest"]):
        raise HostError("the URL has something like a second host")
    parts = _AUTHORITY.fullmatch(place)
    if parts is None or "%" in place:
        raise HostError("the host of the URL can be read in more than one way")
    port = int(parts["port"] or _PORTS[scheme])
    if not 0 < port < 65536:
        raise HostError(f"there is no port {port}")
    return canonical_host(parts["host"]), port


def _rule(rules: UrlRules | Mapping[str, Any] | None, name: str) -> object:
    if rules is None:
        return None
    get = getattr(rules, "get", None)
    return get(name) if callable(get) else getattr(rules, name, None)


def _parse(host: str) -> Address | None:
    from ipaddress import ip_address

    try:
        return ip_address(host)
    except ValueError:
        return None


def _resolve(host: str, port: int, resolve: Resolve | None) -> list[Address]:
    try:
        names = list((resolve or _ask_system)(host, port))
    except (OSError, ValueError, LookupError, RuntimeError) as error:
        raise HostError(f"{host} could not be resolved: {error}") from None
    found = []
    for name in names:
        address = _parse(name) if isinstance(name, str) else None
        if address is None or getattr(address, "scope_id", None):
            raise HostError(f"{host} leads to {name!r}, which is not a plain address")
        found.append(address)
    if not found:
        raise HostError(f"{host} has no address")
    return found


def _ask_system(host: str, port: int) -> list[str]:
    import socket

    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(answer[4][0]) for answer in answers]
