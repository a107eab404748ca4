"""Host names in canonical form (IDNA); spellings that parsers read differently are refused."""

from __future__ import annotations

import re
from functools import cache
from ipaddress import IPv4Address, IPv6Address

# The longest name that DNS carries, and the longest part between two dots.
_LONGEST = 253
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_DOTTED = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
# Letters that one version of the IDNA standard maps away and the other keeps.
_DISPUTED = frozenset("ßςẞ\u200c\u200d·՚״׳・")
# Letters of other scripts that look like Latin ones.
_TWINS = frozenset("асԁеһіјӏорԛѕԝхуьвкмтнг" + "αινορτυχκβ" + "օոսհցԁգ")


class HostError(ValueError):
    """A host that can't be accepted; the message says why."""


def canonical_host(host: str) -> str:
    """The host in lower-case ASCII, an IPv6 address without its brackets; raises `HostError`."""
    if host.startswith("[") or host.endswith("]"):
        return str(_bracketed(host))
    if not host.isascii():
        host = _to_ascii(host)
    host = host.lower()
    if not host or len(host) > _LONGEST:
        raise HostError("the host is empty" if not host else "the host name is too long")
    if host.endswith("."):
        raise HostError("the host name ends in a dot")
    labels = host.split(".")
    if _NUMERIC.fullmatch(labels[-1]):
        return str(_dotted(host))
    for label in labels:
        if not _LABEL.fullmatch(label):
            raise HostError(f"{host!r} is not a plain host name")
        if label.startswith("xn--"):
            _check_punycode(label)
    return host


def _bracketed(host: str) -> IPv6Address:
    if not re.fullmatch(r"\[[0-9A-Fa-f:.]+\]", host):
        raise HostError("what stands in brackets is not a plain IPv6 address")
    try:
        return IPv6Address(host[1:-1])
    except ValueError:
        raise HostError("what stands in brackets is not an IPv6 address") from None


def _dotted(host: str) -> IPv4Address:
    # Programs read 0x7f.1, 2130706433 or 0177.0.0.1 differently, so only one spelling counts.
    if not _DOTTED.fullmatch(host):
        raise HostError(f"{host!r} is a number but not a plain IPv4 address")
    try:
        return IPv4Address(host)
    except ValueError:
        raise HostError(f"{host!r} is not an IPv4 address") from None


def _to_ascii(host: str) -> str:
    """A name in another script, in the ASCII form that DNS uses."""
    import unicodedata

    lower = host.lower()
    if unicodedata.normalize("NFKC", lower) != lower or "\u3002" in lower:
        raise HostError("the host name has characters that are written in more than one way")
    labels = []
    for label in lower.split("."):
        if label.isascii():
            labels.append(label)
            continue
        _check_letters(label)
        try:
            labels.append(label.encode("idna").decode("ascii"))
        except UnicodeError:
            raise HostError("the host name can't be written in ASCII") from None
    return ".".join(labels)


def _check_punycode(label: str) -> None:
    try:
        letters = label[4:].encode("ascii").decode("punycode")
        again = letters.encode("idna").decode("ascii")
    except (UnicodeError, ValueError, OverflowError):
        raise HostError(f"{label!r} is not valid punycode") from None
    if letters.isascii() or again != label:
        raise HostError(f"{label!r} is not the punycode of any name")
    _check_letters(letters)


def _check_letters(label: str) -> None:
    """Refuse a part of a name that mixes scripts or is made to look like another one."""
    import unicodedata

    if not _DISPUTED.isdisjoint(label):
        raise HostError("the host name has letters that standards disagree on")
    letters = [char for char in label if char not in "-0123456789"]
    if any(unicodedata.category(char)[0] not in "LM" for char in letters):
        raise HostError("the host name has signs that are not letters")
    scripts = {unicodedata.name(char, "?").split()[0] for char in letters}
    scripts.discard("COMBINING")
    if len(scripts - _together(scripts)) > 1 or all(char in _TWINS for char in letters):
        raise HostError("the host name is made to look like another one")


@cache
def _east_asian() -> frozenset[str]:
    return frozenset(("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO"))


def _together(scripts: set[str]) -> frozenset[str]:
    """Scripts that one language writes side by side, when there are only such."""
    return (
        _east_asian() if scripts <= _east_asian() | {"LATIN"} and "CJK" in scripts else frozenset()
    )


class HostPatterns:
    """Names to compare hosts with: exact ones, and `.example.org` or `*.example.org`: all below."""

    __slots__ = ("_exact", "_suffixes")

    def __init__(self, patterns: object, *, with_parent: bool) -> None:
        """`with_parent`: whether `.example.org` covers `example.org` itself as well."""
        self._exact: set[str] = set()
        self._suffixes: list[str] = []
        if isinstance(patterns, str):
            patterns = (patterns,)
        for pattern in patterns if isinstance(patterns, (list, tuple, set, frozenset)) else ():
            self._add(str(pattern).strip(), with_parent=with_parent)

    def _add(self, pattern: str, *, with_parent: bool) -> None:
        below = pattern.startswith((".", "*."))
        name = pattern.lstrip("*").lstrip(".").rstrip(".") if below else pattern.rstrip(".")
        if ":" in name and not name.startswith("["):
            name = f"[{name}]"
        try:
            name = canonical_host(name)
        except HostError:
            # No host ever has this name, so it matches nothing.
            return
        if below:
            self._suffixes.append("." + name)
        if not below or with_parent:
            self._exact.add(name)

    def match(self, host: str) -> bool:
        """Whether one of the patterns names this canonical host."""
        return host in self._exact or any(host.endswith(suffix) for suffix in self._suffixes)
