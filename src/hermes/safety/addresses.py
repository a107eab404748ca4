"""What kind of network an IP address belongs to: public, private, or never to be talked to."""

from __future__ import annotations

from functools import cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

# Answer to whoever asks from this machine, often with credentials. Some are public addresses.
_METADATA = (
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
    return frozenset(map(ip_address, _METADATA))


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
